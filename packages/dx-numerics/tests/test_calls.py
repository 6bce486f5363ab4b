"""All public functions at once, as dx_numerics.testing.suite wants them."""
import numpy as np
import pytest
import registry
from dx_numerics.testing import suite
from dx_numerics.testing.calls import Run, call, out


class TestCalls(suite.CallTests):
    registry = registry


class TestFuzz(suite.FuzzTests):
    registry = registry


def test_the_digest_sees_a_bit():
    """In returned and in written arrays, in numbers and in messages; a NaN is like any other; guards are watched."""
    def fill(target, array):
        target[...] = array
        return float(array[1])

    def beside(target):
        np.lib.stride_tricks.as_strided(target, (2,), (4,))[1] = 0

    x = np.array([1.0, 2.0, np.nan], np.float32)
    other_nan, other_last, other_zero = x.copy(), x.copy(), np.array([-0.0], np.float32)
    other_nan.view(np.uint32)[2] ^= 0x80000001
    other_last.view(np.uint32)[0] ^= 1
    for function, arguments in ((np.copy, ()), (fill, (out(3),))):
        digests = [Run(call(function, *arguments, a)).digest() for a in (x, other_nan, other_last)]
        assert digests[0] == digests[1] != digests[2]
    assert Run(call(np.copy, other_zero)).digest() != Run(call(np.copy, -other_zero)).digest()
    assert Run(call(int, "1x")).digest() != Run(call(int, "2x")).digest()
    with pytest.raises(AssertionError, match="written outside"):
        Run(call(beside, out(1))).digest()
