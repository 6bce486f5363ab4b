"""SplitMix64 and what dx draws from it: published values, the reference, goldens, and the numbers' shape."""
import hashlib

import dx_numerics as dx
import numpy as np
import pytest
from dx_numerics import _core, ref

SEEDS = [0, 1, 1234567, 2**63, 2**64 - 1]
GOLDEN = {
    "random_u64": "1647dd30713a0c2d",
    "uniform32": "eec4f0dffebbf9c9",
    "uniform64": "bbf9cac22f27371b",
    "permutation": "2027dd799204c507",
    "permutation of 10": [0, 9, 5, 8, 6, 4, 7, 2, 1, 3],
    "substream": 17474826617017596448,
}


def filled(function, n, dtype, seed, **options):
    out = np.empty(n, dtype)
    function(seed, out, **options)
    return out


def test_published_values():
    """The first values for seed 1234567 as published with several implementations of SplitMix64."""
    want = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    walk = dx.SplitMix64(1234567)
    assert [walk.next_u64() for _ in range(5)] == want
    assert [dx.random_at(1234567, k) for k in range(5)] == want
    assert filled(dx.random_u64, 5, np.uint64, 1234567).tolist() == want


@pytest.mark.parametrize("seed", SEEDS)
def test_values_equal_reference(seed):
    walk, reference = dx.SplitMix64(seed), ref.SplitMix64(seed)
    assert [walk.next_u64() for _ in range(50)] == [reference.next_u64() for _ in range(50)]
    for n in (1, 2, 3, 10, 2**32, 2**63 + 1, 2**64 - 1):
        assert [walk.below(n) for _ in range(20)] == [reference.below(n) for _ in range(20)]
    assert walk.uniform32() == reference.uniform32() and walk.uniform64() == reference.uniform64()
    assert walk.state == reference.state
    for k in (0, 1, 5, 2**63, 2**64 - 1):
        assert dx.random_at(seed, k) == ref.random_at(seed, k)
    for first in (0, 7, 2**64 - 3):
        assert filled(dx.random_u64, 9, np.uint64, seed, first=first).tolist() == \
            ref.random_u64(seed, 9, first).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_and_normal_equal_reference(seed):
    def same(a, b):
        return a.dtype == b.dtype and np.array_equal(a.view(np.uint8), b.view(np.uint8))
    assert same(filled(dx.uniform32, 100, np.float32, seed), ref.uniform32(seed, 100))
    assert same(filled(dx.uniform64, 100, np.float64, seed, first=3), ref.uniform64(seed, 100, 3))
    assert same(filled(dx.uniform32, 100, np.float32, seed, low=-0.3, high=0.1),
                ref.uniform32(seed, 100, -0.3, 0.1))
    assert same(filled(dx.normal32, 100, np.float32, seed), ref.normal32(seed, 100))
    assert same(filled(dx.normal32, 100, np.float32, seed, mean=2, deviation=0.02, first=11),
                ref.normal32(seed, 100, 2, 0.02, 11))


def test_counter_access_does_not_depend_on_the_walk():
    """Any piece of a stream, in any order, holds the same numbers."""
    whole = filled(dx.normal32, 1000, np.float32, 5)
    pieces = [filled(dx.normal32, 100, np.float32, 5, first=k) for k in range(900, -1, -100)]
    assert np.array_equal(np.concatenate(pieces[::-1]), whole)
    assert np.array_equal(filled(dx.normal32, (10, 100), np.float32, 5).reshape(-1), whole)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 257])
@pytest.mark.parametrize("seed", SEEDS)
def test_permutation(seed, n):
    p = dx.permutation(seed, n)
    assert p.dtype == np.int64 and sorted(p.tolist()) == list(range(n))
    assert p.tolist() == ref.permutation(seed, n).tolist()


def test_epoch_permutation():
    """Seed 000: seeded with (seed << 32) xor epoch."""
    assert dx.epoch_permutation(7, 3, 50).tolist() == ref.permutation(7 << 32 ^ 3, 50).tolist()
    assert dx.epoch_permutation(0, 0, 10).tolist() == ref.permutation(0, 10).tolist()
    assert dx.epoch_permutation(1, 0, 20).tolist() != dx.epoch_permutation(1, 1, 20).tolist()
    assert dx.epoch_permutation(2**32 - 1, 2**32 - 1, 4).tolist() == ref.permutation(2**64 - 1, 4).tolist()


def test_every_permutation_of_four_is_equally_likely():
    counts = {}
    for seed in range(24_000):
        key = tuple(dx.permutation(seed, 4).tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 24
    assert sum((c - 1000) ** 2 / 1000 for c in counts.values()) < 50  # chi-square, 23 degrees of freedom: p = 0.001


def test_bounded_numbers_reject():
    """A bound just above 2^63: almost half of all values are drawn again, none of the results is out of range."""
    n, walk, plain = 2**63 + 1, dx.SplitMix64(9), dx.SplitMix64(9)
    results = [walk.below(n) for _ in range(200)]
    assert max(results) < n
    drawn = 0
    while plain.state != walk.state:
        plain.next_u64()
        drawn += 1
    assert 300 < drawn < 520


def test_shape_of_the_numbers():
    """Mean, variance and extremes of 200,000 numbers, within five standard errors."""
    n = 200_000
    u, z = filled(dx.uniform32, n, np.float32, 3), filled(dx.normal32, n, np.float32, 3)
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean(dtype=np.float64) - 0.5) < 5 / (12 * n) ** 0.5
    z = z.astype(np.float64)
    assert abs(z.mean()) < 5 / n**0.5 and abs((z * z).mean() - 1) < 5 * (2 / n) ** 0.5
    assert abs((z**4).mean() - 3) < 5 * (96 / n) ** 0.5 and 3.9 < np.abs(z).max() < 6
    assert abs((z[1:] * z[:-1]).mean()) < 5 / n**0.5
    bounded = filled(dx.uniform32, n, np.float32, 3, low=-2.0, high=5.0)
    assert bounded.min() >= -2 and bounded.max() <= 5


def test_streams_by_name():
    assert dx.substream(0, "") == ref.substream(0, "")
    names = ["", "a", "b", "ab", "block.0.weight", "block.1.weight", "größe", "漢字"]
    for seed in SEEDS:
        keys = [dx.substream(seed, name) for name in names]
        assert keys == [ref.substream(seed, name) for name in names] and len(set(keys)) == len(names)
    assert len({dx.substream(seed, "x") for seed in range(1000)}) == 1000


def test_goldens():
    """These bits are promised: they change only with NUMERICS_VERSION."""
    def digest(x):
        return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:16]
    assert digest(filled(dx.random_u64, 1000, "<u8", 42)) == GOLDEN["random_u64"]
    assert digest(filled(dx.uniform32, 1000, "<f4", 42)) == GOLDEN["uniform32"]
    assert digest(filled(dx.uniform64, 1000, "<f8", 42)) == GOLDEN["uniform64"]
    assert digest(dx.permutation(42, 1000)) == GOLDEN["permutation"]
    assert dx.permutation(42, 10).tolist() == GOLDEN["permutation of 10"]
    assert dx.substream(42, "dropout") == GOLDEN["substream"]


@pytest.mark.parametrize("mode", ["up", "down", "zero", "flush"])
def test_the_callers_mode_does_not_matter(mode):
    options = {"low": -0.1, "high": 0.3}
    want = [filled(dx.uniform32, 500, np.float32, 1, **options), filled(dx.normal32, 500, np.float32, 1)]
    try:
        _core._disturb(mode)
        got = [filled(dx.uniform32, 500, np.float32, 1, **options), filled(dx.normal32, 500, np.float32, 1)]
    finally:
        _core._disturb("ieee")
    assert all(np.array_equal(g, w) for g, w in zip(got, want))


def test_errors():
    out = np.empty(3, np.float32)
    for bad in (-1, 2**64, 1.5, True, None, "1"):
        with pytest.raises(ValueError, match="seed = "):
            dx.permutation(bad, 3)
        with pytest.raises(ValueError, match="seed = "):
            dx.SplitMix64(bad)
    with pytest.raises(ValueError, match="epoch = 4294967296: expected a whole number from 0 to 4294967295"):
        dx.epoch_permutation(1, 2**32, 3)
    with pytest.raises(ValueError, match="n = -1"):
        dx.permutation(1, -1)
    with pytest.raises(ValueError, match="n = 0"):
        dx.SplitMix64(1).below(0)
    with pytest.raises(TypeError, match="out is float32: expected an array of uint64"):
        dx.random_u64(1, out)
    with pytest.raises(TypeError, match="out is list: expected an array of float32"):
        dx.uniform32(1, [0.0])
    with pytest.raises(ValueError, match="out is read-only"):
        dx.uniform32(1, np.empty((4, 4), np.float32)[:, ::2])
    with pytest.raises(ValueError, match="expected both or neither"):
        dx.uniform32(1, out, low=1.0)
    for low, high in ((float("nan"), 1.0), (0.0, float("inf")), (-1e308, 1e308)):
        with pytest.raises(ValueError, match="expected a finite number"):
            dx.uniform32(1, out, low=low, high=high)
    with pytest.raises(ValueError, match="deviation = inf"):
        dx.normal32(1, out, deviation=float("inf"))
    with pytest.raises(TypeError, match="name = b'x': expected a str"):
        dx.substream(1, b"x")
    with pytest.raises(ValueError):
        dx.substream(1, "\ud800")
