"""Neither the number of threads nor the process's rounding mode shows in trained weights."""
import ctypes
import ctypes.util
import dataclasses
import platform

import dx_train
import pytest
import tiny


def test_num_05_threads():
    """Case num-05: 50 steps on 20 pages with seed 7 by 1, 2, 3 and 8 threads give one SHA-256 of the weights."""
    settings = dataclasses.replace(tiny.SETTINGS, seed=7, steps=50)
    found = set()
    for degree in (1, 2, 3, 8):
        with dx_train.degree(degree):
            found.add(tiny.train(settings=settings, count=20).parameters.digest())
    assert len(found) == 1


def test_another_rounding_mode():
    """A process that another library left rounding upwards trains the same weights."""
    library = ctypes.util.find_library("m")
    up = {"x86_64": 0x800, "aarch64": 1 << 22}.get(platform.machine())
    if library is None or up is None:
        pytest.skip("needs fesetround")
    c = ctypes.CDLL(library)
    one, tiny_part = ctypes.c_double(1.0).value, float.fromhex("0x1p-60")
    want = tiny.train().parameters.digest()
    assert c.fesetround(up) == 0
    try:
        changed = one + tiny_part > 1
        got = tiny.train().parameters.digest()
    finally:
        c.fesetround(0)
    assert changed and got == want
