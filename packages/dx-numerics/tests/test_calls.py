"""All public functions at once: registered, the same bits on every path and degree, from several threads, after fork,
with read-only and memory-mapped inputs; empty inputs work. (dx-numerics and dx-kernels hold equal copies.)"""
import os
import threading

import numpy as np
import pytest
from calls import SIZES, Run, call, out, sweep, total
from registry import NO_KERNELS, REGISTRY, control, public

SOME = {"sizes": (0, 1, 17, 100), "kinds": ("plain", "wild")}


@pytest.fixture(scope="module")
def want():
    """The digest of all calls, of some calls, and how many they are."""
    with control.kernel_path("portable"), control.degree(1):
        return {"all": total(REGISTRY), "some": total(REGISTRY, **SOME)}


def test_no_kernel_without_calls():
    """A new public function needs a maker in a registry, or a place in NO_KERNELS."""
    assert public() == set(REGISTRY) | NO_KERNELS
    assert not set(REGISTRY) & NO_KERNELS


def test_makers_make_calls_at_every_size():
    for name, (maker, large) in REGISTRY.items():
        labels = [label for label, _ in sweep({name: (maker, large)})]
        assert {label.split()[1] for label in labels} == {f"n={n}" for n in (*SIZES, large)}, name
        assert len(labels) == len(set(labels))


def test_right_calls_raise_nothing():
    """Empty inputs too: the evidence is results, not messages."""
    for label, made in sweep(REGISTRY, kinds=("plain",)):
        try:
            Run(made).result()
        except Exception as error:
            raise AssertionError(f"{label}: {error!r}") from error


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("path", control.available_paths())
def test_paths_and_degrees_agree(want, path, degree):
    with control.kernel_path(path), control.degree(degree):
        assert total(REGISTRY) == want["all"]


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


def test_threads_with_the_same_inputs(want):
    """Several Python threads run all calls on the same input arrays, each with its own path and degree."""
    every = list(sweep(REGISTRY, **SOME))
    with control.kernel_path("portable"), control.degree(1):
        expected = [Run(made).digest() for _, made in every]
    wrong = []

    def work(k):
        path = control.available_paths()[k % len(control.available_paths())]
        with control.kernel_path(path), control.degree(1 + k % 3):
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
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12+ warns about fork in a process with threads
def test_after_fork(want):
    """A child of a process whose pool is running gives the same bits, with workers of its own."""
    with control.degree(3):
        assert total(REGISTRY, **SOME) == want["some"]
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(sink, repr(total(REGISTRY, **SOME)).encode())
            finally:
                os._exit(0)
        os.close(sink)
        with os.fdopen(source) as answer:
            text = answer.read()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert text == repr(want["some"])
        assert total(REGISTRY, **SOME) == want["some"]


def read_only(array):
    copy = np.array(array, order="K")
    copy.flags.writeable = False
    return copy


def test_read_only_inputs(want):
    assert total(REGISTRY, read_only, **SOME) == want["some"]


def unaligned(array):
    """A copy that begins one byte behind an aligned address."""
    memory = np.zeros(array.nbytes + 16, np.uint8)
    start = 1 + -memory.ctypes.data % 8
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def test_unaligned_inputs_are_copied_or_refused():
    """C code may rely on aligned elements: the same result, or a ValueError that says so."""
    refused = 0
    for label, made in sweep(REGISTRY, sizes=(17,), kinds=("plain",), large=False):
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


def test_memory_mapped_inputs(want, tmp_path):
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
        assert total(REGISTRY, mapped, **some) == total(REGISTRY, **some)
