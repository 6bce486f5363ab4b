"""Readable reference of dx_numerics.random: whole numbers mod 2^64 and binary64 arithmetic, one value at a time."""
import math

import numpy as np

from .ref_functions import log64

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mix(z):
    """SplitMix64's bijection of 64-bit numbers."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def random_at(seed, k):
    """Value k (from 0) of the stream `seed`."""
    return mix(seed + (k + 1) * STEP & MASK)


def substream(seed, name):
    """Seed of the stream called `name` under `seed`."""
    h = 0xCBF29CE484222325
    for byte in name.encode("utf-8"):
        h = (h ^ byte) * 0x100000001B3 & MASK
    return random_at(random_at(seed, 0) ^ h, 0)


class SplitMix64:
    """A walk along a stream."""

    def __init__(self, seed):
        self.state = seed

    def next_u64(self):
        self.state = self.state + STEP & MASK
        return mix(self.state)

    def below(self, n):
        while True:
            x = self.next_u64()
            if x >= 2**64 % n:
                return x % n

    def uniform32(self):
        return (self.next_u64() >> 40) * 2.0**-24

    def uniform64(self):
        return (self.next_u64() >> 11) * 2.0**-53


def permutation(seed, n):
    """Fisher-Yates, descending; int64 array (n,)."""
    walk, out = SplitMix64(seed), list(range(n))
    for i in range(n - 1, 0, -1):
        j = walk.below(i + 1)
        out[i], out[j] = out[j], out[i]
    return np.array(out, np.int64)


def random_u64(seed, n, first=0):
    """Values first .. first + n - 1; uint64 array (n,)."""
    return np.array([random_at(seed, first + k & MASK) for k in range(n)], np.uint64)


def uniform64(seed, n, first=0):
    """The top 53 bits as numbers in [0, 1); float64 array (n,)."""
    return np.array([(int(x) >> 11) * 2.0**-53 for x in random_u64(seed, n, first)], np.float64)


def uniform32(seed, n, low=None, high=None, first=0):
    """The top 24 bits as numbers in [0, 1), or low + (high - low) * u in binary64 rounded once; float32 array (n,)."""
    if low is None:
        return np.array([(int(x) >> 40) * 2.0**-24 for x in random_u64(seed, n, first)], np.float32)
    low, width = float(low), float(high) - float(low)
    return np.array([low + width * u for u in uniform64(seed, n, first).tolist()], np.float64).astype(np.float32)


def _normal(key):
    walk = SplitMix64(key)
    while True:
        u = 2.0 * walk.uniform64() - 1.0
        v = 2.0 * walk.uniform64() - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * math.sqrt(-2.0 * float(log64(s)) / s)


def normal32(seed, n, mean=0.0, deviation=1.0, first=0):
    """mean + deviation * z in binary64 rounded once, z by the polar method; float32 array (n,)."""
    mean, deviation = float(mean), float(deviation)
    keys = random_u64(seed, n, first).tolist()
    return np.array([mean + deviation * _normal(key) for key in keys], np.float64).astype(np.float32)
