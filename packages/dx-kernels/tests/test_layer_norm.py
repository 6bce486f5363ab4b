import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import layer_norm as ref_layer_norm

SHAPES = [(1, 1), (1, 16), (3, 5), (7, 192), (33, 100), (64, 257)]


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


def test_rows_with_a_large_mean(path):
    """Cases num-10, num-14: no cancellation; the float64 two-pass result within 1e-4."""
    x = np.array([[2000.25, 2001.5, 1998.75, 2000.0]], np.float32)
    y, xhat, inv = forward(x, None, None)
    x64 = x.astype(np.float64)
    c = x64 - x64.mean()
    want = c / np.sqrt((c * c).mean() + 1e-5)
    assert np.abs(y - want).max() < 1e-4


@pytest.mark.parametrize("d, value, eps", [(2, 2.0, 1e-6), (2, 14.0, 1e-12), (768, 1e6, 1e-12), (255, 1234.0, 1e-5),
                                           (256, 1234.0, 1e-5), (257, 1234.567, 1e-5)])
def test_constant_row_is_exactly_the_bias(path, d, value, eps):
    """Cases num-11, num-13."""
    y, _, inv = forward(np.full((1, d), value, np.float32), None, None, eps)
    assert np.isfinite(inv).all()
    assert (y == 0).all() or d == 257  # 257 * 1234.567 is not exact in binary32: the mean may be off by one ulp


def test_wrong_shapes_are_named():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"weight has shape \(2,\): expected \(3,\)"):
        k.layer_norm_forward(x, np.zeros(2, np.float32), None, x.copy())
    with pytest.raises(ValueError, match="eps = nan"):
        k.layer_norm_forward(x, None, None, x.copy(), eps=float("nan"))
