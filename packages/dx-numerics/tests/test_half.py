"""float16 and bfloat16: all 2^16 encodings, rounding at every boundary, and means of half-precision data."""
import dx_numerics as dx
import numpy as np
import pytest
from dx_numerics import _core, ref

f32 = np.float32
ALL = np.arange(2**16, dtype=np.uint16)


def same(a, b):
    nan = np.isnan(a)
    return np.array_equal(nan, np.isnan(b)) and np.array_equal(a.view(np.uint32)[~nan], b.view(np.uint32)[~nan])


def boundaries(widen, steps):
    """Every finite number of the format, the midpoint to its neighbour, and the binary32 numbers next to that."""
    x = np.unique(widen(ALL[np.isfinite(widen(ALL))]).astype(np.float64))
    half = (x[1:] + x[:-1]) / 2
    values = np.concatenate([x, half])[::steps].astype(f32)
    around = [values, np.nextafter(values, f32(np.inf)), np.nextafter(values, f32(-np.inf))]
    largest = f32(x[-1])
    step = largest - f32(x[-2])
    edge = largest + step / 2  # from here on: infinite
    around.append(np.array([edge, np.nextafter(edge, f32(0)), -edge, np.inf, -np.inf, np.nan, -0.0, 1e-45], f32))
    return np.concatenate(around)


def test_widen_every_encoding(path):
    assert same(dx.widen_float16(ALL), ALL.view(np.float16).astype(f32))
    assert same(dx.widen_float16(ALL.view(np.float16)), dx.widen_float16(ALL))
    assert same(dx.widen_bfloat16(ALL), (ALL.astype(np.uint32) << 16).view(f32))
    some = ALL[::37]
    assert same(dx.widen_float16(some), ref.widen_float16(some))
    assert same(dx.widen_bfloat16(some), ref.widen_bfloat16(some))


def test_round_trip_of_every_encoding(path):
    for widen, narrow in ((dx.widen_float16, dx.narrow_float16), (dx.widen_bfloat16, dx.narrow_bfloat16)):
        back, nan = narrow(widen(ALL)).view(np.uint16), np.isnan(widen(ALL))
        assert np.array_equal(back[~nan], ALL[~nan])
        assert np.isnan(widen(back[nan])).all()
        assert np.array_equal(back[nan] & 0x8000, ALL[nan] & 0x8000)


def test_narrow_at_every_boundary(path):
    x = boundaries(dx.widen_float16, 1)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    nan = np.isnan(x)
    assert np.array_equal(dx.narrow_float16(x).view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(dx.narrow_float16(x)[nan]).all()
    for widen, narrow, reference in ((dx.widen_float16, dx.narrow_float16, ref.narrow_float16),
                                     (dx.widen_bfloat16, dx.narrow_bfloat16, ref.narrow_bfloat16)):
        x = boundaries(widen, 101)
        x = x[~np.isnan(x)]
        assert np.array_equal(narrow(x).view(np.uint16), reference(x).view(np.uint16))


def test_narrow_bfloat16_against_torch(path, rng):
    torch = pytest.importorskip("torch")
    x = rng.integers(0, 2**32, 50_000, dtype=np.uint32).view(f32)
    x = x[~np.isnan(x)]
    want = torch.from_numpy(x).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(dx.narrow_bfloat16(x), want)


def test_num_28_means_of_half_precision(path):
    """Case num-28: accumulate wide, round once."""
    def mean(x):
        return dx.narrow_float16(np.array(dx.mean16(dx.widen_float16(x)), f32))
    assert mean(np.ones(65520, np.float16)) == 1
    assert mean(np.array([60000, 60000], np.float16)) == 60000
    assert mean(np.full(4096, 20.0, np.float16)) == 20


def test_num_29_a_scale_that_overflows_in_between(path):
    """Case num-29: the chain in binary32, rounded once at the end."""
    x = dx.widen_float16(np.array([3000.0], np.float16))
    root = f32(1) / dx.rsqrt32(np.array([1152], f32))
    chain = (x * root - f32(1e5)) * f32(1e-3)
    result = dx.narrow_float16(chain)
    assert np.isfinite(result).all()
    assert result[0] == np.float16(chain[0]) and abs(float(result[0]) - 1.8234) < 0.001


def test_shapes_strides_and_dtypes(path):
    x = np.arange(24, dtype=np.float16).reshape(2, 3, 4)
    for view in (x, x[:, ::-1, ::2], x.T, x[:0], np.array(np.float16(3)), np.asfortranarray(x)):
        wide = dx.widen_float16(view)
        assert wide.shape == view.shape and wide.dtype == f32 and (wide == view).all()
        assert (dx.narrow_float16(wide) == view).all()
    for function in (dx.widen_float16, dx.widen_bfloat16):
        with pytest.raises(TypeError, match="x has dtype float32: expected"):
            function(np.zeros(2, f32))
    for function in (dx.narrow_float16, dx.narrow_bfloat16):
        with pytest.raises(TypeError, match="x has dtype float64: expected float32"):
            function(np.zeros(2))


@pytest.mark.parametrize("mode", ["up", "down", "zero", "flush"])
def test_the_callers_mode_does_not_matter(path, mode):
    x = boundaries(dx.widen_float16, 5)
    x = x[~np.isnan(x)]
    want = dx.narrow_float16(x), dx.widen_float16(ALL[:0x400])
    try:
        _core._disturb(mode)
        got = dx.narrow_float16(x), dx.widen_float16(ALL[:0x400])
    finally:
        _core._disturb("ieee")
    assert np.array_equal(got[0].view(np.uint16), want[0].view(np.uint16)) and same(got[1], want[1])
