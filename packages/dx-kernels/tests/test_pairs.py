import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import pairs as ref
from pages import arrays, random_boxes, random_texts
from test_reading import order_of


def page(rng, n, scale=1.0):
    box, line = random_boxes(rng, n)
    box = box * scale
    texts = random_texts(rng, n)
    order, row = order_of(box, line, texts)
    offset, code = arrays([texts[i] for i in order])
    kind, key = np.empty(len(code), np.uint8), np.empty(n, np.int32)
    k.text_kinds(code, kind)
    k.text_keys(offset, code, kind, key)
    return np.ascontiguousarray(box[order]), row, line[order], key


def geometry(box, row, line, key):
    n = len(box)
    relative, real, whole = np.empty((n, 4)), np.empty((6, n)), np.empty((3, n), np.int32)
    return relative, real, whole, k.page_geometry(box, row, line, key, relative, real, whole)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 17, 100])
def test_equals_reference(path, rng, n):
    for scale in (1.0, 1e-300, 1e6):
        words = page(rng, n, scale)
        got, want = geometry(*words), ref.page_geometry(*words)
        assert got[3] == want[3] and np.array_equal(got[2], want[2])
        assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])
        expected = ref.pair_features(got[1], got[2])
        assert np.isfinite(expected).all() and (abs(expected) <= 1).all()
        for degree in (1, 2, 3):
            with k.degree(degree):
                out = np.empty((20, n, n), np.float32)
                k.pair_features(got[1], got[2], out)
                assert same_bits(out, expected)
        for i0 in range(0, n, 3):
            tile = np.empty((20, min(3, n - i0), n), np.float32)
            k.pair_features(got[1], got[2], tile, i0=i0)
            assert same_bits(tile, expected[:, i0:i0 + 3])


def test_positions(path, rng):
    relative = np.array([[0.0, 0.5, 1.0, 0.999], [-1e300, np.nan, np.inf, -np.inf]])
    out = np.empty((4, 2), np.int32)
    k.positions(relative, out, size=128)
    assert out.tolist() == [[0, 0], [64, 0], [127, 127], [127, 0]]
    relative = rng.random((50, 4))
    for size in (1, 7, 128):
        out = np.empty((4, 50), np.int32)
        k.positions(relative, out, size=size)
        assert np.array_equal(out, ref.positions(relative, size))


def test_zero_extents_are_finite():
    box = np.zeros((3, 4)) + 5.0
    _, real, whole, height = geometry(box, *np.zeros((3, 3), np.int32))
    assert height == 1.0 and np.isfinite(real).all()
    out = np.empty((20, 3, 3), np.float32)
    k.pair_features(real, whole, out)
    assert np.isfinite(out).all()


def test_a_value_to_the_right_of_its_label():
    box = np.array([[0, 0, 40, 10], [50, 1, 90, 11], [0, 20, 40, 30.0]])
    row, line, key = np.array([0, 0, 1], np.int32), np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32)
    _, real, whole, height = geometry(box, row, line, key)
    out = np.empty((20, 3, 3), np.float32)
    k.pair_features(real, whole, out)
    assert height == 10.0
    assert abs(out[4, 0, 1] - np.tanh(0.25)) < 1e-6 and abs(out[5, 0, 2] - np.tanh(1.0)) < 1e-6
    assert out[6, 0].tolist() == [1, 1, 0] and out[9, 0].tolist() == [0, 1, 0] and out[10, 1].tolist() == [1, 0, 0]
    assert out[15, 0, 2] == 1 and out[19, 2, 0] == 1 and out[15, 2, 0] == 0
    assert out[16, 0].tolist() == [0, 0, 1] and out[17, 0].tolist() == [1, 1, 0]


def test_wrong_arguments_are_named(rng):
    words = page(rng, 4)
    _, real, whole, _ = geometry(*words)
    with pytest.raises(ValueError, match="i0 = 3 with 2 rows: expected rows within 0 to 3"):
        k.pair_features(real, whole, np.empty((20, 2, 4), np.float32), i0=3)
    with pytest.raises(ValueError, match=r"out has shape \(19, 4, 4\)"):
        k.pair_features(real, whole, np.empty((19, 4, 4), np.float32))
    whole[0, 2] = -1
    with pytest.raises(ValueError, match=r"whole\[0, 2\] = -1"):
        k.pair_features(real, whole, np.empty((20, 4, 4), np.float32))
    box = np.array([[40.0, 0, 10, 5]])
    with pytest.raises(ValueError, match=r"box\[0\] = \(40.0, 0.0, 10.0, 5.0\): expected x0 <= x1"):
        geometry(box, *np.zeros((3, 1), np.int32))
    with pytest.raises(ValueError, match="size = 0"):
        k.positions(np.zeros((1, 4)), np.empty((4, 1), np.int32), size=0)


def test_first_row_beyond_every_integer_sum():
    real, whole, out = np.zeros((6, 4)), np.zeros((3, 4), np.int32), np.empty((20, 2, 4), np.float32)
    with pytest.raises(ValueError, match="i0 = 9223372036854775807 with 2 rows"):
        k.pair_features(real, whole, out, i0=2**63 - 1)
