import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import contrastive as ref

F = np.float32


def made(rng, rows, columns, masked=True, weighted=True):
    """(scores, positive, admit, weight)."""
    scores = (rng.standard_normal((rows, columns)) * 3).astype(F)
    positive = (rng.random((rows, columns)) < 0.15).astype(np.uint8)
    positive[np.arange(rows), rng.integers(0, columns, rows)] = 1
    admit = ((rng.random((rows, columns)) < 0.7) | (positive > 0)).astype(np.uint8) if masked else None
    return scores, positive, admit, rng.random((rows, columns)) + 0.1 if weighted else None


def backward(scores, positive, admit=None, weight=None, **settings):
    d, losses = np.full(scores.shape, np.nan, F), np.full(len(scores), np.nan)
    return k.contrastive_backward(scores, positive, d, admit=admit, weight=weight, losses=losses, **settings), d, losses


@pytest.mark.parametrize("rows, columns", [(0, 5), (1, 1), (3, 2), (17, 21), (40, 130)])
@pytest.mark.parametrize("masked, weighted", [(False, False), (True, False), (True, True)])
def test_bits_equal_reference(path, rng, rows, columns, masked, weighted):
    scores, positive, admit, weight = made(rng, rows, columns, masked, weighted)
    for temperature, scale, denominator in ((1.0, 1.0, None), (0.05, 0.5, 7.0)):
        want = ref.contrastive_forward(scores, positive, temperature, admit, weight)
        want_d = ref.contrastive_backward(scores, positive, temperature, admit, weight, scale, denominator)
        for degree in (1, 2, 3):
            with k.degree(degree):
                losses = np.empty(rows)
                got = k.contrastive_forward(scores, positive, temperature=temperature, admit=admit, weight=weight,
                                            losses=losses)
                assert got == want[:2] and np.array_equal(losses, want[2])
                totals, d, again = backward(scores, positive, admit, weight, temperature=temperature, scale=scale,
                                            denominator=denominator)
                assert totals == got and np.array_equal(again, losses) and same_bits(d, want_d)


def test_agrees_with_torch_in_float64(rng):
    scores, positive, admit, _ = made(rng, 30, 50, weighted=False)
    x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    z, inf = x / 0.1, float("inf")
    rows = (torch.logsumexp(z.masked_fill(torch.tensor(admit) == 0, -inf), 1)
            - torch.logsumexp(z.masked_fill(torch.tensor(positive) == 0, -inf), 1))
    rows.mean().backward()
    (numerator, count), d, losses = backward(scores, positive, admit, temperature=0.1)
    assert count == 30 and abs(numerator / count - rows.mean().item()) < 1e-12
    assert np.abs(losses - rows.detach().numpy()).max() < 1e-11
    assert np.abs(d - x.grad.numpy()).max() <= np.abs(d).max() * 2.0**-23


def test_gradient_is_the_difference_quotient(rng):
    scores, positive, admit, weight = made(rng, 4, 6)

    def loss(x):
        return k.contrastive_forward(x, positive, temperature=0.5, admit=admit, weight=weight)[0]
    _, d, _ = backward(scores, positive, admit, weight, temperature=0.5, denominator=1.0)
    for at in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[at] = 2.0**-8
        assert abs((loss(scores + step) - loss(scores - step)) * 2.0**7 - d[at]) < 2e-3


def test_one_positive_gives_the_softmax_minus_one_at_it(path):
    """The gradient with respect to a score is (softmax - [positive]) / temperature: lower temperatures sharpen it."""
    scores, positive = np.array([[2, 1, 0]], F), np.array([[0, 1, 0]], np.uint8)
    for temperature in (1.0, 0.5):
        e = np.exp(np.array([2.0, 1, 0]) / temperature)
        (loss, _), d, _ = backward(scores, positive, temperature=temperature)
        want = (e / e.sum() - [0, 1, 0]) / temperature
        assert np.abs(d - want).max() < 1e-7 and abs(loss + np.log(e[1] / e.sum())) < 1e-12


def test_all_admitted_positive_is_no_loss(path):
    totals, d, losses = backward(np.array([[3, -1e30, 2]], F), np.array([[1, 0, 1]], np.uint8),
                                 np.array([[1, 0, 1]], np.uint8), temperature=0.1)
    assert totals == (0.0, 1) and same_bits(d, np.zeros((1, 3), F)) and losses[0] == 0


def test_a_far_positive_has_a_finite_loss(path):
    (loss, _), d, _ = backward(np.array([[3e4, -3e4]], F), np.array([[0, 1]], np.uint8), temperature=1.0)
    assert loss == 6e4 and np.array_equal(d, [[1, -1]])


def test_nan_and_infinities():
    for bad in (np.nan, np.inf):
        totals, d, _ = backward(np.array([[bad, 1], [2, 1]], F), np.array([[0, 1], [1, 0]], np.uint8), temperature=1.0)
        assert np.isnan(totals[0]) and np.isnan(d[0]).all() and np.isfinite(d[1]).all()
    admit, positive = np.array([[1, 1, 0]], np.uint8), np.array([[1, 0, 0]], np.uint8)
    with_nan, without = (backward(np.array([[1, 2, x]], F), positive, admit, temperature=1.0) for x in (np.nan, 5))
    assert with_nan[0] == without[0] and same_bits(with_nan[1], without[1])


def test_parts_of_a_batch_give_its_gradient(rng):
    scores, positive, admit, _ = made(rng, 6, 6)
    _, whole, _ = backward(scores, positive, admit, temperature=0.2)
    parts = [backward(scores[i:i + 2], positive[i:i + 2], admit[i:i + 2], temperature=0.2, denominator=6)[1]
             for i in (0, 2, 4)]
    assert same_bits(np.concatenate(parts), whole)


ONE = np.ones((2, 3), np.uint8)


@pytest.mark.parametrize("change, message", [
    ({"positive": np.array([[1, 0, 0], [0, 0, 0]], np.uint8)}, "positive: row 1 has no positive column"),
    ({"admit": np.array([[1, 1, 1], [1, 0, 1]], np.uint8)}, r"positive\[1, 1\] is set and admit\[1, 1\] is 0"),
    ({"temperature": 0.0}, "temperature = 0.0: expected a finite number > 0"),
    ({"temperature": float("nan")}, "temperature = nan: expected a finite number > 0"),
    ({"weight": np.array([[1, 1, 1], [1, -1, 1.0]])}, r"weight\[1, 1\] = -1.0: expected a finite number >= 0"),
    ({"weight": np.array([[1, 1, 1], [1, 0, 1.0]])}, r"weight\[1, 1\] = 0: expected a positive's weight above 0"),
    ({"admit": np.ones((3, 3), np.uint8)}, r"admit has shape \(3, 3\): expected \(2, 3\)"),
    ({"losses": np.zeros(3)}, r"losses has shape \(3,\): expected \(2,\)"),
])
def test_wrong_arguments_are_named(change, message):
    good = {"scores": np.zeros((2, 3), F), "positive": ONE, "temperature": 1.0}
    with pytest.raises(ValueError, match=message):
        k.contrastive_forward(**(good | change))
