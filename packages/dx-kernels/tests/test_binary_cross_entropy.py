import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import binary_cross_entropy as ref

f32 = np.float32


def backward(logits, targets, positive=None, negative=None, **settings):
    d = np.full(logits.shape, np.nan, f32)
    return k.binary_cross_entropy_backward(logits, targets, positive, negative, d, **settings), d


@pytest.mark.parametrize("rows, columns", [(0, 5), (1, 1), (3, 2), (17, 21), (300, 33)])
@pytest.mark.parametrize("gamma", [0.0, 2.0, 0.5])
def test_bits_equal_reference(path, rng, rows, columns, gamma):
    z = (rng.standard_normal((rows, columns)) * 8).astype(f32)
    y = rng.integers(-1, 2, (rows, columns)).astype(np.int32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            for positive, negative in ((None, None), (rng.random(columns) * 3, rng.random(columns))):
                losses = np.empty((rows, columns))
                got = k.binary_cross_entropy_forward(z, y, positive, negative, losses, gamma=gamma)
                want = ref.binary_cross_entropy_forward(z, y, positive, negative, gamma)
                assert got == want[:2] and np.array_equal(losses, want[2])
                totals, d = backward(z, y, positive, negative, gamma=gamma, scale=0.3)
                assert totals == got
                assert same_bits(d, ref.binary_cross_entropy_backward(z, y, positive, negative, gamma, 0.3))


def test_agrees_with_torch_in_float64(rng):
    z, y = (rng.standard_normal((50, 9)) * 4).astype(f32), rng.integers(0, 2, (50, 9)).astype(np.int32)
    weight = rng.random(9) * 5
    t, target = torch.tensor(z, dtype=torch.float64, requires_grad=True), torch.tensor(y, dtype=torch.float64)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(t, target, pos_weight=torch.tensor(weight))
    loss.backward()
    (numerator, denominator), d = backward(z, y, weight)
    assert abs(numerator / denominator - loss.item()) < 1e-14
    assert np.abs(d - t.grad.numpy()).max() <= np.abs(d).max() * 2.0**-23
    t.grad = None  # focal, alpha 0.25, gamma 2
    p = torch.where(target > 0, torch.sigmoid(t), torch.sigmoid(-t))
    alpha = torch.where(target > 0, 0.25, 0.75)
    loss = -(alpha * (1 - p) ** 2 * torch.log(p)).mean()
    loss.backward()
    (numerator, denominator), d = backward(z, y, np.full(9, 0.25), np.full(9, 0.75), gamma=2.0)
    assert abs(numerator / denominator - loss.item()) < 1e-14
    assert np.abs(d - t.grad.numpy()).max() <= np.abs(d).max() * 2.0**-22


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.5])
def test_difference_quotients(rng, gamma):
    z, y = rng.standard_normal((3, 4)).astype(f32), np.array([[0, 1, -1, 1], [1, 1, 0, 0], [0, 0, 1, -1]], np.int32)
    _, d = backward(z, y, gamma=gamma, denominator=1.0)
    for place in np.ndindex(z.shape):
        step = np.zeros(z.shape, f32)
        step[place] = 2.0**-10
        up, down = (k.binary_cross_entropy_forward(z + h, y, gamma=gamma)[0] for h in (step, -step))
        assert abs((up - down) * 2.0**9 - d[place]) < 1e-3


def test_the_plain_gradient_is_probability_minus_target():
    z, y = np.array([[0, 0, 3]], f32), np.array([[0, 1, 1]], np.int32)
    _, d = backward(z, y, denominator=1.0)
    assert d.tolist() == [[0.5, -0.5, f32(1 / (1 + np.exp(-3.0)) - 1)]]


def test_labels_do_not_compete():
    """Changing one label's logit moves no other label's gradient (a softmax would)."""
    z, y = np.array([[1, -2, 0.5]], f32), np.array([[1, 0, 1]], np.int32)
    other = z.copy()
    other[0, 1] = 9
    assert same_bits(backward(z, y)[1][:, [0, 2]].copy(), backward(other, y)[1][:, [0, 2]].copy())


def test_extremes_and_ignored(path):
    z = np.array([[3e38, -3e38, np.nan, np.inf, -np.inf, np.nan]], f32)
    y = np.array([[1, 1, 1, 0, 1, -1]], np.int32)
    for gamma in (0.0, 2.0):
        losses = np.empty((1, 6))
        k.binary_cross_entropy_forward(z, y, None, None, losses, gamma=gamma)
        assert losses[0, 0] == 0 and losses[0, 1] == float(f32(3e38)) and np.isnan(losses[0, 2])
        assert losses[0, 3] == losses[0, 4] == np.inf and losses[0, 5] == 0
        _, d = backward(z, y, gamma=gamma, denominator=1.0)
        assert d[0, [0, 1, 3, 4, 5]].tolist() == [0, -1, 1, -1, 0] and np.isnan(d[0, 2])
    totals, d = backward(z, np.full((1, 6), -1, np.int32))
    assert totals == (0.0, 0.0) and same_bits(d, np.zeros((1, 6), f32))


def test_wrong_arguments_are_named():
    z, y, d = np.zeros((2, 3), f32), np.zeros((2, 3), np.int32), np.zeros((2, 3), f32)
    bad = y.copy()
    bad[1, 2] = 2
    for wrong, message in (
            (lambda: k.binary_cross_entropy_forward(z, bad), r"targets\[1, 2\] = 2: expected 0, 1, or -1"),
            (lambda: k.binary_cross_entropy_forward(z, y[:1]), r"targets has shape \(1, 3\)"),
            (lambda: k.binary_cross_entropy_forward(z, y, np.ones(2)), r"positive has shape \(2,\)"),
            (lambda: k.binary_cross_entropy_forward(z, y, None, np.array([1, -1.0, 1])), r"negative\[1\] = -1.0"),
            (lambda: k.binary_cross_entropy_forward(z, y, gamma=-0.5), "gamma = -0.5"),
            (lambda: k.binary_cross_entropy_backward(z, y, None, None, d, scale=np.inf), "scale = inf"),
            (lambda: k.binary_cross_entropy_backward(z, y, None, None, d[:1]), r"dlogits has shape \(1, 3\)")):
        with pytest.raises(ValueError, match=message):
            wrong()
