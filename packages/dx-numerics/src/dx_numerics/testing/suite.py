"""What the public functions of a package with compiled code have to pass, all of them at once, as classes of tests:

    import registry  # REGISTRY (calls.py), NO_KERNELS: names of functions without calls, public(): all public names
    from dx_numerics.testing import suite

    class TestCalls(suite.CallTests):
        registry = registry

It needs no pytest itself, so that it can be imported without it.
"""
import functools
import hashlib
import os
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path

import numpy as np

from .. import available_paths, degree, kernel_path
from .calls import SIZES, Run, sweep, total

SOME = {"sizes": (0, 1, 17, 100), "kinds": ("plain", "wild")}
FUZZ_SECONDS = float(os.environ.get("DX_FUZZ_SECONDS", "20"))
FUZZ_SEED = int(os.environ.get("DX_FUZZ_SEED", "0"))


def parametrize(metafunc, **values):
    """Runs a test that has these arguments once per value."""
    for name, choices in values.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, choices)


@functools.cache
def reference(registry, some):
    """(digest, number) of all calls of a registry module, or of some, on the portable path and degree 1."""
    with kernel_path("portable"), degree(1):
        return total(registry.REGISTRY, **(SOME if some else {}))


def read_only(array):
    copy = np.array(array, order="K")
    copy.flags.writeable = False
    return copy


def unaligned(array):
    """A copy that begins one byte behind an aligned address."""
    memory = np.zeros(array.nbytes + 16, np.uint8)
    start = 1 + -memory.ctypes.data % 8
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class CallTests:
    """Registered, the same bits on every path and degree, from several threads, after fork, with read-only and
    memory-mapped inputs; empty inputs work."""

    registry = None

    def pytest_generate_tests(self, metafunc):
        parametrize(metafunc, on_path=available_paths(), on_degree=(1, 3))

    def test_no_kernel_without_calls(self):
        """A new public function needs a maker in a registry, or a place in NO_KERNELS."""
        names = set(self.registry.REGISTRY)
        different = self.registry.public() ^ (names | self.registry.NO_KERNELS)
        assert not different, different
        assert not names & self.registry.NO_KERNELS

    def test_makers_make_calls_at_every_size(self):
        for name, (maker, large) in self.registry.REGISTRY.items():
            labels = [label for label, _ in sweep({name: (maker, large)})]
            assert {label.split()[1] for label in labels} == {f"n={n}" for n in (*SIZES, large)}, name
            assert len(labels) == len(set(labels)), name

    def test_right_calls_raise_nothing(self):
        """Empty inputs too: the evidence is results, not messages."""
        for label, made in sweep(self.registry.REGISTRY, kinds=("plain",)):
            try:
                Run(made).result()
            except Exception as error:
                raise AssertionError(f"{label}: {error!r}") from error

    def test_paths_and_degrees_agree(self, on_path, on_degree):
        with kernel_path(on_path), degree(on_degree):
            assert total(self.registry.REGISTRY) == reference(self.registry, False)

    def test_what_calls_leave_in_scratch_memory_does_not_matter(self, on_path):
        """Calls whose numbers are mostly NaN and infinities, then ordinary smaller ones."""
        with kernel_path("portable"), degree(1):
            want = total(self.registry.REGISTRY, sizes=(1, 15, 17), kinds=("plain",), large=False)
        with kernel_path(on_path), degree(2):
            got = []
            for name in sorted(self.registry.REGISTRY):
                one = {name: self.registry.REGISTRY[name]}
                small = sweep(one, sizes=(1, 15, 17), kinds=("plain",), large=False)
                total(one, sizes=(100, 33), kinds=("wild",), large=False)
                got += [f"{label} {Run(made).digest()}\n" for label, made in small]
        assert (hashlib.sha256("".join(got).encode()).hexdigest(), len(got)) == want

    def test_threads_with_the_same_inputs(self):
        """Several Python threads run all calls on the same input arrays, each with its own path and degree."""
        every = list(sweep(self.registry.REGISTRY, **SOME))
        with kernel_path("portable"), degree(1):
            expected = [Run(made).digest() for _, made in every]
        wrong = []

        def work(k):
            path = available_paths()[k % len(available_paths())]
            with kernel_path(path), degree(1 + k % 3):
                for i in range(len(every)):
                    at = (i + k * len(every) // 4) % len(every)  # each begins somewhere else
                    try:
                        same = Run(every[at][1]).digest() == expected[at]
                    except BaseException as error:
                        wrong.append((every[at][0], path, repr(error)))
                        return
                    if not same:
                        wrong.append((every[at][0], path, "other bits"))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong

    def test_after_fork(self):
        """A child of a process whose pool is running gives the same bits, with workers of its own."""
        if not hasattr(os, "fork"):
            raise unittest.SkipTest("no fork on this system")
        want = reference(self.registry, True)
        with degree(3):
            assert total(self.registry.REGISTRY, **SOME) == want
            source, sink = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12+: fork in a process with threads
                child = os.fork()
            if child == 0:
                try:
                    os.write(sink, repr(total(self.registry.REGISTRY, **SOME)).encode())
                finally:
                    os._exit(0)
            os.close(sink)
            with os.fdopen(source) as answer:
                text = answer.read()
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert text == repr(want)
            assert total(self.registry.REGISTRY, **SOME) == want

    def test_read_only_inputs(self):
        assert total(self.registry.REGISTRY, read_only, **SOME) == reference(self.registry, True)

    def test_unaligned_inputs_are_copied_or_refused(self):
        """C code may rely on aligned elements: the same result, or a ValueError that says so."""
        refused = 0
        for label, made in sweep(self.registry.REGISTRY, sizes=(17,), kinds=("plain",), large=False):
            if not any(isinstance(a, np.ndarray) and a.itemsize > 1 for a in made.args):
                continue
            want = Run(made).digest()
            try:
                Run(made, unaligned).result()
            except ValueError as error:
                refused += 1
                assert any(word in str(error) for word in ("address", "=f", "aligned")), (label, error)
            else:
                assert Run(made, unaligned).digest() == want, label
        assert refused

    def test_memory_mapped_inputs(self, tmp_path):
        """Every input as a read-only map of one file; its layout is kept where it is C-contiguous."""
        with open(tmp_path / "inputs", "w+b") as file:
            def mapped(array):
                if array.size == 0 or not array.flags.c_contiguous:
                    return read_only(array)
                at = file.seek(0, os.SEEK_END)
                at = file.seek(at + -at % 64)
                file.write(array.tobytes())
                file.flush()
                return np.memmap(file.name, array.dtype, "r", offset=at, shape=array.shape)
            some = {"sizes": (1, 17), "kinds": ("plain",), "large": False}
            assert total(self.registry.REGISTRY, mapped, **some) == total(self.registry.REGISTRY, **some)


class FuzzTests:
    """Random shapes, strides, types, values and objects at every public function: an error, never a crash (fuzz.py)."""

    registry = None

    def pytest_generate_tests(self, metafunc):
        parametrize(metafunc, on_path=("portable", ""), on_degree=(1, 3))

    def test_wrong_calls_raise_errors(self, on_path, on_degree, tmp_path):
        """In a process of its own, whose last line names the case when it dies."""
        env = {**os.environ, "DX_KERNEL_PATH": on_path, "DX_DEGREE": str(on_degree), "TMPDIR": str(tmp_path)}
        if "ASAN_OPTIONS" in env:
            env["ASAN_OPTIONS"] += ":max_allocation_size_mb=6000"
        seed = FUZZ_SEED + 1_000_000 * on_degree + (500_000 if on_path else 0)
        home = Path(self.registry.__file__)
        command = [sys.executable, "-W", "error", "-m", "dx_numerics.testing.fuzz", home.stem, str(FUZZ_SECONDS / 4),
                   str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + 10 * FUZZ_SECONDS, env=env,
                              cwd=home.parent, check=False)
        lines = done.stdout.splitlines()
        last = lines[-1] if lines else "before the first case"
        if last == "failed":
            last = lines[-2]
        ended = done.returncode == 0 and last.startswith("done ")
        assert ended, f"exit code {done.returncode} at: {last}\n{done.stderr}"
        assert int(last.split()[1]) >= 50
