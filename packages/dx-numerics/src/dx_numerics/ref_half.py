"""Readable reference of dx_numerics.half: one number at a time, from the definition of the formats in exact fractions;
bit-equal to the kernels (a NaN's payload aside)."""
import math
from fractions import Fraction

import numpy as np


def _power(exponent):
    """2 to a whole exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def _widen(bits, exponent_bits, fraction_bits):
    sign = -1.0 if bits >> (exponent_bits + fraction_bits) else 1.0
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == (1 << exponent_bits) - 1:
        return float("nan") if fraction else sign * float("inf")
    if exponent == 0:
        return sign * float(Fraction(fraction) * _power(1 - bias - fraction_bits))
    return sign * float(Fraction((1 << fraction_bits) + fraction) * _power(exponent - bias - fraction_bits))


def _narrow(value, sign, exponent_bits, fraction_bits):
    """value: a float; sign: 0 or 1."""
    top = sign << (exponent_bits + fraction_bits)
    bias = (1 << exponent_bits - 1) - 1
    infinite = (1 << exponent_bits) - 1 << fraction_bits
    if value != value:
        return top | infinite | 1 << fraction_bits - 1
    if value in (float("inf"), float("-inf")):
        return top | infinite
    if value == 0:
        return top
    size = abs(Fraction(value))
    exponent = max(1 - bias, math.frexp(value)[1] - 1)
    units = round(size / _power(exponent - fraction_bits))  # half to even
    # `units` of the exponent's last place; a carry into the next exponent is the same addition of bits
    return top | min((exponent + bias - 1 << fraction_bits) + units, infinite)


def _map(function, x, dtype):
    x = np.asarray(x)
    return np.array([function(v) for v in x.reshape(-1)], dtype).reshape(x.shape)


def widen_float16(x):
    """binary16 (float16, or its bits as uint16) to binary32; float32."""
    return _map(lambda v: _widen(int(v), 5, 10), np.asarray(x).view(np.uint16), np.float32)


def widen_bfloat16(x):
    """bfloat16 bits (uint16) to binary32; float32."""
    return _map(lambda v: _widen(int(v), 8, 7), x, np.float32)


def narrow_float16(x):
    """binary32 to binary16, to nearest, ties to even; float16."""
    return _map(lambda v: _narrow(float(v), int(np.signbit(v)), 5, 10), x, np.uint16).view(np.float16)


def narrow_bfloat16(x):
    """binary32 to bfloat16, to nearest, ties to even; uint16 bits."""
    return _map(lambda v: _narrow(float(v), int(np.signbit(v)), 8, 7), x, np.uint16)
