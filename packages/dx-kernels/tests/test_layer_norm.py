import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import layer_norm as ref_layer_norm

SHAPES = [(1, 1), (1, 16), (3, 5), (7, 192), (33, 100), (64, 257), (600, 40)]


def forward(x, w, b, eps=1e-5):
    y, xhat, inv = np.empty_like(x), np.empty_like(x), np.empty(len(x), np.float32)
    k.layer_norm_forward(x, w, b, y, xhat, inv, eps=eps)
    return y, xhat, inv


@pytest.mark.parametrize("rows, d", SHAPES)
def test_bits_equal_reference(path, rng, rows, d):
    x, dy = (rng.standard_normal((2, rows, d)) * 3).astype(np.float32)
    w, b = rng.standard_normal((2, d)).astype(np.float32)
    want = ref_layer_norm.layer_norm_forward(x, w, b)
    for degree in (1, 2, 3):
        with k.degree(degree):
            got = forward(x, w, b)
            assert all(same_bits(g, e) for g, e in zip(got, want))
            dx, dw, db = np.empty_like(x), np.empty(d, np.float32), np.empty(d, np.float32)
            k.layer_norm_backward(dy, got[1], got[2], w, dx, dw, db)
            expected = ref_layer_norm.layer_norm_backward(dy, want[1], want[2], w)
            assert all(same_bits(g, e) for g, e in zip((dx, dw, db), expected))


def backward(dy, xhat, inv, w):
    dx, dw, db = np.empty_like(dy), np.empty(dy.shape[1], np.float32), np.empty(dy.shape[1], np.float32)
    k.layer_norm_backward(dy, xhat, inv, w, dx, dw, db)
    return dx, dw, db


def exact(x, w, b, dy, eps):
    """(y, dx, dw, db) of the two-pass formulas in float64."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    c = x - x.mean(1, keepdims=True)
    inv = 1 / np.sqrt((c * c).mean(1, keepdims=True) + eps)
    xhat, g = c * inv, dy * w
    dx = inv * (g - g.mean(1, keepdims=True) - xhat * (g * xhat).mean(1, keepdims=True))
    return xhat * w + b, dx, (dy * xhat).sum(0), dy.sum(0)


@pytest.mark.parametrize("rows, d, offset, tolerance", [(64, 192, 0, 2e-6), (5, 33, 0, 2e-6), (200, 257, 10, 2e-6),
                                                        (64, 192, 1000, 2e-6), (64, 192, 1e5, 2e-6)])
def test_accuracy_against_float64(rng, rows, d, offset, tolerance):
    """The error does not grow with the row's mean."""
    x, dy = rng.standard_normal((2, rows, d)).astype(np.float32)
    x = (x + offset).astype(np.float32)
    w, b = rng.standard_normal((2, d)).astype(np.float32)
    y, xhat, inv = forward(x, w, b)
    for got, want in zip((y, *backward(dy, xhat, inv, w)), exact(x, w, b, dy, 1e-5), strict=True):
        assert np.abs(got - want).max() <= tolerance * max(1, np.abs(want).max())


def test_gradient_is_the_difference_quotient(rng):
    x, dy = rng.standard_normal((2, 3, 7))
    w, b = rng.standard_normal((2, 7))

    def loss(x, w, b):
        return (exact(x, w, b, dy, 1e-5)[0] * dy).sum()
    y, xhat, inv = forward(*(a.astype(np.float32) for a in (x, w, b)))
    got = backward(dy.astype(np.float32), xhat, inv, w.astype(np.float32))
    for which, gradient in enumerate(got):
        for index in np.ndindex(gradient.shape):
            values = []
            for h in (1e-5, -1e-5):
                arguments = [x.copy(), w.copy(), b.copy()]
                arguments[which][index] += h
                values.append(loss(*arguments))
            assert abs((values[0] - values[1]) / 2e-5 - gradient[index]) < 1e-4


def test_rows_with_a_large_mean(path):
    """Case num-10: the float64 two-pass result within 1e-4, backward too."""
    x, dy = np.array([[2000.25, 2001.5, 1998.75, 2000.0]], np.float32), np.array([[1, 0, 0, -1]], np.float32)
    y, xhat, inv = forward(x, None, None)
    dx, _, _ = backward(dy, xhat, inv, None)
    want_y, want_dx, _, _ = exact(x, 1.0, 0.0, dy, 1e-5)
    assert np.abs(y - want_y).max() < 1e-4 and np.abs(dx - want_dx).max() < 1e-4


@pytest.mark.parametrize("m", [0, 100, 1000, 10000])
def test_ramps_with_an_offset(path, m):
    """Case num-14."""
    x = (m + np.arange(16) * 1e-3).astype(np.float32)[None]
    y, _, _ = forward(x, None, None)
    want = exact(x, 1.0, 0.0, x, 1e-5)[0]
    assert np.abs(y - want).max() < 1e-6


def test_huge_rows_are_not_nan(path):
    for row in ([40000, 40001, 40002, 40003], [1e18, -1e18, 0, 1]):
        y, xhat, inv = forward(np.array([row], np.float32), None, None)
        want = exact(np.array([row], np.float32), 1.0, 0.0, y, 1e-5)[0]
        assert np.abs(y - want).max() < 1e-6
        assert np.isfinite(backward(y, xhat, inv, None)[0]).all()


@pytest.mark.parametrize("d, value, eps", [(2, 2.0, 1e-6), (2, 14.0, 1e-6), (2, 14.0, 1e-12), (768, 1e6, 1e-6),
                                           (768, 1e6, 1e-12), (255, 1234.0, 1e-5), (256, 1234.0, 1e-5),
                                           (257, 1234.0, 1e-5), (257, 1234.567, 1e-5), (257, 1234.567, 1e-12),
                                           (1000, 0.1, 1e-12), (1, 1234.567, 1e-5), (1, -3e38, 1e-5)])
def test_constant_row_is_exactly_the_bias(path, d, value, eps):
    """Cases num-11, num-13."""
    x, bias = np.full((1, d), value, np.float32), np.full(d, 0.25, np.float32)
    y, xhat, inv = forward(x, None, bias, eps)
    assert (y == bias).all() and (xhat == 0).all()
    assert np.isfinite(backward(np.ones_like(x), xhat, inv, None)[0]).all()


def test_no_rows_and_nan_rows(path):
    empty = np.zeros((0, 5), np.float32)
    y, xhat, inv = forward(empty, None, None)
    dx, dw, db = backward(empty, xhat, inv, None)
    assert same_bits(dw, np.zeros(5, np.float32)) and same_bits(db, np.zeros(5, np.float32))
    x = np.ones((3, 4), np.float32)
    x[1, 2], x[2, 0] = np.nan, np.inf
    y, _, _ = forward(x, None, None)
    assert (y[0] == 0).all() and np.isnan(y[1:]).all()


def test_in_place_and_read_only(rng):
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((9, 20), 20, 20))
    want = forward(x, w, b)[0]
    for a in (x, w, b):
        a.setflags(write=False)
    assert same_bits(forward(x, w, b)[0], want)
    y = x.copy()
    k.layer_norm_forward(y, w, b, y)
    assert same_bits(y, want)


def test_wrong_shapes_are_named():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"weight has shape \(2,\): expected \(3,\)"):
        k.layer_norm_forward(x, np.zeros(2, np.float32), None, x.copy())
    with pytest.raises(ValueError, match="eps = nan"):
        k.layer_norm_forward(x, None, None, x.copy(), eps=float("nan"))


def test_dx_may_be_dy(path, rng):
    x, dy = rng.standard_normal((2, 9, 40)).astype(np.float32)
    w = rng.standard_normal(40).astype(np.float32)
    _, xhat, inv = forward(x, w, None)
    separate, in_place = np.empty_like(dy), dy.copy()
    sums = np.empty((4, 40), np.float32)
    k.layer_norm_backward(dy, xhat, inv, w, separate, sums[0], sums[1])
    k.layer_norm_backward(in_place, xhat, inv, w, in_place, sums[2], sums[3])
    assert same_bits(separate, in_place) and same_bits(sums[:2], sums[2:])
