"""Digests, ulp distance, allowance reports, the version of the bits."""
import hashlib
import math

import dx_numerics as dx
import numpy as np
import pytest

f32 = np.float32


def test_digest_is_the_documented_hash():
    x = np.array([[1, -2, 0.5], [np.inf, -0.0, 1e-45]], f32)
    want = hashlib.sha256(b"dx-array 1 float32 2 3\n" + x.astype("<f4").tobytes()).hexdigest()
    assert dx.digest(x) == want
    assert dx.digest(np.array(True)) == hashlib.sha256(b"dx-array 1 bool\n\x01").hexdigest()
    assert dx.digest(np.zeros((0, 4), np.int64)) == hashlib.sha256(b"dx-array 1 int64 0 4\n").hexdigest()


def test_digest_sees_bits_shape_and_dtype():
    x = np.arange(6, dtype=f32)
    others = [x.reshape(2, 3), x.reshape(3, 2), x.astype(np.float64), x.astype(np.int32), x.view(np.uint32),
              np.array([-0.0, 1, 2, 3, 4, 5], f32), x[::-1], np.nextafter(x, f32(9))]
    assert len({dx.digest(x), *map(dx.digest, others)}) == len(others) + 1


def test_digest_does_not_see_layout_byte_order_or_nan_payload():
    x = np.random.default_rng(1).standard_normal((5, 7))
    for dtype in ("f2", "f4", "f8", "i8"):
        y = x.astype(dtype)
        for same in (y.astype(">" + dtype), np.asfortranarray(y), y[::-1][::-1], np.ascontiguousarray(y.T).T):
            assert dx.digest(same) == dx.digest(y)
    for bits, dtype, others in ((0x7E00, np.uint16, (0x7C01, 0xFE33)),
                                (0x7FC00000, np.uint32, (0xFFC00000, 0x7F800001)),
                                (0x7FF8 << 48, np.uint64, (0xFFF8 << 48, (0x7FF8 << 48) + 5))):
        real = {2: np.float16, 4: f32, 8: np.float64}[np.dtype(dtype).itemsize]
        want = dx.digest(np.array([0, bits], dtype).view(real))
        for other in others:
            assert dx.digest(np.array([0, other], dtype).view(real)) == want
        assert dx.canonical_bytes(np.array([others[0]], dtype).view(real)) == np.array([bits], dtype).tobytes()


def test_named_collections():
    a, b = np.arange(3, dtype=f32), np.zeros((2, 2), np.int64)
    want = hashlib.sha256(b"dx-collection 1\n" + f"{dx.digest(b)} 1 a\n{dx.digest(a)} 2 ".encode() + "é".encode()
                          + b"\n").hexdigest()
    assert dx.digest_named({"é": a, "a": b}) == dx.digest_named({"a": b, "é": a}) == want
    different = [{}, {"a": a}, {"b": a}, {"a": a, "b": b}, {"a": b, "b": a}, {"a\n": a}]
    assert len({dx.digest_named(d) for d in different}) == len(different)
    # by bytes of UTF-8, which is not the order of UTF-16 code units
    assert sorted(["\U00010000", "\uffff"], key=str.encode) == ["\uffff", "\U00010000"]
    with pytest.raises(TypeError, match="arrays is list: expected a mapping"):
        dx.digest_named([("a", a)])
    with pytest.raises(TypeError, match="name 1 of arrays: expected a str"):
        dx.digest_named({1: a})


@pytest.mark.parametrize("bad", [np.zeros(2, complex), np.array(["x"]), np.array([object()], object),
                                 np.zeros(2, np.longdouble) if np.dtype(np.longdouble).itemsize > 8 else "x"])
def test_digest_of_other_types_is_an_error(bad):
    with pytest.raises(TypeError, match="array has dtype .*: expected one of bool"):
        dx.digest(bad)


@pytest.mark.parametrize("dtype", [f32, np.float64])
def test_ulp_distance(dtype):
    info = np.finfo(dtype)
    one, tiny, inf = dtype(1), info.smallest_subnormal, dtype(np.inf)
    cases = [
        (one, one, 0), (one, np.nextafter(one, inf), 1), (one, np.nextafter(one, -inf), 1),
        (one, 2, 2**info.nmant), (0.0, -0.0, 0), (0.0, tiny, 1), (-0.0, tiny, 1), (-tiny, tiny, 2),
        (info.max, np.inf, 1), (np.inf, np.inf, 0), (-one, one, 2 * (int(one.view(f"u{info.bits // 8}")))),
        (-np.inf, np.inf, 2 * int(inf.view(f"u{info.bits // 8}"))),
        (np.nan, np.nan, 0), (np.nan, one, 2**64 - 1), (one, np.nan, 2**64 - 1),
    ]
    for a, b, want in cases:
        got = dx.ulp_distance(np.array([a], dtype), np.array([b], dtype))
        assert got.dtype == np.uint64 and got.tolist() == [want], (a, b)
        assert dx.ulp_distance(np.array([b], dtype), np.array([a], dtype)).tolist() == [want]


def test_ulp_distance_shapes_and_errors():
    x = np.ones((2, 3), f32)
    assert dx.ulp_distance(x.T, f32(1)).shape == (3, 2)
    assert dx.ulp_distance(x[:, ::2], x[:1, :2]).tolist() == [[0, 0], [0, 0]]
    assert dx.ulp_distance(f32(1), f32(2)).shape == ()
    for a, b in ((x, x.astype(float)), (x.astype(np.float16),) * 2, (x.astype(int),) * 2):
        with pytest.raises(TypeError, match="expected float32 twice or float64 twice"):
            dx.ulp_distance(a, b)


def test_allowance_names_the_worst_element():
    reference = np.array([[1.0, 100.0, 0.0], [-2.0, 3.0, 4.0]])
    actual = reference + np.array([[0.001, -0.05, 0.0005], [0.0, 0.0, 0.001]])
    r = dx.allowance(actual, reference, atol=0.001, rtol=0.001)
    assert r.count == 6 and r.over == 0 and r.ok and r.worst_index in ((0, 0), (0, 1), (0, 2))
    assert math.isclose(r.worst_share, 0.5, rel_tol=1e-9)
    r = dx.allowance(actual, reference, atol=0.0, rtol=0.0004)
    assert (r.over, r.ok, r.worst_share, r.worst_index) == (3, False, math.inf, (0, 2))
    assert r.error == 0.0005 and r.allowed == 0.0 and r.actual == 0.0005
    assert "worst share inf at (0, 2): 0.0005 against 0.0" in str(r) and "3 of 6 over" in str(r)


def test_allowance_edges():
    inf, nan = np.inf, np.nan
    def share(a, b, atol=1.0, rtol=1.0):
        return dx.allowance(np.array([a], f32), np.array([b], f32), atol=atol, rtol=rtol).worst_share
    assert [share(inf, inf), share(-inf, -inf), share(nan, nan), share(0, 0, 0, 0), share(0.0, -0.0, 0, 0)] == [0] * 5
    assert [share(inf, -inf), share(inf, 1), share(1, inf), share(nan, 1), share(1, nan), share(nan, inf)] == [inf] * 6
    assert share(3, 1) == 1 and not dx.allowance(np.array([3.5]), np.array([1.0]), atol=1, rtol=1).ok
    empty = dx.allowance(np.zeros((0, 2)), np.zeros((0, 2)), atol=0, rtol=0)
    assert empty.ok and empty.count == 0 and empty.worst_index is None and str(empty) == "nothing compared"
    scalar = dx.allowance(f32(1), np.float64(1.5), atol=1, rtol=0)
    assert scalar.worst_index == () and scalar.worst_share == 0.5
    big = dx.allowance(np.array([3e38], f32), np.array([-3e38], f32), atol=0, rtol=1)
    assert big.worst_share == 2.0  # in binary64: the difference does not overflow


def test_allowance_errors():
    x = np.zeros(3)
    with pytest.raises(ValueError, match=r"actual has shape \(3,\): expected the shape of reference, \(2,\)"):
        dx.allowance(x, x[:2], atol=0, rtol=0)
    for atol, rtol in ((-1, 0), (0, math.nan), (math.inf, 0)):
        with pytest.raises(ValueError, match="expected a finite number >= 0"):
            dx.allowance(x, x, atol=atol, rtol=rtol)
    with pytest.raises(TypeError, match="reference has dtype int64"):
        dx.allowance(x, np.zeros(3, np.int64), atol=0, rtol=0)


def test_numerics_version_is_a_whole_number_with_a_history():
    import dx_numerics.version
    assert isinstance(dx.NUMERICS_VERSION, int) and dx.NUMERICS_VERSION >= 1
    history = dx_numerics.version.__doc__
    for version in range(1, dx.NUMERICS_VERSION + 1):
        assert f"\n    {version}   " in history
