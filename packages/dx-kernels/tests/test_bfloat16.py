import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import bfloat16 as ref

f32 = np.float32


def rounded(x):
    y = np.full(x.size, np.nan, f32)
    k.round_bfloat16(x.reshape(-1), y)
    return y.reshape(x.shape)


def test_rounding_by_hand(path):
    """Ties go to even, infinities and NaN stay, the largest values overflow, subnormals keep their upper bits."""
    x = np.array([0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x80000000, 0x7F800000, 0xFF800000,
                  0x7F7F8000, 0x7F7F7FFF, 0x00008000, 0x00018000, 0x00000001], np.uint32).view(f32)
    want = np.array([0x3F800000, 0x3F800000, 0x3F820000, 0x3F810000, 0x3F800000, 0x80000000, 0x7F800000, 0xFF800000,
                     0x7F800000, 0x7F7F0000, 0x00000000, 0x00020000, 0x00000000], np.uint32).view(f32)
    assert rounded(x).tobytes() == want.tobytes()
    nans = np.array([0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F80FFFF], np.uint32).view(f32)
    assert np.isnan(rounded(nans)).all()


@pytest.mark.parametrize("n", [0, 1, 15, 33, 100_003])
def test_rounding_equals_reference_and_torch(path, rng, n):
    x = rng.integers(0, 2**32, n, dtype=np.uint32).view(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            assert same_bits(rounded(x), ref.round_bfloat16(x))
    y = x.copy()
    k.round_bfloat16(y, y)
    assert same_bits(y, ref.round_bfloat16(x))
    assert same_bits(y, torch.tensor(x).to(torch.bfloat16).to(torch.float32).numpy())


@pytest.mark.parametrize("batch, rows, n_in, n_out", [(1, 5, 3, 4), (3, 17, 6, 5), (2, 40, 33, 20), (2, 0, 3, 4),
                                                      (0, 4, 3, 2), (2, 3, 0, 4)])
def test_linear_gradient_bits(path, rng, batch, rows, n_in, n_out):
    dy, x = rng.standard_normal((batch, rows, n_out), f32), rng.standard_normal((batch, rows, n_in), f32)
    want = ref.linear_weight_gradient_bfloat16(dy, x) if batch else np.zeros((n_out, n_in), f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            got = np.full((n_out, n_in), np.nan, f32)
            k.linear_weight_gradient_bfloat16(dy, x, got)
            assert same_bits(got, want)


@pytest.mark.parametrize("batch, shape, patches, d", [
    (1, (1, 4, 4), 4, 3), (3, (2, 5, 7), 6, 4), (2, (3, 24, 16), 6, 20), (0, (1, 4, 4), 4, 2), (2, (1, 4, 4), 0, 2)])
def test_patch_gradient_bits(path, rng, batch, shape, patches, d):
    dy, images = rng.standard_normal((batch, patches + 1, d), f32), rng.standard_normal((batch, *shape), f32)
    want = np.zeros((d, shape[0], 2, 2), f32) if not batch else ref.patch_weight_gradient_bfloat16(dy, images, 2)
    for degree in (1, 2, 3):
        with k.degree(degree):
            got = np.full(want.shape, np.nan, f32)
            k.patch_weight_gradient_bfloat16(dy, images, got)
            assert same_bits(got, want)
    assert same_bits(got, rounded(got))  # a bfloat16 value


def test_gradients_of_rounded_operands_in_binary64(rng):
    """The linear node is near the exact product of the rounded operands and, unlike the patch node, not rounded."""
    dy, x = rng.standard_normal((3, 50, 7), f32), rng.standard_normal((3, 50, 9), f32)
    got = np.empty((7, 9), f32)
    k.linear_weight_gradient_bfloat16(dy, x, got)
    exact = np.einsum("bro,bri->oi", rounded(dy).astype(np.float64), rounded(x).astype(np.float64))
    assert np.abs(got - exact).max() < 2e-5 and not same_bits(got, rounded(got))
    plain = np.einsum("bro,bri->oi", dy.astype(np.float64), x.astype(np.float64))
    assert np.abs(got - plain).max() > 1e-3  # the operands were rounded


def test_nan_is_kept(path):
    dy, x, got = np.ones((1, 2, 1), f32), np.array([[[1.0], [np.nan]]], f32), np.zeros((1, 1), f32)
    k.linear_weight_gradient_bfloat16(dy, x, got)
    assert np.isnan(got).all()


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"y has shape \(2,\): expected \(3,\)"):
        k.round_bfloat16(np.zeros(3, f32), np.zeros(2, f32))
    with pytest.raises(ValueError, match=r"dy has shape \(1, 2, 3\): expected \(1, 2, 4\)"):
        k.linear_weight_gradient_bfloat16(np.zeros((1, 2, 3), f32), np.zeros((1, 2, 5), f32), np.zeros((4, 5), f32))
    with pytest.raises(ValueError, match="patch = 3 with images 2 pixels wide"):
        k.patch_weight_gradient_bfloat16(np.zeros((1, 2, 1), f32), np.zeros((1, 1, 2, 2), f32),
                                         np.zeros((1, 1, 3, 3), f32))
    with pytest.raises(ValueError, match="dy has no row"):
        k.patch_weight_gradient_bfloat16(np.zeros((1, 0, 1), f32), np.zeros((1, 1, 2, 2), f32),
                                         np.zeros((1, 1, 2, 2), f32))
