import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import cross_entropy as ref

f32 = np.float32
SHAPES = [(0, 5), (1, 1), (3, 2), (17, 21), (40, 257), (300, 33)]


def targets_of(rng, rows, columns):
    return rng.integers(-1, columns, rows).astype(np.int32)


def backward(logits, targets, weight=None, admit=None, **settings):
    d = np.full(logits.shape, np.nan, f32)
    return k.cross_entropy_backward(logits, targets, weight, admit, d, **settings), d


@pytest.mark.parametrize("rows, columns", SHAPES)
@pytest.mark.parametrize("weighted, masked", [(False, False), (True, False), (True, True)])
def test_bits_equal_reference(path, rng, rows, columns, weighted, masked):
    logits = (rng.standard_normal((rows, columns)) * 5).astype(f32)
    targets = targets_of(rng, rows, columns)
    weight = rng.random(columns) * 3 if weighted else None
    admit = (rng.random((rows, columns)) < 0.6).astype(np.uint8) if masked else None
    if masked:
        admit[np.arange(rows), targets] = 1
    for degree in (1, 2, 3):
        with k.degree(degree):
            losses = np.empty(rows)
            got = k.cross_entropy_forward(logits, targets, weight, admit, losses)
            want = ref.cross_entropy_forward(logits, targets, weight, admit)
            assert got == want[:2] and np.array_equal(losses, want[2])
            for scale, denominator in ((1.0, None), (0.1, None), (-2.5, 17.0)):
                totals, d = backward(logits, targets, weight, admit, scale=scale, denominator=denominator)
                assert totals == got
                assert same_bits(d, ref.cross_entropy_backward(logits, targets, weight, admit, scale, denominator))


def test_agrees_with_torch_in_float64(rng):
    logits, targets = (rng.standard_normal((50, 9)) * 4).astype(f32), targets_of(rng, 50, 9)
    weight = np.full(9, 3.0)
    weight[0] = 1.0
    x = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(x, torch.tensor(targets.astype(np.int64)), torch.tensor(weight),
                                             ignore_index=-1)
    (0.25 * loss).backward()
    (numerator, denominator), d = backward(logits, targets, weight, scale=0.25)
    assert abs(numerator / denominator - loss.item()) < 1e-13
    assert np.abs(d - x.grad.numpy()).max() <= np.abs(d).max() * 2.0**-24


def test_gradient_is_the_difference_quotient(rng):
    logits, targets = rng.standard_normal((4, 6)), np.array([2, -1, 0, 5], np.int32)
    admit = np.ones((4, 6), np.uint8)
    admit[0, 4] = admit[3, 0] = 0

    def loss(x):
        numerator, denominator = k.cross_entropy_forward(x.astype(f32), targets, None, admit)
        return numerator / denominator
    logits = logits.astype(f32).astype(np.float64)
    _, d = backward(logits.astype(f32), targets, None, admit)
    for r, c in np.ndindex(4, 6):
        step = np.zeros((4, 6))
        step[r, c] = 2.0**-8
        assert abs((loss(logits + step) - loss(logits - step)) * 2.0**7 - d[r, c]) < 1e-5


def test_a_single_ignored_row(path):
    """Case num-19."""
    totals, d = backward(np.array([[1, 2, 3]], f32), np.array([-1], np.int32))
    assert totals == (0.0, 0.0)
    assert same_bits(d, np.zeros((1, 3), f32))


def test_no_weight_counted_gives_zero_gradients():
    totals, d = backward(np.ones((2, 3), f32), np.array([1, 1], np.int32), np.array([1.0, 0.0, 1.0]))
    assert totals == (0.0, 0.0)
    assert same_bits(d, np.zeros((2, 3), f32))


@pytest.mark.parametrize("bad", [-4, -2, 5])
def test_other_labels_are_refused(bad):
    """Case num-20."""
    with pytest.raises(ValueError, match=rf"targets\[2\] = {bad}: expected a column in 0\.\.4, or -1"):
        k.cross_entropy_forward(np.zeros((3, 5), f32), np.array([0, 3, bad], np.int32))


def test_the_three_reductions():
    """Case num-22: rows, sum and mean are all there, and the divisor is the sum of the weights."""
    logits = np.array([[0.2, 0.3, 0.5], [0.5, 0.2, 0.3]], f32)
    losses = np.empty(2)
    numerator, denominator = k.cross_entropy_forward(logits, np.array([2, 1], np.int32), np.array([2.0, 4.0, 6.0]),
                                                     None, losses)
    assert np.allclose(losses, [5.639, 4.959], atol=1e-3)
    assert numerator == losses[0] + losses[1] and denominator == 10.0
    assert abs(numerator / denominator - 1.0598) < 1e-4


def test_accumulated_parts_give_the_batch_gradient(rng):
    """Case num-23: with the weight of the whole step as denominator, 6 rows at once equal 2 + 2 + 2 in every byte."""
    logits, targets = rng.standard_normal((6, 2)).astype(f32), np.array([1, 1, 1, 0, 0, 1], np.int32)
    weight = np.array([0.1, 0.9])
    (_, total), whole = backward(logits, targets, weight, scale=0.5)
    parts = [backward(logits[i:i + 2], targets[i:i + 2], weight, scale=0.5, denominator=total)[1] for i in (0, 2, 4)]
    assert same_bits(np.concatenate(parts), whole)


def test_masked_columns_do_not_matter(rng):
    logits, targets = rng.standard_normal((5, 7)).astype(f32), np.array([0, 1, 2, 3, -1], np.int32)
    admit = np.ones((5, 7), np.uint8)
    admit[:, 5:] = 0
    other = logits.copy()
    other[:, 5:] = [[np.nan, np.inf]]
    (totals, d), (other_totals, other_d) = (backward(x, targets, None, admit) for x in (logits, other))
    narrow_totals, narrow = backward(np.ascontiguousarray(logits[:, :5]), targets)
    assert totals == other_totals == narrow_totals
    assert same_bits(d, other_d) and same_bits(np.ascontiguousarray(d[:, :5]), narrow)
    assert same_bits(d[:, 5:], np.zeros((5, 2), f32))
    with pytest.raises(ValueError, match=r"targets\[1\] = 6: expected an admitted column"):
        k.cross_entropy_forward(logits, np.array([0, 6, 2, 3, -1], np.int32), None, admit)


def test_extreme_logits(path):
    logits = np.array([[3e38, -3e38], [0, -1e4], [np.nan, 0], [np.inf, 0], [-np.inf, 0], [-np.inf, -np.inf]], f32)
    losses = np.empty(6)
    targets = np.array([0, 1, 0, 0, 0, 0], np.int32)
    k.cross_entropy_forward(logits, targets, None, None, losses)
    assert losses[0] == 0 and losses[1] == 1e4 and losses[4] == np.inf and np.isnan(losses[[2, 3, 5]]).all()
    _, d = backward(logits, targets, denominator=1.0)
    assert same_bits(d[:2], np.array([[0, 0], [1, -1]], f32)) and np.isnan(d[[2, 3, 5]]).all()


def test_wrong_arguments_are_named():
    z, t, d = np.zeros((2, 3), f32), np.zeros(2, np.int32), np.zeros((2, 3), f32)
    for call, message in (
            (lambda: k.cross_entropy_forward(z, t[:1]), r"targets has shape \(1,\): expected \(2,\)"),
            (lambda: k.cross_entropy_forward(z, t, np.ones(2)), r"weight has shape \(2,\): expected \(3,\)"),
            (lambda: k.cross_entropy_forward(z, t, np.array([1, -1.0, 1])), r"weight\[1\] = -1.0: expected a finite"),
            (lambda: k.cross_entropy_forward(z, t, np.array([1, 1, np.nan])), r"weight\[2\] = nan"),
            (lambda: k.cross_entropy_forward(z, t, None, np.ones((3, 2), np.uint8)), r"admit has shape \(3, 2\)"),
            (lambda: k.cross_entropy_forward(z, t, None, None, np.ones(3)), r"losses has shape \(3,\)"),
            (lambda: k.cross_entropy_backward(z, t, None, None, d[:1]), r"dlogits has shape \(1, 3\)"),
            (lambda: k.cross_entropy_backward(z, t, None, None, d, scale=np.inf), "scale = inf"),
            (lambda: k.cross_entropy_backward(z, t, None, None, d, denominator=-1.0), "denominator = -1.0")):
        with pytest.raises(ValueError, match=message):
            call()
