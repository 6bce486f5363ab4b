"""The functions of dx_numerics over arrays: bits on every path and degree, reference, edges, shapes, errors."""
import dx_numerics as dx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES32 = ["exp32", "tanh32", "erf32", "sigmoid32", "rsqrt32"]
NAMES64 = ["exp64", "log64", "log1p64", "softplus64"]
NAMES = NAMES32 + NAMES64
INF, NAN = np.inf, np.nan


def dtype_of(name):
    return np.float32 if name.endswith("32") else np.float64


def bits(x):
    """Bit view with one NaN pattern (payloads are not promised)."""
    x = np.asarray(x)
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"u{x.dtype.itemsize}")


def everywhere(name, n, seed):
    """Random encodings: every exponent, NaN and infinities with their odd payloads among them."""
    width = dtype_of(name)().itemsize
    return np.random.default_rng(seed).integers(0, 2 ** (8 * width) - 1, n, dtype=f"u{width}").view(dtype_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_every_path_and_degree_gives_the_same_bits(name):
    x = (np.random.default_rng(3).standard_normal(100_003) * 20).astype(dtype_of(name))
    function, want = getattr(dx, name), None
    for path in dx.available_paths():
        for degree in (1, 2, 3):
            with dx.kernel_path(path), dx.degree(degree):
                got = bits(function(x))
            want = got if want is None else want
            assert np.array_equal(got, want), (path, degree)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", dx.available_paths())
def test_bits_equal_reference(name, path):
    near = (np.random.default_rng(4).standard_normal(30_000) * 30).astype(dtype_of(name))
    x = np.concatenate([near, everywhere(name, 30_000, 5)])
    with dx.kernel_path(path):
        assert np.array_equal(bits(getattr(dx, name)(x)), bits(getattr(dx.ref, name)(x)))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_lengths_and_payloads(name, data):
    """Vector bodies and tails agree with one element at a time, whatever the encodings; NaN in, NaN out."""
    width = dtype_of(name)().itemsize
    codes = data.draw(st.lists(st.integers(0, 2 ** (8 * width) - 1), min_size=1, max_size=70))
    x = np.array(codes, f"u{width}").view(dtype_of(name))
    function = getattr(dx, name)
    whole = bits(function(x))
    assert np.array_equal(whole, [bits(function(v)) for v in x])
    assert np.isnan(function(x)[np.isnan(x)]).all()


EDGES = {
    "exp32": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (88.73, INF), (3e38, INF), (-104.0, 0.0), (-3e38, 0.0),
              (-103.97, 2.0**-149), (1e-45, 1)],
    "tanh32": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (3e38, 1), (1e-45, 1e-45), (-1e-45, -1e-45)],
    "erf32": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (3e38, 1), (1e-45, 1e-45), (-1e-45, -1e-45)],
    "sigmoid32": [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0.0), (-3e38, 0.0), (-103.97, 2.0**-149), (1e-45, 0.5)],
    "rsqrt32": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (4.0, 0.5), (-1.0, NAN), (-INF, NAN), (2.0**-148, 2.0**74)],
    "exp64": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (709.79, INF), (1e308, INF), (-746.0, 0.0), (-1e308, 0.0),
              (-745.13, 2.0**-1074), (5e-324, 1)],
    "log64": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (1.0, 0.0), (-1.0, NAN), (-5e-324, NAN)],
    "log1p64": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (-1.0, -INF), (-1.1, NAN), (5e-324, 5e-324),
                (-5e-324, -5e-324)],
    "softplus64": [(INF, INF), (-INF, 0.0), (1e308, 1e308), (-1e308, 0.0), (800.0, 800.0), (-745.13, 2.0**-1074)],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", dx.available_paths())
def test_edges(name, path):
    rows = EDGES[name] + [(NAN, NAN), (-NAN, NAN)]
    x, want = np.array(rows, dtype_of(name)).T
    with dx.kernel_path(path):
        assert np.array_equal(bits(getattr(dx, name)(x.copy())), bits(want.copy()))


@pytest.mark.parametrize("name", NAMES)
def test_shapes_strides_and_out(name):
    function, dtype = getattr(dx, name), dtype_of(name)
    x = np.random.default_rng(6).random((6, 8, 10)).astype(dtype)
    want = function(x)
    assert want.shape == x.shape and want.dtype == dtype
    assert np.array_equal(function(x[::2, :, 1::3]), want[::2, :, 1::3])
    assert np.array_equal(function(x.T), want.T)
    out = np.empty_like(x)
    assert function(x, out) is out and np.array_equal(out, want)
    assert function(out := x.copy(), out=out) is out and np.array_equal(out, want)  # in place
    for empty in (np.empty((0,), dtype), np.empty((3, 0, 2), dtype)):
        assert function(empty).shape == empty.shape
    assert function(dtype(0.25)).shape == ()
    x.flags.writeable = False
    assert np.array_equal(function(x), want)


@pytest.mark.parametrize("name", NAMES)
def test_large_arrays_in_place_on_threads(name):
    x = np.random.default_rng(7).random(200_001).astype(dtype_of(name))
    want = getattr(dx, name)(x)
    for degree in (2, 7):
        with dx.degree(degree):
            y = x.copy()
            assert np.array_equal(getattr(dx, name)(y, y), want)


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    function, dtype = getattr(dx, name), dtype_of(name)
    other = np.float64 if dtype == np.float32 else np.float32
    x = np.ones(8, dtype)
    with pytest.raises(TypeError, match=f"x has dtype {np.dtype(other)}: expected {np.dtype(dtype)}"):
        function(x.astype(other))
    with pytest.raises(TypeError, match="x has dtype object"):
        function(None)
    with pytest.raises(TypeError, match="out"):
        function(x, np.ones(8, other))
    with pytest.raises(TypeError, match="out is list"):
        function(x, [1.0] * 8)
    with pytest.raises(ValueError, match=r"out has shape \(4,\): expected the shape of x, \(8,\)"):
        function(x, np.ones(4, dtype))
    with pytest.raises(ValueError, match="expected a writeable C-contiguous array"):
        function(x, np.ones(16, dtype)[::2])
    locked = np.ones(8, dtype)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="expected a writeable C-contiguous array"):
        function(x, locked)
    both = np.ones(12, dtype)
    with pytest.raises(ValueError, match="out overlaps x"):
        function(both[:8], both[4:])
    assert (both == 1).all()


def test_unaligned_and_byte_swapped_input():
    raw = np.zeros(4 * 5 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = [0, 1, 2, 3, 4]
    assert np.array_equal(dx.exp32(x), dx.exp32(np.arange(5, dtype=np.float32)))
    with pytest.raises(TypeError, match="x has dtype >f4"):
        dx.exp32(np.arange(5, dtype=">f4"))
