"""Reference of dx_kernels.activations, on arrays of any shape. tanh32 and sigmoid32 are those of dx-numerics, which has
their reference."""
import numpy as np

from ..below import sigmoid32, tanh32

f32, f64 = np.float32, np.float64

GELU_C0 = f32(float.fromhex("0x1.988454p-1"))
GELU_C1 = f32(float.fromhex("0x1.6e4e26p-5"))

# The erf form's tail, highest power first: exp(r) = 1 + r + r^2 p(r); P(-a) = exp(-a^2/2) num(a) / den(a).
_EXP = [float.fromhex(c) for c in (
    "0x1.a1132015ba37ep-16", "0x1.a15179d80ae96p-13", "0x1.6c16858b7acb9p-10", "0x1.1110c632a3088p-7",
    "0x1.5555555c87148p-5", "0x1.55555567532adp-3", "0x1p-1")]
_NUM = [float.fromhex(c) for c in (
    "0x1.d4f1e28d51a5ap-11", "0x1.7f200386841f1p-7", "0x1.24fbf317f175bp-4", "0x1.0120a583ca857p-2",
    "0x1.042b312d2cc0ep-1", "0x1.ffffffff54baep-2")]
_DEN = [float.fromhex(c) for c in (
    "0x1.25de324d0c3f8p-9", "0x1.e02c52862a4bep-6", "0x1.73cdcdb9320e3p-3", "0x1.5137af2a2b1eap-1",
    "0x1.731f80bb91113p+0", "0x1.d06d5aab00d68p+0", "0x1p+0")]
_LOG2E, _LN2, _INV_SQRT_2PI = (float.fromhex(c) for c in (
    "0x1.71547652b82fep+0", "0x1.62e42fefa39efp-1", "0x1.9884533d43651p-2"))


def relu_forward(x):
    """x < 0 ? +0 : x + 0; float32 array."""
    x = np.asarray(x, f32)
    return np.where(x < 0, f32(0), x + f32(0))


def relu_backward(dy, x):
    """x <= 0 ? +0 : dy; float32 array."""
    return np.where(np.asarray(x, f32) <= 0, f32(0), np.asarray(dy, f32))


def tanh_forward(x):
    """tanh32(x); float32 array."""
    return tanh32(np.asarray(x, f32))


def tanh_backward(dy, y):
    """dy * (1 - y * y); float32 array."""
    with np.errstate(all="ignore"):
        return dy * (f32(1) - y * y)


def sigmoid_forward(x):
    """sigmoid32(x); float32 array."""
    return sigmoid32(np.asarray(x, f32))


def sigmoid_backward(dy, y):
    """dy * (y * (1 - y)); float32 array."""
    with np.errstate(all="ignore"):
        return dy * (y * (f32(1) - y))


def gelu_tanh_forward(x):
    """(y, t): t = tanh32(c0 (x + c1 (x (x x)))), y = (0.5 x) (1 + t); float32 arrays."""
    x = np.asarray(x, f32)
    with np.errstate(all="ignore"):
        t = tanh32(GELU_C0 * (x + GELU_C1 * (x * (x * x))))
        return (f32(0.5) * x) * (f32(1) + t), t


def gelu_tanh_backward(dy, x, t):
    """dy * (0.5 (1 + t) + 0.5 x (1 - t^2) c0 (1 + 3 c1 x^2)); float32 array."""
    x = np.asarray(x, f32)
    with np.errstate(all="ignore"):
        s = f32(1) - t * t
        term = ((f32(0.5) * x) * s) * (GELU_C0 * (f32(1) + (f32(3) * GELU_C1) * (x * x)))
        return dy * (f32(0.5) * (f32(1) + t) + np.where(s == 0, f32(0), term))


def _horner(coefficients, x):
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


def _normal_tail(x):
    """(P(-a), exp(-a^2/2), a) for a = min(|x|, 15); float64 arrays."""
    a = np.abs(np.asarray(x, f32).astype(f64))
    a = np.where(a > 15, f64(15), a)
    z = -0.5 * (a * a)
    k = (z * _LOG2E + 6755399441055744.0) - 6755399441055744.0
    r = z - k * _LN2
    e = np.ldexp(1.0 + (r + (r * r) * _horner(_EXP, r)), np.where(np.isnan(k), 0, k).astype(int))
    return e * (_horner(_NUM, a) / _horner(_DEN, a)), e, a


def gelu_erf_forward(x):
    """x P(x), rounded to binary32 once; float32 array."""
    x = np.asarray(x, f32)
    with np.errstate(all="ignore"):
        tail, _, a = _normal_tail(x)
        v = x.astype(f64)
        return np.where(v < 0, -(a * tail), v - a * tail).astype(f32)


def gelu_erf_backward(dy, x):
    """dy * (P(x) + x exp(-x^2/2) / sqrt(2 pi)), rounded to binary32 once; float32 array."""
    x = np.asarray(x, f32)
    with np.errstate(all="ignore"):
        tail, e, a = _normal_tail(x)
        slope = (a * e) * _INV_SQRT_2PI
        return (np.asarray(dy, f32).astype(f64) * np.where(x < 0, tail - slope, (1.0 - tail) + slope)).astype(f32)
