import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import regression as ref

f32 = np.float32
SHAPES = [(0, 3), (1, 1), (3, 2), (17, 21), (300, 33)]
KINDS = ["squared", "absolute", "huber"]


def backward(prediction, target, counted=None, **settings):
    d = np.full(prediction.shape, np.nan, f32)
    return k.regression_backward(prediction, target, counted, d, **settings), d


def gaussian_backward(mean, log_variance, target, counted=None, **settings):
    d, e = np.full(mean.shape, np.nan, f32), np.full(mean.shape, np.nan, f32)
    return k.gaussian_nll_backward(mean, log_variance, target, counted, d, e, **settings), d, e


@pytest.mark.parametrize("rows, columns", SHAPES)
@pytest.mark.parametrize("masked", [False, True])
def test_bits_equal_reference(path, rng, rows, columns, masked):
    x, s = ((rng.standard_normal((rows, columns)) * 3).astype(f32) for _ in "xs")
    y = rng.standard_normal((rows, columns)) * 3
    counted = (rng.random((rows, columns)) < 0.7).astype(np.uint8) if masked else None
    if masked:
        y[counted == 0] = np.nan  # what stands at a missing target never matters
    for degree in (1, 2, 3):
        with k.degree(degree):
            losses = np.empty((rows, columns))
            for kind in KINDS:
                got = k.regression_forward(x, y, counted, losses, kind=kind, delta=1.5)
                want = ref.regression_forward(x, y, counted, kind, 1.5)
                assert got == want[:2] and np.array_equal(losses, want[2])
                for scale, denominator in ((1.0, None), (-0.3, 17.0)):
                    totals, d = backward(x, y, counted, kind=kind, delta=1.5, scale=scale, denominator=denominator)
                    assert totals == got
                    assert same_bits(d, ref.regression_backward(x, y, counted, kind, 1.5, scale, denominator))
            got = k.gaussian_nll_forward(x, s, y, counted, losses)
            want = ref.gaussian_nll_forward(x, s, y, counted)
            assert got == want[:2] and np.array_equal(losses, want[2])
            totals, d, e = gaussian_backward(x, s, y, counted, scale=0.7)
            assert totals == got
            for a, b in zip((d, e), ref.gaussian_nll_backward(x, s, y, counted, 0.7)):
                assert same_bits(a, b)


def test_agrees_with_torch_in_float64(rng):
    x, y = rng.standard_normal((40, 5)).astype(f32), rng.standard_normal((40, 5))
    t, target = torch.tensor(x, dtype=torch.float64, requires_grad=True), torch.tensor(y)
    nn = torch.nn.functional
    for kind, loss in (("squared", nn.mse_loss(t, target)), ("absolute", nn.l1_loss(t, target)),
                       ("huber", nn.huber_loss(t, target, delta=0.8))):
        t.grad = None
        loss.backward()
        (numerator, denominator), d = backward(x, y, kind=kind, delta=0.8)
        assert abs(numerator / denominator - loss.item()) < 1e-14
        assert np.abs(d - t.grad.numpy()).max() <= np.abs(d).max() * 2.0**-23
    s = rng.standard_normal((40, 5)).astype(f32)
    u = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    t.grad = None
    loss = nn.gaussian_nll_loss(t, target, u.exp(), full=True)
    loss.backward()
    (numerator, denominator), d, e = gaussian_backward(x, s, y)
    assert abs(numerator / denominator - loss.item()) < 1e-13
    assert np.abs(d - t.grad.numpy()).max() < 1e-7 and np.abs(e - u.grad.numpy()).max() < 1e-7


def test_difference_quotients(rng):
    x, s, y = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.standard_normal((3, 4)) * 2
    x32, s32 = x.astype(f32), s.astype(f32)
    for kind in KINDS:
        _, d = backward(x32, y, kind=kind, delta=0.9, denominator=1.0)
        for place in np.ndindex(x.shape):
            step = np.zeros(x.shape, f32)
            step[place] = 2.0**-10
            up, down = (k.regression_forward(x32 + h, y, kind=kind, delta=0.9)[0] for h in (step, -step))
            assert abs((up - down) * 2.0**9 - d[place]) < 2e-3
    _, dm, dv = gaussian_backward(x32, s32, y, denominator=1.0)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape, f32)
        step[place] = 2.0**-10
        for d, ups in ((dm, ((x32 + step, s32), (x32 - step, s32))), (dv, ((x32, s32 + step), (x32, s32 - step)))):
            up, down = (k.gaussian_nll_forward(*a, y)[0] for a in ups)
            assert abs((up - down) * 2.0**9 - d[place]) < 3e-3 * max(1, abs(d[place]))


def test_the_border_of_huber_is_quadratic():
    x, y = np.array([[2, -2, 2.5, 0]], f32), np.zeros((1, 4))
    losses = np.empty((1, 4))
    k.regression_forward(x, y, None, losses, kind="huber", delta=2.0)
    assert losses.tolist() == [[2.0, 2.0, 3.0, 0.0]]
    _, d = backward(x, y, kind="huber", delta=2.0, denominator=1.0)
    assert d.tolist() == [[2.0, -2.0, 2.0, 0.0]]


def test_nothing_counted_and_edges(path):
    x, y = np.array([[1, np.nan]], f32), np.array([[np.nan, 0.0]])
    assert k.regression_forward(x, y, np.zeros((1, 2), np.uint8)) == (0.0, 0.0)
    totals, d = backward(x, y, np.zeros((1, 2), np.uint8))
    assert totals == (0.0, 0.0) and same_bits(d, np.zeros((1, 2), f32))
    _, d = backward(x, y)
    assert np.isnan(d).all()
    _, d = backward(np.array([[1, 3e38]], f32), np.array([[1.0, -1e308]]), kind="absolute", denominator=1.0)
    assert d.tolist() == [[0.0, 1.0]]


def test_wrong_arguments_are_named():
    x, y, d = np.zeros((2, 3), f32), np.zeros((2, 3)), np.zeros((2, 3), f32)
    for wrong, message in (
            (lambda: k.regression_forward(x, y[:1]), r"target has shape \(1, 3\)"),
            (lambda: k.regression_forward(x, y, np.ones((2, 2), np.uint8)), r"counted has shape \(2, 2\)"),
            (lambda: k.regression_forward(x, y, kind="mse"), "kind = 'mse': expected one of 'squared'"),
            (lambda: k.regression_forward(x, y, kind="huber", delta=0.0), "delta = 0.0"),
            (lambda: k.regression_backward(x, y, None, d[:1]), r"dprediction has shape \(1, 3\)"),
            (lambda: k.regression_backward(x, y, None, d, scale=np.nan), "scale = nan"),
            (lambda: k.gaussian_nll_forward(x, x[:1], y), r"log_variance has shape \(1, 3\)"),
            (lambda: k.gaussian_nll_backward(x, x, y, None, d, d, denominator=-1.0), "denominator = -1.0")):
        with pytest.raises(ValueError, match=message):
            wrong()
