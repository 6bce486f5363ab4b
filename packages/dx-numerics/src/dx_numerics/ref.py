"""Readable reference of dx's arithmetic on numpy arrays, element by element in the kernels' order and bit-equal to
them. Slow; for reading and for tests. Only + - * /, comparisons, casts and bit views are used: no numpy sum, product
or function decides a bit here."""
import numpy as np

from .ref_functions import erf32 as erf32
from .ref_functions import exp32 as exp32
from .ref_functions import exp64 as exp64
from .ref_functions import log1p64 as log1p64
from .ref_functions import log64 as log64
from .ref_functions import rsqrt32 as rsqrt32
from .ref_functions import sigmoid32 as sigmoid32
from .ref_functions import softplus64 as softplus64
from .ref_functions import tanh32 as tanh32
from .ref_half import narrow_bfloat16 as narrow_bfloat16
from .ref_half import narrow_float16 as narrow_float16
from .ref_half import widen_bfloat16 as widen_bfloat16
from .ref_half import widen_float16 as widen_float16
from .ref_random import SplitMix64 as SplitMix64
from .ref_random import normal32 as normal32
from .ref_random import permutation as permutation
from .ref_random import random_at as random_at
from .ref_random import random_u64 as random_u64
from .ref_random import substream as substream
from .ref_random import uniform32 as uniform32
from .ref_random import uniform64 as uniform64

f32 = np.float32


def fma32(a, b, c):
    """a * b + c rounded once to binary32, elementwise (arrays broadcast); float32 array.

    The product is exact in binary64; the sum is rounded to odd there, so that the cast rounds correctly.
    """
    with np.errstate(all="ignore"):
        product = np.asarray(a, f32).astype(np.float64) * np.asarray(b, f32).astype(np.float64)
        addend = np.asarray(c, f32).astype(np.float64)
        total = np.atleast_1d(product + addend)
        back = total - product
        error = (product - (total - back)) + (addend - back)
        bits = total.view(np.int64)
        inexact = (error < 0) | (error > 0)
        away = (error > 0) == (total > 0)
        odd = np.where(inexact & ((bits & 1) == 0), np.where(away, 1, -1), 0)
        result = (bits + odd).view(np.float64).astype(f32)
    return result.reshape(np.shape(product + addend))


def _lanes(x):
    """x (..., n) padded with +0 to a multiple of 16, as (..., n/16, 16)."""
    x = np.asarray(x, f32)
    pad = -x.shape[-1] % 16
    x = np.concatenate([x, np.zeros(x.shape[:-1] + (pad,), f32)], axis=-1)
    return x.reshape(x.shape[:-1] + (x.shape[-1] // 16, 16))


def _tree(lanes):
    with np.errstate(all="ignore"):
        for width in (8, 4, 2, 1):
            lanes = lanes[..., :width] + lanes[..., width:2 * width]
    return lanes[..., 0]


def dot16(a, b):
    """dot16 over the last axis; a and b broadcast; float32."""
    a, b = np.broadcast_arrays(np.asarray(a, f32), np.asarray(b, f32))
    a, b = _lanes(a), _lanes(b)
    lanes = np.zeros(a.shape[:-2] + (16,), f32)
    for chunk in range(a.shape[-2]):
        lanes = fma32(a[..., chunk, :], b[..., chunk, :], lanes)
    return _tree(lanes)


def squared_norm16(x):
    """dot16 of x with itself over the last axis; float32."""
    return dot16(x, x)


def sum16(x):
    """sum16 over the last axis: dot16 with ones, so plain additions; float32."""
    x = _lanes(x)
    lanes = np.zeros(x.shape[:-2] + (16,), f32)
    with np.errstate(all="ignore"):
        for chunk in range(x.shape[-2]):
            lanes = x[..., chunk, :] + lanes
    return _tree(lanes)


def mean16(x):
    """sum16 / n over the last axis, one division; NaN for n == 0; float32."""
    with np.errstate(all="ignore"):
        return sum16(x) / f32(np.shape(x)[-1])
