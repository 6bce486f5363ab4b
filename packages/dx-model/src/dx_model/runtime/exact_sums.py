"""Exact sums of binary32 numbers: the one kind of sum whose bits no grouping and no order can change.

A binary32 number is a whole number of 2^-149. A sum is kept as such a whole number in limbs of 32 bits, held in int64,
so that 2^31 - 1 terms fit before a carry is due. Rounding happens once, when a quotient is asked for.
"""
import math

import numpy as np

from ..readout.errors import require

LIMBS = 9  # 254 exponents and 24 bits of fraction reach bit 277; 288 are there, and the last limb has 63
BITS, MASK = 32, np.int64(0xFFFFFFFF)
MOST_TERMS = 2**31 - 1
UNIT = -149  # a sum counts multiples of 2^UNIT


def deposit(x: np.ndarray) -> np.ndarray:
    """(LIMBS, width) int64: the exact column sums of x (n, width) float32, n <= 2^31 - 1, all finite."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.int32).astype(np.int64)
    exponent, fraction = (bits >> 23) & 255, bits & 0x7FFFFF
    whole = np.where(exponent > 0, fraction | 0x800000, fraction)
    shift = np.maximum(exponent, 1) - 1
    limb, moved = shift >> 5, whole << (shift & 31)  # below 2^55
    sign = np.where(bits < 0, np.int64(-1), np.int64(1))
    low, high = sign * (moved & MASK), sign * (moved >> BITS)
    out = np.zeros((LIMBS, x.shape[1]), np.int64)
    for k in range(LIMBS):
        out[k] += np.where(limb == k, low, 0).sum(axis=0, dtype=np.int64)  # exact: whole numbers
        if k:
            out[k] += np.where(limb == k - 1, high, 0).sum(axis=0, dtype=np.int64)  # exact: whole numbers
    return out


def carried(limbs: np.ndarray) -> np.ndarray:
    """The same numbers with every limb but the last in [0, 2^32): equal sums have equal arrays."""
    out = limbs.copy()
    for k in range(LIMBS - 1):
        out[k + 1] += out[k] >> BITS
        out[k] &= MASK
    return out


def wholes(limbs: np.ndarray) -> list[int]:
    """The sums of the columns, in units of 2^-149."""
    totals = [0] * limbs.shape[1]
    for k in range(LIMBS - 1, -1, -1):
        totals = [(t << BITS) + v for t, v in zip(totals, limbs[k].tolist(), strict=True)]
    return totals


def round_quotient(numerator: int, denominator: int) -> float:
    """numerator * 2^-149 / denominator as the nearest binary32 number, ties to even; denominator > 0. An infinity
    beyond the largest; the sign of a zero is +."""
    require(denominator > 0, "denominator", denominator, "more than 0")
    size = abs(numerator)
    drop = max(size.bit_length() - denominator.bit_length() - 25, 0)  # the quotient keeps 24 bits or more
    quotient, rest = divmod(size, denominator << drop)
    more = max(quotient.bit_length() - 24, 0)
    if more:
        rest += (quotient & ((1 << more) - 1)) * (denominator << drop)
        quotient, drop = quotient >> more, drop + more
    twice, whole = 2 * rest, denominator << drop
    if twice > whole or (twice == whole and quotient & 1):
        quotient += 1
    if quotient.bit_length() + drop + UNIT > 128:
        return math.copysign(math.inf, numerator)
    value = math.ldexp(quotient, drop + UNIT)
    return -value if numerator < 0 and value else value


def round_quotients(numerators: np.ndarray, denominator: int) -> np.ndarray:
    """(width,) float32: every column of the limbs over one denominator."""
    return np.array([round_quotient(n, denominator) for n in wholes(numerators)], np.float32)
