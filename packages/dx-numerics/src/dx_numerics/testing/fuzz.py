"""Random wrong calls: python -m dx_numerics.testing.fuzz MODULE SECONDS [SEED [LABEL]] mutates arguments of the calls
in a module's REGISTRY.

Every case must return or raise one of calls.ERRORS, and write nothing beside its outputs. Before each case its label
and seed go to stdout, so that after a crash the last line names it; with SECONDS, SEED and LABEL it is run again.
The generator is Python's, seeded: a case depends on its seed alone.
"""
import contextlib
import importlib
import math
import os
import random
import sys
import tempfile
import time
import warnings

import numpy as np

from .calls import ERRORS, Run, sweep

_DTYPES = ("f4", "f8", "f2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "c8", "O", ">f4", ">i4", "S4", "U2")
_NUMBERS = (0, -1, 1, 2, 2**15, 2**31 - 1, 2**31, -2**31, 2**32, 2**62, 2**63 - 1, -2**63, 2**64, 10**400, 0.0, -0.0,
            1e-45, 5e-324, 1e39, 1e308, -1e308, math.inf, -math.inf, math.nan, True)
_STRANGE = (None, "text", b"bytes", bytearray(7), [], [1.0, 2.0], {}, object(), 1j, (), np.float32(3), range(3))


def memory_mapped(array):
    """A read-only memory map with the array's contents."""
    with tempfile.TemporaryFile() as file:
        file.write(array.tobytes() or b"\0")
        file.flush()
        mappable = array.size and array.dtype != object
        return np.memmap(file, array.dtype, "r", shape=array.shape) if mappable else array


def reshaped(rng, a):
    """Another shape, or the same elements along other strides."""
    way = rng.randrange(9)
    if way == 0:
        return a.reshape(-1) if rng.random() < 0.5 else a[None]
    if way == 1 and a.ndim:
        return a.T
    axis = rng.randrange(a.ndim) if a.ndim else None
    if axis is None:
        return a
    index = [slice(None)] * a.ndim
    if way == 2:
        index[axis] = slice(None, None, -1)
    elif way == 3:
        index[axis] = slice(0, 0)
    elif way == 4:
        index[axis] = slice(rng.choice((1, -1)), None)
    elif way == 5:
        return np.concatenate([a, a, a[tuple(index)]], axis)
    elif way == 6:
        return np.repeat(a, 2, axis)[tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(a.ndim))]
    elif way == 7:
        index[axis] = slice(0, 1)
        return np.broadcast_to(a[tuple(index)], a.shape) if a.shape[axis] else a
    elif a.dtype != object:  # off by one byte
        memory = np.zeros(a.nbytes + 8, np.uint8)
        off = memory[1:1 + a.nbytes].view(a.dtype).reshape(a.shape)
        off[...] = a
        return off
    return a[tuple(index)]


def revalued(rng, a):
    """Some elements replaced by extreme ones."""
    if not a.size or a.dtype.kind not in "fiu":
        return a
    b = np.array(a)
    if a.dtype.kind == "f":
        info = np.finfo(a.dtype)
        choices = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.max, info.smallest_subnormal, 1e30]
    else:
        info = np.iinfo(a.dtype)
        choices = [info.min, info.max, 0, 1, 2, max(info.min, -1), max(info.min, -2), a.size % 100, info.max // 2 + 1]
    flat = b.reshape(-1)
    for _ in range(rng.choice((1, 1, 2, flat.size))):
        flat[rng.randrange(flat.size)] = rng.choice(choices)
    return b


def mutated(rng, value):
    """Something else in place of an argument."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        copy = list(value)
        i = rng.randrange(len(copy))
        way = rng.randrange(6)
        if way == 0:
            del copy[i]
        elif way == 1:
            copy.append(copy[i])
        else:
            copy[i] = mutated(rng, copy[i])
        return copy
    if isinstance(value, np.ndarray) and rng.random() < 0.85:
        way = rng.randrange(8)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if way == 0:
                return value.astype(rng.choice(_DTYPES))
            if way <= 2:
                return reshaped(rng, value)
            if way <= 4:
                return revalued(rng, value)
        if way == 5:
            value = value[...]
            value.flags.writeable = False
            return value
        if way == 6:
            return memory_mapped(value)
        return rng.choice((value.tolist, value.tobytes, lambda: memoryview(value), lambda: value[()]))()
    if isinstance(value, int | float) and rng.random() < 0.85:
        return rng.choice(_NUMBERS)
    return rng.choice(_STRANGE + _NUMBERS)


def mutate(rng, run):
    """Changes one to three arguments of a run."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, keys = run.args, range(len(run.args))
        if run.kwargs and (not run.args or rng.random() < 0.4):
            holder, keys = run.kwargs, sorted(run.kwargs)
        if keys:
            key = rng.choice(keys)
            with contextlib.suppress(*ERRORS):  # a change that numpy refuses (text from a mutation before, …)
                holder[key] = mutated(rng, holder[key])


def case(made, seed):
    """One case; raises when it does what no call may do."""
    rng = random.Random(seed)
    run = Run(made)
    mutate(rng, run)
    with warnings.catch_warnings(), contextlib.suppress(*ERRORS):
        warnings.simplefilter("error")
        run.result()
    run.check_guards()


def limit_memory():
    """Huge sizes become MemoryError instead of swapping; a sanitizer's runtime has its own setting."""
    if "asan" not in os.environ.get("LD_PRELOAD", "") and sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def main(module, seconds, seed=0, label=None):
    registry = importlib.import_module(module).REGISTRY
    every = dict(sweep(registry, sizes=(0, 1, 2, 15, 17), kinds=("plain", "wild"), large=False))
    by_name = {}
    for key, made in every.items():
        by_name.setdefault(key.split()[0], []).append((key, made))
    limit_memory()
    if label is not None:
        case(every[label], seed)
        return
    start, count = time.monotonic(), 0
    while time.monotonic() - start < seconds or count < len(by_name):
        for name in sorted(by_name):  # every function gets as many cases
            key, made = by_name[name][random.Random(seed).randrange(len(by_name[name]))]
            os.write(1, f"{seed} {key}\n".encode())
            try:
                case(made, seed)
            except BaseException:
                os.write(1, b"failed\n")
                raise
            seed += 1
            count += 1
    os.write(1, f"done {count}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:4]), *sys.argv[4:5])
