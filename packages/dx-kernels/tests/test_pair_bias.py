import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import pair_bias as ref
from test_pairs import geometry, page


def weights(rng, units, heads):
    shapes = ((units, 20), (units,), (heads, units), (heads,))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("n, units, heads", [(0, 4, 2), (1, 1, 1), (5, 16, 2),
                                             (17, 32, 4), (33, 13, 2), (61, 8, 3), (300, 32, 4)])
def test_bits_equal_the_two_kernels_and_the_reference(path, rng, n, units, heads):
    _, real, whole, _ = geometry(*page(rng, n))
    w = weights(rng, units, heads)
    features, want = np.empty((20, n, n), np.float32), np.empty((heads, n, n), np.float32)
    k.pair_features(real, whole, features)
    k.pair_mlp_forward(features.reshape(20, n * n), *w, want.reshape(heads, n * n))
    for degree in (1, 2, 3):
        with k.degree(degree):
            out = np.full((heads, n, n), np.nan, np.float32)
            k.pair_bias_forward(real, whole, *w, out)
            assert same_bits(out, want)
    if n <= 61:
        assert same_bits(want, ref.pair_bias_forward(real, whole, *w))


@pytest.mark.parametrize("n, units, heads", [(0, 4, 2), (1, 1, 1), (5, 16, 2), (17, 32, 4), (33, 13, 2), (61, 8, 3),
                                             (300, 32, 4)])
def test_gradients_equal_the_two_kernels_and_the_reference(path, rng, n, units, heads):
    _, real, whole, _ = geometry(*page(rng, n))
    w1, b1, w2, _ = weights(rng, units, heads)
    features, dy = np.empty((20, n, n), np.float32), rng.standard_normal((heads, n, n)).astype(np.float32)
    shapes = ((units, 20), units, (heads, units), heads)
    want, got = ([np.full(s, np.nan, np.float32) for s in shapes] for _ in range(2))
    k.pair_features(real, whole, features)
    k.pair_mlp_backward(dy.reshape(heads, n * n), features.reshape(20, n * n), None, w1, b1, w2, *want)
    for degree in (1, 2, 3):
        with k.degree(degree):
            k.pair_bias_backward(dy, real, whole, w1, b1, w2, *got)
            assert all(same_bits(a, b) for a, b in zip(got, want, strict=True))
    if n <= 33:
        reference = ref.pair_bias_backward(dy, real, whole, w1, b1, w2)
        assert all(same_bits(a, b) for a, b in zip(got, reference, strict=True))


def test_zeros_of_both_signs_subnormals_and_nan(path, rng):
    """Where the dot over the features is a zero of either sign, in the first chunk or in the partial one."""
    _, real, whole, _ = geometry(*page(rng, 40))
    features, want, out = (np.empty(s, np.float32) for s in ((20, 40, 40), (2, 40, 40), (2, 40, 40)))
    k.pair_features(real, whole, features)
    w = weights(rng, 20, 2)
    for row, value in enumerate((0.0, -0.0, 1e-45, -1e-45, -1e-30, np.nan, np.inf)):
        w[0][row], w[1][row] = value, -0.0
        w[0][row + 8, 16:], w[1][row + 8] = value, 0.0 if row % 2 else -0.0
    k.pair_mlp_forward(features.reshape(20, 1600), *w, want.reshape(2, 1600))
    k.pair_bias_forward(real, whole, *w, out)
    assert same_bits(out, want)
    w[0][np.isnan(w[0]) | np.isinf(w[0])] = -0.0
    k.pair_mlp_forward(features.reshape(20, 1600), *w, want.reshape(2, 1600))
    k.pair_bias_forward(real, whole, *w, out)
    assert same_bits(out, want) and np.isfinite(out).all()


def test_errors(rng):
    _, real, whole, _ = geometry(*page(rng, 3))
    w = weights(rng, 4, 2)
    out = np.empty((2, 3, 3), np.float32)
    with pytest.raises(ValueError, match=r"weight1 has shape \(4, 19\): expected \(4, 20\)"):
        k.pair_bias_forward(real, whole, w[0][:, :19].copy(), *w[1:], out)
    with pytest.raises(ValueError, match=r"out has shape \(2, 3, 2\): expected \(2, 3, 3\)"):
        k.pair_bias_forward(real, whole, *w, out[:, :, :2].copy())
    with pytest.raises(ValueError, match=r"whole has shape \(2, 3\): expected \(3, 3\)"):
        k.pair_bias_forward(real, whole[:2].copy(), *w, out)
    whole[0, 1] = -1
    with pytest.raises(ValueError, match=r"whole\[0, 1\] = -1"):
        k.pair_bias_forward(real, whole, *w, out)
    whole[0, 1] = 0
    w1, b1, w2, _ = w
    g = [np.empty_like(a) for a in w]
    dy = np.zeros((2, 3, 3), np.float32)
    for call, message in (
            (lambda: k.pair_bias_backward(dy[:1].copy(), real, whole, w1, b1, w2, *g), r"dy has shape \(1, 3, 3\)"),
            (lambda: k.pair_bias_backward(dy, real, whole, w1[:, 1:].copy(), b1, w2, *g),
             r"weight1 has shape \(4, 19\)"),
            (lambda: k.pair_bias_backward(dy, real, whole, w1, b1, w2, g[2], *g[1:]), r"dweight1 has shape \(2, 4\)"),
            (lambda: k.pair_bias_backward(dy, real, whole, w1[:0], b1, w2, *g), "the layers have 0 units")):
        with pytest.raises(ValueError, match=message):
            call()
