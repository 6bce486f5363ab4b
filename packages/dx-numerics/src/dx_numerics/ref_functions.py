"""Readable reference of dx_numerics' functions: numpy arrays, one IEEE operation a step, in the order of
dx_numerics/math32.h and math64.h and bit-equal to them. No numpy function decides a bit here: only + - * / sqrt,
comparisons, selects, casts and bit views."""
import functools

import numpy as np

f32, f64, u32, u64 = np.float32, np.float64, np.uint32, np.uint64
INF = float("inf")
ROUND32 = f32(12582912.0)  # 1.5 * 2^23: adding it rounds to a whole number
ROUND64 = f64(6755399441055744.0)  # 1.5 * 2^52


def _elementwise(dtype):
    """Decorator: the function sees an array of at least one dimension and the result has the argument's shape."""
    def wrap(function):
        @functools.wraps(function)
        def of_array(x):
            x = np.asarray(x, dtype)
            with np.errstate(all="ignore"):
                result = function(np.atleast_1d(x))
            assert result.dtype == dtype
            return result.reshape(x.shape)
        return of_array
    return wrap


def _h(*texts):
    """C hexfloats as binary64 numbers."""
    numbers = [f64(float.fromhex(text)) for text in texts]
    return numbers if len(numbers) > 1 else numbers[0]


def _h32(*texts):
    """C hexfloats as binary32 numbers (each is exactly one)."""
    return [f32(float.fromhex(text)) for text in texts] if len(texts) > 1 else f32(float.fromhex(texts[0]))


def _clamp(x, low, high):
    x = np.where(x > high, high, x)
    return np.where(x < low, low, x)


def _horner(x, *coefficients):
    """The first coefficient is the highest; each multiplication and addition is rounded."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


@_elementwise(f32)
def exp32(x):
    """exp(x) in binary32 (math32.h, dx_exp32)."""
    inverse, high, low = _h32("0x1.715476p+0", "0x1.63p-1", "-0x1.bd0106p-13")
    c0, c1, c2, c3, c4 = _h32("0x1.fffffcp-2", "0x1.55548cp-3", "0x1.555858p-5", "0x1.123dep-7", "0x1.6ac74cp-10")
    t = x * inverse + ROUND32
    n = t - ROUND32
    a, w = x - n * high, n * low
    r = a - w
    g = r * r
    q = (c0 + c1 * r) + g * ((c2 + c3 * r) + g * c4)
    r_low, s = (a - r) - w, f32(1) + r
    e = (f32(1) - s) + r
    y = s + ((e + r_low) + g * q)
    back = np.where(x < f32(-64), _h32("0x1p-64"), f32(1))
    shift = (t.view(u32) << u32(23)) + (u32(0x3F800000) - back.view(u32))
    z = (y.view(u32) + shift).view(f32) * back
    z = np.where(x < f32(-104), f32(0), z)
    return np.where(x <= _h32("0x1.62e42ep+6"), z, x + f32(INF))


def _reduce_exp2(t):
    """f and the exponent bits of 2^n for t = n + f, n whole, |f| <= 1/2."""
    k = t + ROUND64
    return t - (k - ROUND64), k.view(u64) << u64(52)


@_elementwise(f32)
def tanh32(x):
    """tanh(x), evaluated in binary64, rounded once (math32.h, dx_tanh32)."""
    c1, c2, c3, c4, c5, c6, c7 = _h(
        "0x1.62e42fefd32c3p-1", "0x1.ebfbe045304bdp-3", "0x1.c6b08cb1670e1p-5", "0x1.3b2a1c3613eb0p-7",
        "0x1.5d88bdb26496dp-10", "0x1.443f6252ee25ap-13", "0x1.ffcbdc7b47117p-17")
    f, shift = _reduce_exp2(_clamp(x, f32(-10), f32(10)).astype(f64) * _h("0x1.71547652b82fep+1"))
    g = f * f
    p = f * ((c1 + c2 * f) + g * ((c3 + c4 * f) + g * ((c5 + c6 * f) + g * c7)))
    s = (shift + u64(0x3FF0000000000000)).view(f64)
    sp = s * p
    y = ((sp + (s - 1.0)) / (sp + (s + 1.0))).astype(f32)
    return (y.view(u32) | (x.view(u32) & u32(0x80000000))).view(f32)


@_elementwise(f32)
def sigmoid32(x):
    """1 / (1 + exp(-x)), evaluated in binary64, rounded once (math32.h, dx_sigmoid32)."""
    c0, c1, c2, c3, c4, c5, c6 = _h(
        "0x1.0000000261531p+0", "0x1.62e430c7e8192p-1", "0x1.ebfbdadca918ep-3", "0x1.c6aed4b8ef83ap-5",
        "0x1.3b2dbbc2ac0c8p-7", "0x1.5f456b05220bap-10", "0x1.41d334447d2b0p-13")
    f, shift = _reduce_exp2(_clamp(x, f32(-104), f32(104)).astype(f64) * _h("-0x1.71547652b82fep+0"))
    g = f * f
    p = (c0 + c1 * f) + g * ((c2 + c3 * f) + g * ((c4 + c5 * f) + g * c6))
    return (1.0 / (1.0 + (p.view(u64) + shift).view(f64))).astype(f32)


@_elementwise(f32)
def erf32(x):
    """erf(x), evaluated in binary64, rounded once (math32.h, dx_erf32)."""
    t = _clamp(x, f32(-3.9375), f32(3.9375)).astype(f64)
    z = t * t
    v = z * z
    q = _horner(v, *_h(
        "-0x1.192d2bf745f89p-63", "-0x1.76d80a8d15e4ap-50", "-0x1.fcfd1ab2485d0p-40", "-0x1.acf6fb695008fp-31",
        "-0x1.3a9c2981d94fep-23", "-0x1.ecde92b5cb4a3p-17", "-0x1.bfac4ef0c01d8p-11", "-0x1.b8299c1771f75p-6",
        "-0x1.8127439b8f9d7p-2"))
    p = _horner(v, *_h(
        "0x1.4fc4928c9deb7p-56", "0x1.04bbb959fcc5fp-44", "0x1.74d04984cadd6p-35", "0x1.91827cded3122p-27",
        "0x1.a64289540e7e9p-20", "0x1.f7426c38a30ccp-14", "0x1.56494a8a6577dp-8", "0x1.ce2ed1c9b720bp-4",
        "0x1.20dd74fef39bep+0"))
    return (t * (q * z + p)).astype(f32)


@_elementwise(f32)
def rsqrt32(x):
    """1 / sqrt(x), two operations (math32.h, dx_rsqrt32)."""
    return f32(1) / np.sqrt(x)


@_elementwise(f64)
def exp64(x):
    """exp(x) in binary64 (math64.h, dx_exp64)."""
    inverse, high, low = _h("0x1.71547652b82fep+0", "0x1.62e42feep-1", "0x1.a39ef35793c76p-33")
    c = _h("0x1.0p-1", "0x1.5555555555557p-3", "0x1.5555555555556p-5", "0x1.11111111100d8p-7",
           "0x1.6c16c16c162d2p-10", "0x1.a01a01abe9ce8p-13", "0x1.a01a01a6d9931p-16", "0x1.71de022bd5558p-19",
           "0x1.27e4db6121bf2p-22", "0x1.af4df5750ec00p-26", "0x1.1f730a202e3a1p-29")
    t = x * inverse + ROUND64
    n = t - ROUND64
    a, w = x - n * high, n * low
    r = a - w
    g = r * r
    h = g * g
    q0 = (c[0] + c[1] * r) + g * (c[2] + c[3] * r)
    q1 = (c[4] + c[5] * r) + g * (c[6] + c[7] * r)
    q2 = (c[8] + c[9] * r) + g * c[10]
    q = q0 + h * (q1 + h * q2)
    r_low, s = (a - r) - w, 1.0 + r
    e = (1.0 - s) + r
    y = s + ((e + r_low) + g * q)
    back = np.where(x < -512.0, _h("0x1p-512"), 1.0)
    shift = (t.view(u64) << u64(52)) + (u64(0x3FF0000000000000) - back.view(u64))
    z = (y.view(u64) + shift).view(f64) * back
    z = np.where(x < -746.0, 0.0, z)
    return np.where(x <= _h("0x1.62e42fefa39efp+9"), z, x + INF)


def _split_log64(x):
    """k and f with x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)."""
    bits = x.view(u64)
    kb = (bits - u64(0x3FE6A09E667F3BCD) + (u64(2048) << u64(52))) >> u64(52)
    k = (kb | u64(0x4330000000000000)).view(f64) - (4503599627370496.0 + 2048.0)
    return k, (bits - ((kb - u64(2048)) << u64(52))).view(f64) - 1.0


def _join_log64(k, f, c):
    """k log(2) + log(1 + f) + c."""
    c0, c1, c2, c3, c4, c5, c6 = _h(
        "0x1.5555555555558p-1", "0x1.9999999995204p-2", "0x1.2492492e09d4dp-2", "0x1.c71c62c639fdep-3",
        "0x1.7462bd8f7796ep-3", "0x1.39fd392179a95p-3", "0x1.2b6688a387e03p-3")
    s = f / (2.0 + f)
    z = s * s
    v = z * z
    q = z * ((c0 + c1 * z) + v * ((c2 + c3 * z) + v * ((c4 + c5 * z) + v * c6)))
    h = 0.5 * f * f
    high, low = _h("0x1.62e42feep-1", "0x1.a39ef35793c76p-33")
    return k * high - ((h - (s * (h + q) + (k * low + c))) - f)


@_elementwise(f64)
def log64(x):
    """log(x) in binary64 (math64.h, dx_log64)."""
    subnormal = x < _h("0x1p-1022")
    k, f = _split_log64(x * np.where(subnormal, _h("0x1p54"), 1.0))
    r = _join_log64(k + np.where(subnormal, -54.0, 0.0), f, 0.0)
    r = np.where(x > 0, r, np.where(x == 0, -INF, float("nan")))
    return np.where(x < INF, r, x + x)


@_elementwise(f64)
def log1p64(x):
    """log(1 + x) in binary64 (math64.h, dx_log1p64)."""
    u = 1.0 + x
    part = u - 1.0
    low = (1.0 - (u - part)) + (x - part)
    k, f = _split_log64(u)
    r = _join_log64(k, np.where(k == 0, x, f), np.where(k == 0, 0.0, low / u))
    r = np.where(x > -1, r, np.where(x == -1, -INF, float("nan")))
    r = np.where(x == 0, x, r)
    return np.where(x < INF, r, x + x)


@_elementwise(f64)
def softplus64(x):
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)) in binary64 (math64.h, dx_softplus64)."""
    positive, e = np.where(x > 0, x, 0.0), exp64(np.where(x > 0, -x, x))
    u = 1.0 + e
    low = (1.0 - u) + e
    k, f = _split_log64(u)
    return positive + _join_log64(k, np.where(k == 0, e, f), np.where(k == 0, 0.0, low / u))
