import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.below import ref as numerics
from dx_kernels.ref import softmax as ref_softmax

F = np.float32
SHAPES = [(1, 1), (2, 2), (3, 15), (4, 16), (5, 17), (7, 33), (9, 100), (40, 257)]
SCALE = float(np.sqrt(F(20)))


def forward(raw, **settings):
    p = np.full_like(raw, 7)
    k.softmax_forward(raw, p, **settings)
    return p


def softmax64(s):
    e = np.exp(s.astype(np.float64) - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rows, n", SHAPES)
@pytest.mark.parametrize("spread", [1.0, 60.0, 1e30])
def test_bits_equal_reference(path, rng, rows, n, spread):
    raw, bias, dp = (rng.standard_normal((3, rows, n)) * spread).astype(F)
    limits = rng.integers(0, n + 1, rows).astype(np.int32)
    one, each = (rng.random((1, n)) < 0.7).astype(np.uint8), (rng.random((rows, n)) < 0.5).astype(np.uint8) * 255
    for settings in ({}, {"scale": SCALE}, {"scale": SCALE, "bias": bias}, {"bias": bias, "mask": one},
                     {"scale": SCALE, "bias": bias, "mask": each}, {"limits": limits},
                     {"scale": SCALE, "bias": bias, "mask": each, "limits": limits}):
        want = ref_softmax.softmax_forward(raw, **settings)
        scale = settings.get("scale", 1.0)
        want_back = ref_softmax.softmax_backward(want, dp, scale)
        for degree in (1, 2, 3):
            with k.degree(degree):
                assert same_bits(forward(raw, **settings), want)
                draw, dbias = np.full_like(raw, 7), np.full_like(raw, 7)
                k.softmax_backward(want, dp, draw, dbias, scale=scale)
                assert same_bits(draw, want_back[0]) and same_bits(dbias, want_back[1])


def test_many_rows_at_every_degree(path, rng):
    """Enough work that the pool is used."""
    raw, bias, dp = rng.standard_normal((3, 600, 130)).astype(F)
    want = ref_softmax.softmax_forward(raw, SCALE, bias)
    want_back = ref_softmax.softmax_backward(want, dp, SCALE)
    for degree in (1, 2, 3):
        with k.degree(degree):
            assert same_bits(forward(raw, scale=SCALE, bias=bias), want)
            draw = np.empty_like(dp)
            k.softmax_backward(want, dp, draw, scale=SCALE)
            assert same_bits(draw, want_back[0])


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
def test_float64_accuracy(path, rng, spread):
    raw, bias = (rng.standard_normal((2, 64, 200)) * spread).astype(F)
    p = forward(raw, scale=SCALE, bias=bias)
    s = raw / F(SCALE) + bias
    want = softmax64(s)
    normal = want >= 2.0**-125
    assert (np.abs(p - want)[normal] / want[normal]).max() < 5e-6
    assert np.abs(p.astype(np.float64).sum(axis=1) - 1).max() < 1e-6


def test_gradients_against_float64_differences(path, rng):
    rows, n, h = 3, 19, 1e-5
    raw, bias, dp = rng.standard_normal((3, rows, n)).astype(F)
    p = forward(raw, scale=SCALE, bias=bias)
    draw, dbias = np.empty_like(p), np.empty_like(p)
    k.softmax_backward(p, dp, draw, dbias, scale=SCALE)

    def loss(a, b):
        return (softmax64(a / F(SCALE) + b) * dp).sum()

    raw64, bias64 = raw.astype(np.float64), bias.astype(np.float64)
    for r in range(rows):
        for j in range(n):
            step = np.zeros((rows, n))
            step[r, j] = h
            assert abs((loss(raw64 + step, bias64) - loss(raw64 - step, bias64)) / (2 * h) - draw[r, j]) < 1e-6
            assert abs((loss(raw64, bias64 + step) - loss(raw64, bias64 - step)) / (2 * h) - dbias[r, j]) < 1e-6


def test_rows_with_nothing_admitted_are_zero(path, rng):
    """Cases num-16 and num-17."""
    raw, dp = rng.standard_normal((2, 4, 4)).astype(F)
    p = forward(raw, mask=np.array([[0, 1, 1, 1]], np.uint8), limits=np.arange(1, 5, dtype=np.int32))
    assert (p[0] == 0).all() and np.abs(p[1:].sum(axis=1) - 1).max() < 1e-6
    mask = np.ones((4, 4), np.uint8)
    mask[1] = 0
    p = forward(raw, mask=mask)
    assert (p[1] == 0).all() and (p[0] > 0).all()
    draw, dbias = np.empty_like(p), np.empty_like(p)
    k.softmax_backward(p, dp, draw, dbias)
    assert (draw[1] == 0).all() and (dbias[1] == 0).all() and (draw[0] != 0).any()


def test_infinite_bias_is_a_mask(path, rng):
    raw = rng.standard_normal((3, 21)).astype(F)
    mask = (rng.random((3, 21)) < 0.5).astype(np.uint8)
    mask[1] = 0
    bias = np.where(mask, F(0), F(-np.inf))
    assert same_bits(forward(raw, bias=bias), forward(raw, mask=mask))


def test_nan_and_infinity(path):
    raw = np.zeros((5, 20), F)
    raw[0, 3] = np.nan
    raw[1, 19] = np.inf
    raw[2, 4] = -np.inf
    raw[3, 5] = np.nan  # not admitted
    raw[4] = -np.inf
    raw[4, 17] = np.nan
    mask = np.ones((5, 20), np.uint8)
    mask[:, 5] = 0
    p = forward(raw, mask=mask)
    for row in (0, 1, 4):
        assert np.isnan(np.delete(p[row], 5)).all() and p[row, 5] == 0
    assert p[2, 4] == 0 and abs(p[2].sum() - 1) < 1e-6
    assert same_bits(p[3], np.where(mask[3], F(1) / F(19), F(0)))


def test_huge_scores_and_small_probabilities(path):
    raw = np.array([[3e38, -3e38, 0, 3e38], [0, -87, -88, -100]], F)
    p = forward(raw)
    assert same_bits(p[0], np.array([0.5, 0, 0, 0.5], F))
    assert p[1, 1] > 2.0**-126 and p[1, 2] == 0 and p[1, 3] == 0  # exp(-88) < 2^-126


def test_in_place_read_only_and_empty(path, rng):
    raw, bias = rng.standard_normal((2, 6, 37)).astype(F)
    want = forward(raw, bias=bias)
    raw.flags.writeable = bias.flags.writeable = False
    assert same_bits(forward(raw, bias=bias), want)
    p = raw.copy()
    k.softmax_forward(p, p, bias=bias)
    assert same_bits(p, want)
    dp = want[::-1].copy()
    expected = ref_softmax.softmax_backward(want, dp, SCALE)
    k.softmax_backward(want, dp, dp, scale=SCALE)
    assert same_bits(dp, expected[0])
    for shape in ((0, 5), (5, 0)):
        k.softmax_forward(np.zeros(shape, F), np.zeros(shape, F))
        k.softmax_backward(np.zeros(shape, F), np.zeros(shape, F), np.zeros(shape, F))


@pytest.mark.parametrize("settings, message", [
    ({"scale": 0.0}, "scale = 0.0: expected a finite number > 0"),
    ({"scale": float("nan")}, "scale = nan"),
    ({"bias": np.zeros((2, 4), F)}, r"bias has shape \(2, 4\): expected \(2, 3\)"),
    ({"mask": np.zeros((3, 3), np.uint8)}, r"mask has shape \(3, 3\): expected \(2, 3\) or \(1, 3\)"),
    ({"limits": np.zeros(3, np.int32)}, r"limits has shape \(3,\): expected \(2,\)"),
    ({"limits": np.array([1, 4], np.int32)}, r"limits\[1\] = 4: expected 0..3"),
])
def test_wrong_arguments_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        forward(np.zeros((2, 3), F), **settings)


def test_exponentials_to_the_bit_down_to_the_smallest(path, rng):
    """One score of 0 and the others far below: the total is 1 and p is the exponential, or +0 below 2^-126."""
    # the last x with exp32(x) >= 2^-126, and its neighbours; a larger integer is a more negative number
    edge = np.arange(-40, 41) + np.array([float.fromhex("-0x1.5d589ep+6")], F).view(np.int32)
    x = np.concatenate([edge.astype(np.int32).view(F), np.linspace(-104.5, -60, 3000, dtype=F)])
    raw = np.zeros((len(x), 2), F)
    raw[:, 1] = x
    e = numerics.exp32(x)
    assert same_bits(forward(raw)[:, 1], np.where(e < F(2.0**-126), F(0), e))
    assert e[40] >= F(2.0**-126) > e[41]
