"""dot16, sum16, mean16, squared_norm16, dot16_rows: bits against the reference on every path, and against exact
fractions, over lengths, strides and special values."""
from fractions import Fraction

import dx_numerics as dx
import numpy as np
import pytest
from dx_numerics import _core, ref

f32 = np.float32


def bits(x):
    """One number's bits, with one NaN pattern."""
    x = f32(x)
    return 0x7FC00000 if np.isnan(x) else int(x.view(np.uint32))


def rounded(value):
    """A Fraction rounded to binary32, ties to even, as a Fraction; overflow is not covered."""
    if value == 0:
        return Fraction(0)
    exponent = -126
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - 23)
    return round(value / unit) * unit


def exact_dot16(a, b):
    """dot16 from its definition, in exact fractions with one rounding an operation (no signed zeros)."""
    lanes = [Fraction(0)] * 16
    for i, (p, q) in enumerate(zip(a.tolist(), b.tolist())):
        lanes[i % 16] = rounded(Fraction(p) * Fraction(q) + lanes[i % 16])
    for width in (8, 4, 2, 1):
        lanes = [rounded(lanes[k] + lanes[k + width]) for k in range(width)]
    return float(lanes[0])


def all_reductions(a, b):
    return [dx.dot16(a, b), dx.sum16(a), dx.mean16(a), dx.squared_norm16(a)]


def all_references(a, b):
    with np.errstate(all="ignore"):
        return [ref.dot16(a, b), ref.sum16(a), ref.mean16(a), ref.squared_norm16(a)]


@pytest.mark.parametrize("n", [*range(71), 127, 128, 1000, 4099])
def test_bits_equal_reference(path, rng, n):
    a, b = rng.standard_normal((2, n)).astype(f32)
    wide = (rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)).astype(f32)
    for x, y in ((a, b), (wide, a), (a * f32(2.0**-130), b), (a * f32(2.0**-75), wide * f32(2.0**-65))):
        assert list(map(bits, all_reductions(x, y))) == list(map(bits, all_references(x, y)))


@pytest.mark.parametrize("n", range(0, 71, 5))
def test_any_bit_patterns(path, rng, n):
    """Random encodings: infinities, NaN, subnormals and overflow among them."""
    for _ in range(20):
        a, b = rng.integers(0, 2**32, (2, n), dtype=np.uint32).view(f32)
        a[rng.random(n) < 0.1] = f32(-0.0)
        assert list(map(bits, all_reductions(a, b))) == list(map(bits, all_references(a, b)))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 70])
def test_exact_definition(path, rng, n):
    cases = [
        rng.standard_normal((2, n)).astype(f32),
        (1 + rng.integers(0, 2**12, (2, n)) * 2.0**-12).astype(f32),  # products that need 24 bits and more: ties
        (rng.standard_normal((2, n)) * 2.0 ** rng.integers(-70, -60, (2, n))).astype(f32),  # subnormal products
        (rng.standard_normal((2, n)) * 2.0 ** rng.integers(-12, 12, (2, n))).astype(f32),
    ]
    for a, b in cases:
        assert dx.dot16(a, b) == exact_dot16(a, b)
        assert dx.sum16(a) == exact_dot16(a, np.ones(n, f32))
        assert dx.squared_norm16(a) == exact_dot16(a, a)
        assert Fraction(dx.mean16(a)) == rounded(Fraction(dx.sum16(a)) / n)


@pytest.mark.parametrize("n", [1, 7, 16, 31, 50])
@pytest.mark.parametrize("step", [-3, -1, 1, 2, 5])
def test_strides(path, rng, n, step):
    a, b = rng.standard_normal((2, 5 * 50 + 1)).astype(f32)
    x, y = a[::step][:n], b[::-step][:n]
    assert x.shape == y.shape == (n,)
    assert all_reductions(x, y) == all_reductions(x.copy(), y.copy())


def test_stride_zero_and_read_only(path):
    x = np.broadcast_to(f32(0.1), 37)
    assert x.strides == (0,) and not x.flags.writeable
    assert all_reductions(x, x) == all_reductions(x.copy(), x.copy())


def test_zeros_and_empty(path):
    """The lanes start at +0 and the padding is executed, so no sum of zeros is -0."""
    for n in (1, 15, 16, 17):
        x = np.full(n, -0.0, f32)
        assert [bits(v) for v in all_reductions(x, np.ones(n, f32))] == [0, 0, 0, 0]
    empty = np.zeros(0, f32)
    assert [bits(v) for v in all_reductions(empty, empty)] == [0, 0, 0x7FC00000, 0]


def test_infinities_and_nan(path):
    inf, nan = f32(np.inf), f32(np.nan)
    assert dx.sum16(np.array([inf, 1], f32)) == np.inf
    assert np.isnan(dx.sum16(np.array([inf, -inf], f32)))
    assert np.isnan(dx.sum16(np.array([nan] + [1] * 40, f32)))
    assert np.isnan(dx.dot16(np.array([inf], f32), np.array([0], f32)))
    assert dx.squared_norm16(np.array([3e38, 3e38], f32)) == np.inf


def test_no_rounding_between_product_and_sum(path):
    """(1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 with one rounding, 0 with two."""
    a, b = np.zeros((2, 17), f32)
    a[0], b[0] = -(1 + 2.0**-11), 1
    a[16], b[16] = 1 + 2.0**-12, 1 + 2.0**-12
    assert dx.dot16(a, b) == 2.0**-24


@pytest.mark.parametrize("rows, n", [(0, 5), (1, 0), (3, 1), (4, 16), (5, 33)])
def test_rows(path, rng, rows, n):
    a, b = rng.standard_normal((2, rows, n)).astype(f32)
    for x, y in ((a, b), (a[::-1, ::-1], b), (np.asfortranarray(a), b[:, ::-1])):
        out = np.full(rows, 7, f32)
        dx.dot16_rows(x, y, out)
        assert out.tolist() == [dx.dot16(x[r].copy(), y[r].copy()) for r in range(rows)]
    if rows and n:
        out = np.zeros(rows, f32)
        dx.dot16_rows(a, np.broadcast_to(b[0], a.shape), out)  # one query against all rows: stride zero
        assert out.tolist() == [dx.dot16(a[r], b[0]) for r in range(rows)]


@pytest.mark.parametrize("mode", ["up", "down", "zero", "flush"])
def test_the_callers_mode_does_not_matter(path, rng, mode):
    a, b = (rng.standard_normal((2, 100)) * 2.0**-66).astype(f32)
    want = all_reductions(a, b)
    try:
        _core._disturb(mode)
        got = all_reductions(a, b)
    finally:
        _core._disturb("ieee")
    assert got == want


def test_errors():
    x = np.zeros(4, f32)
    with pytest.raises(ValueError, match="b has length 3: expected the length of a, 4"):
        dx.dot16(x, x[:3])
    with pytest.raises(ValueError, match=r"b has shape \(2, 3\): expected \(2, 4\)"):
        dx.dot16_rows(np.zeros((2, 4), f32), np.zeros((2, 3), f32), np.zeros(2, f32))
    with pytest.raises(ValueError, match=r"out has shape \(3,\): expected \(2,\)"):
        dx.dot16_rows(np.zeros((2, 4), f32), np.zeros((2, 4), f32), np.zeros(3, f32))
    for function in (dx.sum16, dx.mean16, dx.squared_norm16):
        with pytest.raises(TypeError):
            function(None)
        with pytest.raises(ValueError):
            function(np.zeros(3))  # binary64
        with pytest.raises(ValueError):
            function(np.zeros((2, 2), f32))
    fields = np.zeros(4, np.dtype([("x", "<f4"), ("pad", "u1")]))["x"]  # five bytes apart
    for function in (dx.sum16, dx.mean16, dx.squared_norm16):
        with pytest.raises(ValueError):
            function(fields)
