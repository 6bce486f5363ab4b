import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import norm as ref

f32 = np.float32


@pytest.mark.parametrize("n", [0, 1, 5, 16, 33, 6001])
@pytest.mark.parametrize("size", [1.0, 1e25, 3e37])
def test_bits_equal_reference(path, rng, n, size):
    gradients = [(rng.uniform(-size, size, s)).astype(f32) for s in ((n,), (3, 4), (1, 1))]
    assert k.squared_norm(gradients[0]) == ref.squared_norm(gradients[0])
    assert k.gradient_norm(gradients) == ref.gradient_norm(gradients)
    exact = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients))
    assert abs(k.gradient_norm(gradients) - exact) < 1e-6 * exact
    for limit in (0.0, 0.5, exact * 2):
        for degree in (1, 2, 3):
            with k.degree(degree):
                got = [g.copy() for g in gradients]
                norm = k.clip_gradients(got, limit)
                want, want_norm = ref.clip_gradients(gradients, limit)
                assert norm == want_norm and all(same_bits(a, b) for a, b in zip(got, want, strict=True))


def test_overflowing_squares_clip_finitely():
    """Case num-25."""
    g = np.array([1e30, 1e30], f32)
    assert np.isfinite(k.clip_gradients([g], 1.0))
    assert np.allclose(g, np.sqrt(0.5), rtol=1e-6)
    g = np.full(100000, 3.4e38, f32)
    k.clip_gradients([g], 1.0)
    assert np.allclose(g, 100000 ** -0.5, rtol=1e-4)  # 6,250 equal numbers a lane: binary32's own error


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_gradients_that_are_not_finite_are_named(bad):
    """Case num-25."""
    gradients = [np.array([3, 4], f32), np.array([[1, bad]], f32)]
    with pytest.raises(FloatingPointError, match=rf"tag_head\.weight holds {bad} at element 1"):
        k.clip_gradients(gradients, 1.0, ["qkv", "tag_head.weight"])
    with pytest.raises(FloatingPointError, match=r"gradients\[1\] holds"):
        k.gradient_norm(gradients)
    assert same_bits(gradients[0], np.array([3, 4], f32))


@pytest.mark.parametrize("limit", [-1.0, np.nan, np.inf])
def test_a_limit_that_is_no_limit_is_refused(limit):
    """Case num-26."""
    g = np.array([3, 4], f32)
    with pytest.raises(ValueError, match="max_norm = "):
        k.clip_gradients([g], limit)
    assert same_bits(g, np.array([3, 4], f32))


def test_zero_switches_clipping_off():
    """Case num-26."""
    g = np.array([3, 4], f32)
    assert k.clip_gradients([g], 0.0) == 5.0
    assert same_bits(g, np.array([3, 4], f32))
    assert k.clip_factor(5.0, 0.0) == 1.0


def test_factor():
    assert k.clip_factor(5.0, 1.0) == 1.0 / (5.0 + 1e-6)
    assert k.clip_factor(0.5, 1.0) == 1.0 and k.clip_factor(0.0, 1.0) == 1.0
    with pytest.raises(ValueError, match="norm = nan"):
        k.clip_factor(float("nan"), 1.0)


def test_no_gradients_have_norm_zero():
    assert k.gradient_norm([]) == 0.0 and k.clip_gradients([np.zeros((0, 3), f32)], 1.0) == 0.0
    with pytest.raises(ValueError, match="names has 1 entries: expected 0"):
        k.gradient_norm([], ["a"])


def test_degree_does_not_show(path, rng):
    g = (rng.standard_normal(300001) * 100).astype(f32)
    results = []
    for degree in (1, 2, 3):
        with k.degree(degree):
            clipped = g.copy()
            k.clip_gradients([clipped], 1.0)
            results.append(clipped)
    assert same_bits(results[0], (g.astype(np.float64) * k.clip_factor(k.gradient_norm([g]), 1.0)).astype(f32))
    assert same_bits(results[0], results[1]) and same_bits(results[0], results[2])


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_other_types_are_refused(dtype):
    with pytest.raises(ValueError, match="expected float32"):
        k.gradient_norm([np.ones((2, 2), f32), np.ones((2, 2), dtype)])
    with pytest.raises((ValueError, TypeError)):
        k.clip_gradients([np.ones((2, 4), f32)[:, ::2]], 1.0)
