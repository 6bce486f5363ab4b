"""Shared by the kernel tests: every kernel path and degree, and comparison by bits."""
import dx_kernels
import numpy as np
import pytest


@pytest.fixture(params=dx_kernels.available_paths())
def path(request):
    """Runs the test once per kernel path of this machine."""
    with dx_kernels.kernel_path(request.param):
        yield request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def bits(x):
    """float32 array → uint32 view with one NaN pattern (payloads are not promised)."""
    x = np.ascontiguousarray(x, np.float32)
    return np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32))


def same_bits(a, b):
    return a.shape == b.shape and np.array_equal(bits(a), bits(b))


class _Torch:
    """PyTorch for the tests that compare with it: imported when first used, the test is skipped where it is missing."""

    def __getattr__(self, name):
        if name.startswith("__"):  # pytest's own look at what a test module holds
            raise AttributeError(name)
        return getattr(pytest.importorskip("torch"), name)


torch = _Torch()
