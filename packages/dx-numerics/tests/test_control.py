"""Kernel path and degree: environment, process default, context managers, threads."""
import os
import subprocess
import sys
import threading

import dx_numerics as dx
import numpy as np
import pytest
from dx_numerics import _core


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})


SHOW = "import dx_numerics as d; print(d.get_path(), d.get_degree())"
MISSING = [name for name in dx.PATHS if name not in dx.available_paths()]


def test_available_paths_hold_portable_and_the_default():
    assert dx.available_paths()[0] == "portable"
    assert set(dx.available_paths()) <= set(dx.PATHS)
    assert dx.get_path() in dx.available_paths()


def test_environment_sets_the_defaults():
    for path in dx.available_paths():
        result = run_python(SHOW, DX_KERNEL_PATH=path, DX_DEGREE="3")
        assert result.stdout == f"{path} 3\n", result.stderr
    result = run_python(SHOW, DX_KERNEL_PATH="", DX_DEGREE="")
    assert result.stdout.split()[0] == dx.available_paths()[-1]
    assert 1 <= int(result.stdout.split()[1]) <= dx.MAX_DEGREE


@pytest.mark.parametrize("value", ["sse9", "AVX2", " avx2", "0"])
def test_an_unknown_path_in_the_environment_stops_the_import(value):
    result = run_python(SHOW, DX_KERNEL_PATH=value)
    assert result.returncode == 1
    assert result.stderr.strip().endswith(f"ValueError: environment variable DX_KERNEL_PATH = {value!r}: "
                                          "expected one of portable, avx2, avx512, neon")


@pytest.mark.parametrize("value", ["0", "65", "-1", "two", "2.0", " 2", "٣", "1" * 400])
def test_a_bad_degree_in_the_environment_stops_the_import(value):
    result = run_python(SHOW, DX_DEGREE=value, PYTHONIOENCODING="utf-8")
    assert result.returncode == 1
    assert "ValueError: environment variable DX_DEGREE = " in result.stderr
    assert "expected a whole number from 1 to 64" in result.stderr


@pytest.mark.skipif(not MISSING, reason="this build and CPU have every path")
def test_a_path_that_is_missing_here_is_an_error():
    for name in MISSING:
        with pytest.raises(RuntimeError, match=f"path = '{name}': this CPU or this build cannot run that path; "
                                               "available: portable"):
            dx.set_path(name)
        with pytest.raises(RuntimeError), dx.kernel_path(name):
            pass
        result = run_python(SHOW, DX_KERNEL_PATH=name)
        assert result.returncode == 1 and "RuntimeError: environment variable DX_KERNEL_PATH" in result.stderr


def test_managers_nest_and_restore():
    before = dx.get_path(), dx.get_degree()
    with dx.kernel_path("portable"), dx.degree(5):
        assert (dx.get_path(), dx.get_degree()) == ("portable", 5)
        with dx.degree(2):
            assert dx.get_degree() == 2
        assert dx.get_degree() == 5
        with pytest.raises(KeyError), dx.degree(7):
            raise KeyError
        assert dx.get_degree() == 5
    assert (dx.get_path(), dx.get_degree()) == before


@pytest.mark.parametrize("value", [0, -1, 65, 1.0, "2", True, None])
def test_bad_degrees(value):
    with pytest.raises(ValueError, match="degree = .*: expected a whole number from 1 to 64"):
        dx.set_degree(value)
    with pytest.raises(ValueError), dx.degree(value):
        pass


@pytest.mark.parametrize("value", ["", "avx", None, 1])
def test_bad_paths(value):
    with pytest.raises(ValueError, match="path = .*: expected one of portable"):
        dx.set_path(value)


def test_a_threads_choice_is_its_own():
    """A manager holds in its own thread; a process default reaches the threads that have no choice of their own."""
    seen = {}
    default = dx.get_path(), dx.get_degree()

    def look(key):
        seen[key] = dx.get_path(), dx.get_degree()

    def in_thread(key):
        t = threading.Thread(target=look, args=(key,))
        t.start()
        t.join()

    with dx.kernel_path("portable"), dx.degree(6):
        in_thread("inside")
    assert seen["inside"] == default
    try:
        with dx.degree(6):
            dx.set_path("portable")
            dx.set_degree(5)
            in_thread("defaults")
            assert dx.get_degree() == 6
        assert seen["defaults"] == ("portable", 5) and dx.get_degree() == 5
    finally:
        dx.set_path(default[0])
        dx.set_degree(default[1])


def test_many_threads_choose_at_once():
    errors = []

    def work(k):
        for i in range(300):
            path, degree = dx.available_paths()[(k + i) % len(dx.available_paths())], 1 + (k + i) % 7
            with dx.kernel_path(path), dx.degree(degree):
                if (dx.get_path(), dx.get_degree()) != (path, degree):
                    errors.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def mlp(x, w1, b1, w2):
    """Two layers of dot16 and tanh32."""
    hidden = dx.tanh32(np.array([dx.dot16(x, row) for row in w1], np.float32) + b1)
    return dx.dot16(hidden, w2)


def test_num_07_the_same_bytes_whatever_path_is_masked():
    """Case num-07: a small network on every path gives the same four bytes, and the path used is reported."""
    data = np.empty(100 * 100 + 300, np.float32)
    dx.uniform32(42, data, low=-1.0, high=1.0)
    x, b1, w2, w1 = data[:100], data[100:200], data[200:300], data[300:].reshape(100, 100)
    results = {}
    for name in dx.available_paths():
        with dx.kernel_path(name):
            results[dx.get_path()] = np.float32(mlp(x, w1, b1, w2)).tobytes()
    assert set(results) == set(dx.available_paths()) and len(set(results.values())) == 1


def test_mode_is_known():
    assert _core._is_ieee()
    for mode in ("up", "down", "zero", "flush"):
        try:
            _core._disturb(mode)
            assert not _core._is_ieee()
        finally:
            _core._disturb("ieee")
    with pytest.raises(ValueError, match="mode = 'x': expected one of ieee"):
        _core._disturb("x")


def test_ieee_mode():
    """Plain arithmetic inside rounds to nearest; the mode of before comes back, also after an exception."""
    @dx.ieee_mode()
    def inside():
        assert _core._is_ieee()

    try:
        for mode in ("up", "down", "zero", "flush"):
            _core._disturb(mode)
            with dx.ieee_mode():
                assert _core._is_ieee()
                with dx.ieee_mode():
                    assert _core._is_ieee()
                assert _core._is_ieee()
            assert not _core._is_ieee()
            with pytest.raises(KeyError), dx.ieee_mode():
                raise KeyError
            inside()
            assert not _core._is_ieee()
    finally:
        _core._disturb("ieee")
