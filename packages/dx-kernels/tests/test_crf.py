from itertools import product

import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import crf as ref

f32 = np.float32


def model(rng, rows, tags, size=2.0):
    return tuple((rng.standard_normal(s) * size).astype(f32) for s in ((rows, tags), (tags, tags), (tags,), (tags,)))


def begin_of(*lengths):
    return np.cumsum([0, *lengths]).astype(np.int32)


def backward(m, targets, begin, **settings):
    out = [np.full(x.shape, np.nan, f32) for x in m]
    return k.crf_backward(*m, targets, begin, *out, **settings), out


def decode(m, begin):
    scores, best = np.full(len(begin) - 1, np.nan), np.full(len(m[0]), -7, np.int32)
    k.crf_decode(*m, begin, scores, best)
    return scores, best


def marginals(m, begin):
    log_z, p = np.full(len(begin) - 1, np.nan), np.full(m[0].shape, np.nan)
    k.crf_marginals(*m, begin, log_z, p)
    return log_z, p


def taggings(m):
    """Every tagging of one sequence with its score, by enumeration in float64."""
    e, a, first, last = (x.astype(np.float64) for x in m)
    n, c = e.shape
    for y in product(range(c), repeat=n):
        yield y, (first[y[0]] + e[0, y[0]] + last[y[-1]]
                  + sum(a[y[t - 1], y[t]] + e[t, y[t]] for t in range(1, n)))


@pytest.mark.parametrize("lengths, tags", [((), 3), ((1,), 1), ((4, 0, 3), 2), ((1, 17, 5), 9), ((3,) * 70, 3)])
def test_bits_equal_reference(path, rng, lengths, tags):
    begin = begin_of(*lengths)
    m = model(rng, begin[-1], tags)
    targets = rng.integers(-1, tags, begin[-1]).astype(np.int32)
    want = ref.crf_forward(*m, targets, begin)
    gradients = ref.crf_backward(*m, targets, begin, 0.3)
    for degree in (1, 2, 3):
        with k.degree(degree):
            losses = np.empty(len(begin) - 1)
            assert k.crf_forward(*m, targets, begin, losses) == want[:2] and np.array_equal(losses, want[2])
            totals, got = backward(m, targets, begin, scale=0.3)
            assert totals == want[:2]
            for a, b in zip(got, gradients):
                assert same_bits(a, b)
            for a, b in zip((*marginals(m, begin), *decode(m, begin)),
                            (*ref.crf_marginals(*m, begin), *ref.crf_decode(*m, begin))):
                assert np.array_equal(a, b)


def test_against_every_tagging(rng):
    """Partition, marginals, loss (with an unknown target) and the best path, by enumeration."""
    m, begin = model(rng, 4, 3), begin_of(4)
    every = list(taggings(m))
    weights = np.exp([s for _, s in every])
    log_z, p = marginals(m, begin)
    assert abs(log_z[0] - np.log(weights.sum())) < 1e-12
    for t, j in np.ndindex(4, 3):
        assert abs(p[t, j] - sum(w for w, (y, _) in zip(weights, every) if y[t] == j) / weights.sum()) < 1e-12
    targets = np.array([2, -1, 0, 1], np.int32)
    allowed = sum(w for w, (y, _) in zip(weights, every) if y[0] == 2 and y[2:] == (0, 1))
    numerator, denominator = k.crf_forward(*m, targets, begin)
    assert abs(numerator + np.log(allowed / weights.sum())) < 1e-12 and denominator == 1
    scores, best = decode(m, begin)
    top = max(every, key=lambda x: x[1])
    assert tuple(best) == top[0] and abs(scores[0] - top[1]) < 1e-12


def test_agrees_with_torch_autograd(rng):
    """A plain CRF of torch operations in float64, with its gradients."""
    m, begin = model(rng, 9, 4), begin_of(5, 4)
    targets = rng.integers(0, 4, 9).astype(np.int32)
    e, a, first, last = t = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in m]
    loss = 0
    for lo, hi in ((0, 5), (5, 9)):
        alpha, y = first + e[lo], targets[lo:hi]
        score = first[y[0]] + e[lo, y[0]] + last[y[-1]]
        for i in range(1, hi - lo):
            alpha = torch.logsumexp(alpha[:, None] + a, 0) + e[lo + i]
            score = score + a[y[i - 1], y[i]] + e[lo + i, y[i]]
        loss = loss + torch.logsumexp(alpha + last, 0) - score
    (loss / 2).backward()
    (numerator, denominator), got = backward(m, targets, begin)
    assert abs(numerator - loss.item()) < 1e-12 and denominator == 2
    for x, g in zip(t, got):
        assert np.abs(x.grad.numpy() - g).max() < 2e-7


def test_difference_quotients(rng):
    m, begin, targets = model(rng, 6, 3, 1.0), begin_of(2, 4), np.array([0, 2, -1, 1, 1, -1], np.int32)
    _, got = backward(m, targets, begin, denominator=1.0)
    for which, gradient in enumerate(got):
        for place in np.ndindex(gradient.shape):
            ends = []
            for sign in (1, -1):
                moved = [x.copy() for x in m]
                moved[which][place] += f32(sign * 2.0**-9)
                ends.append((k.crf_forward(*moved, targets, begin)[0], float(moved[which][place])))
            slope = (ends[0][0] - ends[1][0]) / (ends[0][1] - ends[1][1])
            assert abs(slope - gradient[place]) < 1e-4


def test_forbidden_transitions_carry_nothing(rng, path):
    m, begin = model(rng, 5, 3), begin_of(5)
    m[1][0, 1] = m[1][1, 1] = m[2][2] = -np.inf
    every = [(y, s) for y, s in taggings(m) if s > -np.inf]
    assert abs(marginals(m, begin)[0][0] - np.log(np.exp([s for _, s in every]).sum())) < 1e-12
    assert tuple(decode(m, begin)[1]) == max(every, key=lambda x: x[1])[0]
    _, (de, da, dfirst, _) = backward(m, np.array([0, 2, 1, 0, 0], np.int32), begin)
    assert da[0, 1] == da[1, 1] == dfirst[2] == 0 and np.isfinite(de).all()
    illegal = np.array([0, 1, 2, 0, 0], np.int32)
    assert k.crf_forward(*m, illegal, begin)[0] == np.inf
    m[1][:] = -np.inf
    with pytest.raises(ValueError, match="sequence 0: no tagging is admitted"):
        decode(m, begin)


def test_ties_take_the_lowest_tags():
    m = tuple(np.zeros(s, f32) for s in ((4, 3), (3, 3), 3, 3))
    assert decode(m, begin_of(4))[1].tolist() == [0, 0, 0, 0]
    m[3][:] = [0, 1, 1]
    assert decode(m, begin_of(4))[1].tolist() == [0, 0, 0, 1]


def test_without_transitions_it_is_a_softmax_per_row(rng):
    e = rng.standard_normal((5, 4)).astype(f32)
    zeros = tuple(np.zeros(s, f32) for s in ((4, 4), 4, 4))
    targets, losses = rng.integers(0, 4, 5).astype(np.int32), np.empty(5)
    k.cross_entropy_forward(e, targets, None, None, losses)
    assert abs(k.crf_forward(e, *zeros, targets, begin_of(5))[0] - losses.sum()) < 1e-12


def test_a_row_of_the_batch_does_not_hear_the_others(rng):
    m, begin = model(rng, 12, 3), begin_of(5, 4, 3)
    targets = rng.integers(0, 3, 12).astype(np.int32)
    losses = np.empty(3)
    k.crf_forward(*m, targets, begin, losses)
    for s, (a, b) in enumerate(zip(begin[:-1], begin[1:])):
        alone = np.empty(1)
        k.crf_forward(m[0][a:b].copy(), *m[1:], targets[a:b].copy(), begin_of(b - a), alone)
        assert alone[0] == losses[s]


def test_edges(path):
    m = tuple(np.zeros(s, f32) for s in ((2, 3), (3, 3), 3, 3))
    m[0][1, 1] = np.nan
    targets = np.zeros(2, np.int32)
    assert np.isnan(k.crf_forward(*m, targets, begin_of(2))[0])
    with pytest.raises(ValueError, match=r"emissions\[1, 1\] = nan"):
        decode(m, begin_of(2))
    totals, d = backward(m, targets, begin_of(2), denominator=0.0)
    assert all(same_bits(x, np.zeros(x.shape, f32)) for x in d)
    m[0][1, 1] = -np.inf
    m[0][0, 0] = 1e30
    assert decode(m, begin_of(2))[1].tolist() == [0, 0] and k.crf_forward(*m, targets, begin_of(2))[0] < 1


def test_wrong_arguments_are_named():
    m, t, b = tuple(np.zeros(s, f32) for s in ((2, 3), (3, 3), 3, 3)), np.zeros(2, np.int32), begin_of(2)
    for wrong, message in (
            (lambda: k.crf_forward(*m, np.array([0, 3], np.int32), b), r"targets\[1\] = 3: expected a tag in 0\.\.2"),
            (lambda: k.crf_forward(*m, t[:1], b), r"targets has shape \(1,\)"),
            (lambda: k.crf_forward(*m, t, begin_of(1)), "expected to begin with 0 and end with 2"),
            (lambda: k.crf_forward(*m, t, np.array([0, 3, 2], np.int32)), r"begin\[2\] = 2"),
            (lambda: k.crf_forward(m[0], m[1][:2], *m[2:], t, b), r"transitions has shape \(2, 3\)"),
            (lambda: k.crf_forward(*m[:3], m[3][:1], t, b), r"last has shape \(1,\)"),
            (lambda: k.crf_forward(m[0][:, :0].copy(), *m[1:], t, b), "expected 1 to 32767 tags"),
            (lambda: k.crf_backward(*m, t, b, m[0], m[1], m[2], m[3][:1]), r"dlast has shape \(1,\)"),
            (lambda: k.crf_decode(*m, b, np.zeros(1), t[:1]), r"best has shape \(1,\)"),
            (lambda: k.crf_marginals(*m, b, np.zeros(2), np.zeros((2, 3))), r"log_partition has shape \(2,\)")):
        with pytest.raises(ValueError, match=message):
            wrong()
