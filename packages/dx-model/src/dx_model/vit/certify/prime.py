"""Arithmetic modulo the prime 2^61 - 1 on uint64 arrays; every result is below the prime."""
import numpy as np

PRIME = 2**61 - 1
U = np.uint64
_P, _61, _31, _30 = U(PRIME), U(61), U(31), U(30)
_LOW31, _LOW30, _LOW21 = U(2**31 - 1), U(2**30 - 1), U(2**21 - 1)
LIMB_PRODUCTS = 2**53 // 2**42  # how many products of 21-bit limbs a binary64 sum holds exactly


def reduced(x):
    """x mod p for x below 2^64."""
    x = (x & _P) + (x >> _61)
    with np.errstate(over="ignore"):
        return np.minimum(x, x - _P)  # below the prime the difference wraps around to something larger


def add(a, b):
    return reduced(a + b)


def sub(a, b):
    return reduced(a + (_P - b))


def mul(a, b):
    a1, a0, b1, b0 = a >> _31, a & _LOW31, b >> _31, b & _LOW31
    middle = a1 * b0 + a0 * b1
    high = ((a1 * b1) << U(1)) + (middle >> _30) + ((middle & _LOW30) << _31)
    return reduced(reduced(high) + reduced(a0 * b0))


def times_power_of_two(x, k):
    """x 2^k mod p, 0 <= k < 61: a rotation of 61 bits."""
    return reduced(((x & U(2**(61 - k) - 1)) << U(k)) + (x >> U(61 - k))) if k else x  # exact: whole numbers


def inverse(a):
    """1 / a, and 0 for 0: a^(p - 2)."""
    result, square, e = np.full(np.shape(a), 1, U), a, PRIME - 2
    while e:
        if e & 1:
            result = mul(result, square)
        square, e = mul(square, square), e >> 1
    return result


def inverse_of(n):
    """1 / n of a whole number, not a multiple of p."""
    return U(pow(n, PRIME - 2, PRIME))  # exact: whole numbers


def row_sum(x):
    """Sum over the last axis, of at most 2^30 elements."""
    low = np.add.reduce(x & _LOW31, axis=-1)  # exact: whole numbers below 2^61
    high = np.add.reduce(x >> _31, axis=-1)  # exact: whole numbers
    return add(reduced(low), times_power_of_two(reduced(high), 31))


def matmul(a, b):
    """Matrix product (stacks too), by 21-bit limbs whose binary64 products and sums are exact in any order."""
    depth = a.shape[-1]
    if depth > LIMB_PRODUCTS:
        return add(matmul(a[..., :LIMB_PRODUCTS], b[..., :LIMB_PRODUCTS, :]),
                   matmul(a[..., LIMB_PRODUCTS:], b[..., LIMB_PRODUCTS:, :]))
    left, right = limbs(a), limbs(b)
    total = None
    for i, u in enumerate(left):
        for j, v in enumerate(right):
            part = times_power_of_two(np.matmul(u, v).astype(U), 21 * (i + j) % 61)  # exact: below 2^53
            total = part if total is None else add(total, part)
    return total


def limbs(x):
    x = np.ascontiguousarray(x)
    return [((x >> U(21 * i)) & _LOW21).astype(np.float64) for i in range(3)]


class Stream:
    """Pseudo-random words and elements of the field from a seed, by SplitMix64's mixing of a counter."""

    def __init__(self, seed):
        self.state = seed * 0x9E3779B97F4A7C15 % 2**64

    def words(self, shape):
        """uint64 array of any words."""
        size = 1
        for n in shape:
            size *= n
        with np.errstate(over="ignore"):
            at = U(self.state) + np.arange(1, size + 1, dtype=U) * U(0x9E3779B97F4A7C15)
        self.state = (self.state + size * 0x9E3779B97F4A7C15) % 2**64
        return mix(at).reshape(shape)

    def take(self, shape):
        """uint64 array of elements 1 … p - 1."""
        return nonzero(self.words(shape))

    def whole(self, shape, most):
        """float32 array of whole numbers -most … most."""
        return ((self.words(shape) % U(2 * most + 1)).astype(np.int64) - most).astype(np.float32)


def mix(z):
    with np.errstate(over="ignore"):
        z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


def nonzero(z):
    z = reduced(z)
    return np.where(z == 0, U(1), z)
