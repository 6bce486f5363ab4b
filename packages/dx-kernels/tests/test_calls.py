"""All public functions at once, as dx_numerics.testing.suite wants them."""
import registry
from dx_numerics.testing import suite


class TestCalls(suite.CallTests):
    registry = registry


class TestFuzz(suite.FuzzTests):
    registry = registry
