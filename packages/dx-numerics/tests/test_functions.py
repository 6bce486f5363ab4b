"""The functions of dx_numerics over arrays: bits on every path and degree, reference, edges, errors."""
import dx_numerics as dx
import numpy as np
import pytest

NAMES32 = ["exp32", "tanh32", "erf32", "sigmoid32", "rsqrt32"]
NAMES64 = ["exp64", "log64", "log1p64", "softplus64"]
NAMES = NAMES32 + NAMES64


def dtype_of(name):
    return np.float32 if name.endswith("32") else np.float64


def bits(x):
    """Bit view with one NaN pattern (payloads are not promised)."""
    x = np.asarray(x)
    return np.where(np.isnan(x), x.dtype.type(np.nan), x).view(f"u{x.dtype.itemsize}")


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
def test_bits_equal_reference(name):
    x = (np.random.default_rng(4).standard_normal(50_000) * 30).astype(dtype_of(name))
    assert np.array_equal(bits(getattr(dx, name)(x)), bits(getattr(dx.ref, name)(x)))
