"""Shared by the tests of dx-numerics: every kernel path of this machine."""
import dx_numerics
import numpy as np
import pytest


@pytest.fixture(params=dx_numerics.available_paths())
def path(request):
    """Runs the test once per kernel path of this machine."""
    with dx_numerics.kernel_path(request.param):
        yield request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def pytest_configure(config):
    config.addinivalue_line("markers", "exhaustive: long checks")
