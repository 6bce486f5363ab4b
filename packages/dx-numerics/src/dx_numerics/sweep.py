"""A fixed sweep over everything that has a per-path implementation: named arrays whose bytes are the same on every
kernel path, compiler and machine. driver/main.c prints the same digests without Python."""
import hashlib

import numpy as np

from .bits import canonical_bytes
from .functions import erf32, exp32, exp64, log1p64, log64, rsqrt32, sigmoid32, softplus64, tanh32
from .half import narrow_bfloat16, narrow_float16, widen_bfloat16, widen_float16
from .random import normal32, permutation, random_u64, substream, uniform32, uniform64
from .reduce import dot16, mean16, sum16

SEED = 1
FUNCTIONS32 = {"exp32": exp32, "tanh32": tanh32, "erf32": erf32, "sigmoid32": sigmoid32, "rsqrt32": rsqrt32}
FUNCTIONS64 = {"exp64": exp64, "log64": log64, "log1p64": log1p64, "softplus64": softplus64}


def _drawn(draw, n, dtype, name, **options):
    out = np.empty(n, dtype)
    draw(substream(SEED, name), out, **options)
    return out


def encodings32(n, name):
    """Arbitrary binary32 encodings, NaN and infinities among them: the upper halves of the stream's values."""
    return (_drawn(random_u64, n, np.uint64, name) >> np.uint64(32)).astype(np.uint32).view(np.float32)


def between(n, name, low, high):
    """Uniform binary32 numbers."""
    return _drawn(uniform32, n, np.float32, name, low=low, high=high)


def _sums(reduce, step_a, step_b):
    """reduce(a, b) at lengths 0 to 70 of moderate numbers, then of arbitrary encodings; float32 (142,)."""
    out = []
    for a, b in ((between(512, "a", -1, 1), between(512, "b", -1, 1)), (encodings32(512, "c"), encodings32(512, "d"))):
        for n in range(71):
            out.append(reduce(a[n::step_a][:n], b[n::step_b][:n]))
    return np.array(out, np.float32)


def items():
    """(name, array) in a fixed order, computed on the calling thread's path."""
    yield "random_u64", _drawn(random_u64, 1000, np.uint64, "random_u64")
    yield "random_uniform24", _drawn(uniform32, 1000, np.float32, "random_uniform24")
    yield "random_uniform53", _drawn(uniform64, 1000, np.float64, "random_uniform53")
    yield "random_between", between(1000, "random_between", -0.3, 0.1)
    yield "random_normal", _drawn(normal32, 1000, np.float32, "random_normal", mean=0.25, deviation=0.02)
    yield "permutation", permutation(substream(SEED, "permutation"), 1000)
    yield "dot16", _sums(dot16, 1, 1)
    yield "dot16_strided", _sums(dot16, 3, 2)
    yield "sum16", _sums(lambda a, b: sum16(a), 1, 1)
    yield "sum16_strided", _sums(lambda a, b: sum16(a), 3, 1)
    yield "mean16", _sums(lambda a, b: mean16(a), 1, 1)
    half = np.arange(2**16, dtype=np.uint16)
    yield "widen_float16", widen_float16(half)
    yield "widen_bfloat16", widen_bfloat16(half)
    wide = np.concatenate([encodings32(2048, "e"), between(2048, "f", -1, 1) * np.float32(2.0**-14)])
    wide = np.where(np.isnan(wide), np.float32(np.nan), wide)  # a NaN's payload is kept here, so give it one
    yield "narrow_float16", narrow_float16(wide).view(np.uint16)
    yield "narrow_bfloat16", narrow_bfloat16(wide)
    x = np.concatenate([encodings32(4096, "g"), between(4096, "h", -16, 16)])
    for name, function in FUNCTIONS32.items():
        yield name, function(x)
    x = np.concatenate([_drawn(random_u64, 4096, np.uint64, "i").view(np.float64),
                        between(4096, "j", -16, 16).astype(np.float64), _drawn(uniform64, 4096, np.float64, "k")])
    for name, function in FUNCTIONS64.items():
        yield name, function(x)


def digests():
    """name → SHA-256 of the canonical bytes of each item, on the calling thread's path."""
    return {name: hashlib.sha256(canonical_bytes(array)).hexdigest() for name, array in items()}
