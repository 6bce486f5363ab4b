"""Readable reference of dx_numerics' functions: numpy arrays, one IEEE operation a step, in the order of
dx_numerics/math32.h and math64.h and bit-equal to them. No numpy function decides a bit here: only + - * / sqrt,
comparisons, selects, casts and bit views."""
import functools

import numpy as np

f32, f64 = np.float32, np.float64
MAGIC = f64(6755399441055744.0)  # 1.5 * 2^52


def _elementwise(dtype):
    def wrap(function):
        @functools.wraps(function)
        def of_array(x):
            x = np.asarray(x, dtype)
            with np.errstate(all="ignore"):
                return np.asarray(function(np.atleast_1d(x)), dtype).reshape(x.shape)
        return of_array
    return wrap


def _h(text):
    return float.fromhex(text)


def _u64(x):
    return np.asarray(x, f64).view(np.uint64)


def _f64(bits):
    return np.asarray(bits, np.uint64).view(f64)


def _clamp(x, low, high):
    x = np.where(x > high, high, x)
    return np.where(x < low, low, x)


def _poly(x, coefficients):
    """Horner from the highest coefficient, each step rounded."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def _reduce_exp2(t):
    k = t + MAGIC
    return t - (k - MAGIC), _u64(k) << np.uint64(52)


def _exp2_short(t):
    f, shift = _reduce_exp2(t)
    g = f * f
    a = _h("0x1.0000000261531p+0") + _h("0x1.62e430c7e8192p-1") * f
    b = _h("0x1.ebfbdadca918ep-3") + _h("0x1.c6aed4b8ef83ap-5") * f
    c = (_h("0x1.3b2dbbc2ac0c8p-7") + _h("0x1.5f456b05220bap-10") * f) + _h("0x1.41d334447d2b0p-13") * g
    return _f64(_u64(a + g * (b + g * c)) + shift)


@_elementwise(f32)
def tanh32(x):
    f, shift = _reduce_exp2(_clamp(x, f32(-10), f32(10)).astype(f64) * _h("0x1.71547652b82fep+1"))
    g = f * f
    a = _poly(g, [_h("0x1.ffcbdc7b47117p-17"), _h("0x1.5d88bdb26496dp-10"), _h("0x1.c6b08cb1670e1p-5"),
                  _h("0x1.62e42fefd32c3p-1")])
    b = _poly(g, [_h("0x1.443f6252ee25ap-13"), _h("0x1.3b2a1c3613eb0p-7"), _h("0x1.ebfbe045304bdp-3")])
    s = _f64(shift + np.uint64(0x3FF0000000000000))
    e = s * ((a + f * b) * f) + (s - 1.0)
    y = (e / (e + 2.0)).astype(f32)
    return (y.view(np.uint32) | (x.view(np.uint32) & np.uint32(0x80000000))).view(f32)


@_elementwise(f32)
def sigmoid32(x):
    e = _exp2_short(_clamp(x, f32(-104), f32(104)).astype(f64) * _h("-0x1.71547652b82fep+0"))
    return (1.0 / (1.0 + e)).astype(f32)


@_elementwise(f32)
def erf32(x):
    t = _clamp(x, f32(-3.9375), f32(3.9375)).astype(f64)
    z = t * t
    y = z * z
    a = _poly(y, [_h(c) for c in (
        "-0x1.1997d7a0e355bp-63", "-0x1.773c0eafe04a0p-50", "-0x1.fd5129ba9ccccp-40", "-0x1.ad1a688701b62p-31",
        "-0x1.3aa543924a029p-23", "-0x1.ece172583ba4ep-17", "-0x1.bfac8d458d01cp-11", "-0x1.b8299e1408bd9p-6",
        "-0x1.8127439dd3396p-2")])
    b = _poly(y, [_h(c) for c in (
        "0x1.5030b9bc8448dp-56", "0x1.04f3928aa26c9p-44", "0x1.74fd55cabe792p-35", "0x1.91973dc9a52bep-27",
        "0x1.a6487e068f1e9p-20", "0x1.f7436c76c6268p-14", "0x1.56495499b3143p-8", "0x1.ce2ed1ff33861p-4",
        "0x1.20dd74fef7c9ap+0")])
    return (t * (a * z + b)).astype(f32)


@_elementwise(f32)
def rsqrt32(x):
    return f32(1) / np.sqrt(x)
