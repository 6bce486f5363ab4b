"""Calls of public functions with made inputs: the same numbers everywhere, outputs with guards, results as digests.

A registry maps the name of a function to (maker, large): maker(n, draw) → list of Call at size n, large one more size.
The bits of all calls on every path, degree and environment (tools/bench/bits.py), the fuzz tests and the thread tests
use the same registries.
"""
import hashlib
import struct
from typing import NamedTuple

import numpy as np

SIZES = (0, 1, 15, 16, 17, 33, 100)
KINDS = ("plain", "huge", "wild")  # moderate numbers · any finite encoding · some NaN, infinities and others among them
# What a wrong call may raise.
ERRORS = (ValueError, TypeError, FloatingPointError, OverflowError, MemoryError, BufferError)
GUARD = 64  # bytes before and behind an output that nobody may write
FILL = 0xA5


class Out:
    """Marks an argument that the call writes: every run gets its own copy."""

    def __init__(self, array):
        self.array = array


class Built:
    """An argument that every run makes anew from other arguments."""

    def __init__(self, make, *args, **kwargs):
        self.make, self.args, self.kwargs = make, args, kwargs


class Call(NamedTuple):
    """function(*args, **kwargs); args are inputs (arrays are shared by all runs), Out, Built, or lists of these."""

    function: object
    args: tuple
    kwargs: dict


def call(function, *args, **kwargs):
    return Call(function, args, kwargs)


def out(*shape, dtype=np.float32):
    """An output that holds a fixed pattern before the call."""
    dtype = np.dtype(dtype)
    return Out(np.full(int(np.prod(shape)) * dtype.itemsize, FILL, np.uint8).view(dtype).reshape(shape))


class Draw:
    """Numbers from a name: the SplitMix64 stream of its characters. Nothing here rounds, so no mode shows in them."""

    def __init__(self, name, kind="plain"):
        self.seed = int.from_bytes(hashlib.sha256(f"{name} {kind}".encode()).digest()[:8], "little")
        self.kind = kind

    def words(self, *shape):
        """uint64 numbers."""
        count = int(np.prod(shape))
        gamma = 0x9E3779B97F4A7C15
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(gamma) + np.uint64(self.seed)
        self.seed = (self.seed + count * gamma) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(shape)

    def whole(self, low, high, *shape, dtype=np.int32):
        """Whole numbers from low to high - 1."""
        return ((self.words(*shape) % np.uint64(max(high - low, 1))).astype(np.int64) + low).astype(dtype)

    def real(self, *shape, dtype=np.float32, kind=None):
        """Floating-point numbers of the kind; plain: multiples of 2^-20 in [-2, 2)."""
        kind = kind or self.kind
        words = self.words(*shape)
        plain = ((words >> np.uint64(42)).astype(np.int64) - 2**21).astype(dtype) / dtype(1 << 20)
        if kind == "plain":
            return plain
        size = np.dtype(dtype).itemsize * 8
        layout = np.dtype(f"u{size // 8}")
        any_bits = (self.words(*shape) >> np.uint64(64 - size)).astype(layout)
        top, mantissa = (0xFF, 23) if size == 32 else (0x7FF, 52)
        exponent = any_bits >> layout.type(mantissa) & layout.type(top)
        if kind == "huge":
            return np.where(exponent == top, any_bits ^ layout.type(1 << mantissa), any_bits).view(dtype)
        any_bits = np.where((exponent == top) & (any_bits << layout.type(size - mantissa) != 0),
                            np.array(np.nan, dtype).view(layout), any_bits)  # no NaN payload is promised
        special = np.where(words % np.uint64(8) == 0, np.array([np.inf, -np.inf, np.nan, -0.0], dtype).view(layout)[
            (words >> np.uint64(8)) % np.uint64(4)], any_bits)
        return np.where((words >> np.uint64(4)) % np.uint64(16) == 0, special, plain.view(layout)).view(dtype)


def guarded(array):
    """(copy of the array, the memory around it, where it starts)."""
    memory = np.full(array.nbytes + 2 * GUARD + 16, FILL, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 16
    copy = memory[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy, memory, start


class Run:
    """The arguments of one run of a call, and what became of them. wrap: array → array, for the inputs, or None."""

    def __init__(self, made, wrap=None):
        self.function, self.outs, self.wrap = made.function, [], wrap
        self.args = [self.argument(a) for a in made.args]
        self.kwargs = {name: self.argument(a) for name, a in made.kwargs.items()}

    def argument(self, value):
        if isinstance(value, Out):
            self.outs.append(guarded(value.array))
            return self.outs[-1][0]
        if isinstance(value, np.ndarray):
            return self.wrap(value) if self.wrap else value
        if isinstance(value, Built):
            return value.make(*map(self.argument, value.args), **value.kwargs)
        return [self.argument(v) for v in value] if isinstance(value, list) else value

    def result(self):
        """What the function returns."""
        return self.function(*self.args, **self.kwargs)

    def check_guards(self):
        """AssertionError when something was written beside an output."""
        for copy, memory, start in self.outs:
            assert (memory[:start] == FILL).all() and (memory[start + copy.nbytes:] == FILL).all(), \
                f"written outside of an output of shape {copy.shape}"

    def digest(self):
        """SHA-256 of what the call returns or raises and of its outputs; any NaN is like any other."""
        h = hashlib.sha256()
        try:
            feed(h, self.result())
        except ERRORS as error:
            h.update(f"{type(error).__name__}: {error}".encode())
        for copy, _, _ in self.outs:
            feed(h, copy)
        self.check_guards()
        return h.hexdigest()


def feed(h, value):
    """Adds a result to a hash."""
    if isinstance(value, tuple | list):
        for v in value:
            feed(h, v)
    elif isinstance(value, np.ndarray):
        h.update(f"{value.dtype.str}{value.shape}".encode())
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), np.array(np.nan, value.dtype), value)
        h.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, float):
        h.update(struct.pack("<d", value) if value == value else b"NaN")
    else:
        h.update(repr(value).encode())


def sweep(registry, sizes=SIZES, kinds=KINDS, large=True):
    """(label, Call) of every function of a registry, in order of names. large: also each function's large size."""
    for name in sorted(registry):
        maker, its_large = registry[name]
        for n in [*sizes, *([its_large] if large else [])]:
            for kind in kinds if n in SIZES else ("plain",):
                for i, made in enumerate(maker(n, Draw(f"{name} {n}", kind))):
                    yield f"{name} n={n} {kind} #{i}", made


def total(registry, wrap=None, **options):
    """(one digest of a whole sweep, number of calls)."""
    h, count = hashlib.sha256(), 0
    for label, made in sweep(registry, **options):
        h.update(f"{label} {Run(made, wrap).digest()}\n".encode())
        count += 1
    return h.hexdigest(), count
