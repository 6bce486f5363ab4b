import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import maxsim as ref

F = np.float32
SHAPES = [([1], [1], 1), ([3], [2, 1], 5), ([5, 1, 17], [1, 40, 3, 70], 24),
          ([19], [130, 64, 65], 9), ([16, 16], [16], 16)]


def starts(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def made(rng, queries, documents, d):
    """(queries, starts, documents, starts) with some similarities equal: a row of the documents stands twice."""
    docs = rng.standard_normal((sum(documents), d)).astype(F)
    docs[-1] = docs[len(docs) // 2]
    return rng.standard_normal((sum(queries), d)).astype(F), starts(queries), docs, starts(documents)


def forward(q, qs, docs, ds):
    scores, winners = np.full((len(qs) - 1, len(ds) - 1), 7, F), np.full((len(q), len(ds) - 1), 7, np.int32)
    k.maxsim_forward(q, qs, docs, ds, scores, winners)
    return scores, winners


def backward(dscores, arrays, winners, function=None):
    dq, dd = np.full_like(arrays[0], 7), np.full_like(arrays[2], 7)
    (function or k.maxsim_backward)(dscores, *arrays, winners, dq, dd)
    return dq, dd


def lse(arrays, temperature):
    q, qs, docs, ds = arrays
    scores, shares = np.full((len(qs) - 1, len(ds) - 1), 7, F), np.full((len(docs), len(q)), 7, F)
    k.maxsim_lse_forward(*arrays, scores, shares, temperature=temperature)
    return scores, shares


@pytest.mark.parametrize("queries, documents, d", SHAPES)
def test_bits_equal_reference(path, rng, queries, documents, d):
    arrays = made(rng, queries, documents, d)
    dscores = rng.standard_normal((len(queries), len(documents))).astype(F)
    want, want_winners = ref.maxsim_forward(*arrays)
    want_back = ref.maxsim_backward(dscores, *arrays, want_winners)
    want_lse, want_shares = ref.maxsim_lse_forward(*arrays, 0.3)
    want_lse_back = ref.maxsim_lse_backward(dscores, *arrays, want_shares)
    for degree in (1, 2, 3):
        with k.degree(degree):
            scores, winners = forward(*arrays)
            assert same_bits(scores, want) and np.array_equal(winners, want_winners)
            assert all(map(same_bits, backward(dscores, arrays, winners), want_back))
            scores, shares = lse(arrays, 0.3)
            assert same_bits(scores, want_lse) and same_bits(shares, want_shares)
            assert all(map(same_bits, backward(dscores, arrays, shares, k.maxsim_lse_backward), want_lse_back))


def double(rng, arrays, dscores, value):
    """(scores, dq, dd) of a scorer in float64 by torch."""
    torch = pytest.importorskip("torch")
    q, docs = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (arrays[0], arrays[2]))
    cut = [[x[a:b] for a, b in zip(s, s[1:])] for x, s in ((q, arrays[1]), (docs, arrays[3]))]
    scores = torch.stack([torch.stack([value(torch, a @ b.T).sum() for b in cut[1]]) for a in cut[0]])
    (scores * torch.tensor(dscores, dtype=torch.float64)).sum().backward()
    return scores.detach().numpy(), q.grad.numpy(), docs.grad.numpy()


def test_values_and_gradients_against_float64(path, rng):
    arrays = made(rng, [5, 1, 17], [1, 40, 3, 70], 24)
    dscores = rng.standard_normal((3, 4)).astype(F)
    scores, winners = forward(*arrays)
    got = scores, *backward(dscores, arrays, winners)
    want = double(rng, arrays, dscores, lambda torch, s: s.max(1).values)
    assert all(np.abs(a - b).max() < 2e-5 for a, b in zip(got, want))
    scores, shares = lse(arrays, 0.7)
    got = scores, *backward(dscores, arrays, shares, k.maxsim_lse_backward)
    want = double(rng, arrays, dscores, lambda torch, s: 0.7 * torch.logsumexp(s / 0.7, 1))
    assert all(np.abs(a - b).max() < 5e-5 for a, b in zip(got, want))


def test_gradients_are_difference_quotients(rng):
    arrays = made(rng, [2, 3], [4, 2], 3)
    dscores = rng.standard_normal((2, 2)).astype(F)
    for run in (forward, lambda *a: lse(a, 0.5)):
        _, kept = run(*arrays)
        gradients = backward(dscores, arrays, kept, k.maxsim_backward if run is forward else k.maxsim_lse_backward)
        for which, gradient in zip((0, 2), gradients):
            for at in np.ndindex(gradient.shape):
                values = []
                for step in (2.0**-9, -(2.0**-9)):
                    moved = [a.copy() for a in arrays]
                    moved[which][at] += F(step)
                    values.append(float((run(*moved)[0].astype(np.float64) * dscores).sum()))
                assert abs((values[0] - values[1]) * 2.0**8 - gradient[at]) < 5e-3


def test_a_row_of_the_document_with_several_winners_and_one_with_none():
    q, docs = np.array([[1, 0], [2, 0], [0, 1]], F), np.array([[1, 0], [0, 1], [-1, -1]], F)
    scores, winners = forward(q, starts([3]), docs, starts([3]))
    assert scores == 4.0 and winners.ravel().tolist() == [0, 0, 1]
    dq, dd = backward(np.array([[1.0]], F), (q, starts([3]), docs, starts([3])), winners)
    assert np.array_equal(dq, docs[[0, 0, 1]]) and np.array_equal(dd, [[3, 0], [0, 1], [0, 0]])


def test_equal_similarities_go_to_the_first_row(path):
    q, docs = np.ones((20, 3), F), np.array([[0, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]], F)
    scores, winners = forward(q, starts([20]), docs, starts([4]))
    assert (winners == 1).all() and scores == 60.0
    _, dd = backward(np.ones((1, 1), F), (q, starts([20]), docs, starts([4])), winners)
    assert np.array_equal(dd, [[0, 0, 0], [20, 20, 20], [0, 0, 0], [0, 0, 0]])


def test_negative_similarities_stay_negative():
    q, docs = np.array([[1, 0]], F), np.array([[-0.6, 0.8], [-1, 0]], F)
    scores, winners = forward(q, starts([1]), docs, starts([2]))
    assert same_bits(scores, np.array([[-0.6]], F)) and winners == 0


def test_nan_and_infinities(path):
    q, docs = np.array([[1, 0], [0, 1]], F), np.array([[1, 5], [np.nan, 2], [9, 3], [np.nan, 7]], F)
    scores, winners = forward(q, starts([2]), docs, starts([4]))
    assert np.isnan(scores).all() and winners.ravel().tolist() == [1, 1]  # 0 * NaN reaches the second query row too
    scores, winners = forward(q, starts([2]), np.array([[-3e38, 3], [-3e38, 4]], F), starts([2]))
    assert winners.ravel().tolist() == [0, 1] and scores == F(-3e38)
    assert np.isnan(lse((q, starts([2]), docs, starts([4])), 1.0)[0]).all()


def test_a_document_scores_the_same_among_others_and_alone(path, rng):
    """Bits do not depend on what lies before or behind a document or a query."""
    q, qs, docs, ds = made(rng, [7, 20], [3, 90, 31], 40)
    scores, winners = forward(q, qs, docs, ds)
    smooth, _ = lse((q, qs, docs, ds), 0.2)
    for a in range(2):
        for b in range(3):
            mine, its = q[qs[a]:qs[a + 1]], docs[ds[b]:ds[b + 1]]
            one, one_winners = forward(mine, starts([len(mine)]), its, starts([len(its)]))
            assert same_bits(one, scores[a:a + 1, b:b + 1])
            assert np.array_equal(one_winners[:, 0], winners[qs[a]:qs[a + 1], b])
            alone = lse((mine, starts([len(mine)]), its, starts([len(its)])), 0.2)[0]
            assert same_bits(alone, smooth[a:a + 1, b:b + 1])


def test_the_smooth_form_approaches_the_maximum_from_above(rng):
    arrays = made(rng, [6], [9, 4], 8)
    scores, _ = forward(*arrays)
    gaps = [(lse(arrays, t)[0] - scores).min() for t in (1.0, 0.1, 0.001)]
    assert gaps[0] > gaps[1] > 0 and abs(gaps[2]) < 1e-2
    # it can rank in another order: two rows that are nearly as good together outdo one that is better
    q, docs = np.array([[1.0]], F), np.array([[1.0], [0.9], [0.9]], F)
    hard, soft = forward(q, starts([1]), docs, starts([1, 2]))[0], lse((q, starts([1]), docs, starts([1, 2])), 1.0)[0]
    assert hard[0, 0] > hard[0, 1] and soft[0, 0] < soft[0, 1]


def test_empty_sides_and_width(path):
    none, some = np.zeros((0, 4), F), np.ones((3, 4), F)
    dq, dd = backward(np.zeros((0, 1), F), (none, starts([]), some, starts([3])), np.zeros((0, 1), np.int32))
    assert dq.shape == (0, 4) and (dd == 0).all()
    scores, winners = forward(np.zeros((2, 0), F), starts([2]), np.zeros((3, 0), F), starts([3]))
    assert scores == 0 and (winners == 0).all()
    assert forward(none, starts([]), some, starts([3]))[0].shape == (0, 1)


@pytest.mark.parametrize("change, message", [
    ({"query_starts": starts([1, 2])}, r"query_starts\[-1\] = 3: expected 2"),
    ({"document_starts": np.array([0, 3, 3, 3])}, r"document_starts\[2\] = 3: expected more than 3, the one before"),
    ({"document_starts": np.array([1, 3])}, "document_starts: expected 0 first"),
    ({"documents": np.zeros((3, 5), F)}, "documents has rows of 5: expected 4, as queries"),
    ({"winners": np.zeros((2, 2), np.int32)}, r"winners has shape \(2, 2\): expected \(2, 1\)"),
])
def test_wrong_arguments_are_named(change, message):
    good = {"queries": np.zeros((2, 4), F), "query_starts": starts([2]), "documents": np.zeros((3, 4), F),
            "document_starts": starts([3]), "scores": np.zeros((1, 1), F), "winners": np.zeros((2, 1), np.int32)}
    with pytest.raises(ValueError, match=message):
        k.maxsim_forward(**(good | change))
    with pytest.raises(ValueError, match=r"winners\[1, 0\] = 3: expected a row of document 0, 0..2"):
        k.maxsim_backward(np.zeros((1, 1), F), good["queries"], good["query_starts"], good["documents"],
                          good["document_starts"], np.array([[0], [3]], np.int32))
    with pytest.raises(ValueError, match="temperature = 0.0: expected a finite number > 0"):
        k.maxsim_lse_forward(good["queries"], good["query_starts"], good["documents"], good["document_starts"],
                             good["scores"], temperature=0.0)
