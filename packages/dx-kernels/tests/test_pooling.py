import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import pooling as ref

f32 = np.float32


def listed(rng, x_rows, segments):
    """(rows, starts): about two thirds of the rows, cut into segments; a long one when there are few."""
    rows = np.sort(rng.choice(x_rows, max(segments, 2 * x_rows // 3), replace=False)).astype(np.int32)
    inner = np.sort(rng.choice(np.arange(1, len(rows)), segments - 1, replace=False))
    return rows, np.array([0, *inner, len(rows)], np.int64)


def pool_sum(x, rows, starts, weights=None, divisors=None):
    y = np.empty((len(starts) - 1, x.shape[1]), f32)
    k.pool_sum_forward(x, rows, starts, y, weights=weights, divisors=divisors)
    return y


def pool_sum_gradients(dy, rows, starts, x, weights=None, divisors=None):
    dx, dweights = np.empty_like(x), np.empty(starts[-1], f32)
    k.pool_sum_backward(dy, rows, starts, dx, dweights, x=x, weights=weights, divisors=divisors)
    return dx, dweights


def pool_max(x, rows, starts):
    y, argmax = np.empty((len(starts) - 1, x.shape[1]), f32), np.empty((len(starts) - 1, x.shape[1]), np.int32)
    k.pool_max_forward(x, rows, starts, y, argmax)
    return y, argmax


SHAPES = [(1, 1, 1), (5, 2, 3), (60, 7, 16), (90, 1, 130), (33, 4, 517), (200, 3, 40)]


@pytest.mark.parametrize("x_rows, segments, d", SHAPES)
def test_bits_equal_reference(path, rng, x_rows, segments, d):
    x = rng.standard_normal((x_rows, d)).astype(f32)
    x[:, 0] = np.round(x[:, 0])  # ties
    rows, starts = listed(rng, x_rows, segments)
    dy, dp = rng.standard_normal((segments, d)).astype(f32), rng.standard_normal((3, len(rows))).astype(f32)
    w, divisors = rng.standard_normal(len(rows)).astype(f32), (1 + rng.random(segments)).astype(f32)
    scores = (4 * rng.standard_normal((3, len(rows)))).astype(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            for weights, divide in ((None, None), (w, None), (None, divisors), (w, divisors)):
                assert same_bits(pool_sum(x, rows, starts, weights, divide),
                                 ref.pool_sum_forward(x, rows, starts, weights, divide))
                got = pool_sum_gradients(dy, rows, starts, x, weights, divide)
                want = ref.pool_sum_backward(dy, rows, starts, x, weights, divide)
                assert all(same_bits(g, e) for g, e in zip(got, want, strict=True))
            y, argmax = pool_max(x, rows, starts)
            want = ref.pool_max_forward(x, rows, starts)
            assert same_bits(y, want[0]) and np.array_equal(argmax, want[1])
            dx, p, ds = np.empty_like(x), np.empty_like(scores), np.empty_like(scores)
            k.pool_max_backward(dy, argmax, dx)
            assert same_bits(dx, ref.pool_max_backward(dy, argmax, x_rows))
            k.pool_softmax_forward(scores, starts, p)
            assert same_bits(p, ref.pool_softmax_forward(scores, starts))
            k.pool_softmax_backward(p, dp, starts, ds)
            assert same_bits(ds, ref.pool_softmax_backward(p, dp, starts))


def test_all_rows_without_a_list(path, rng):
    x, dy = rng.standard_normal((37, 20)).astype(f32), rng.standard_normal((2, 20)).astype(f32)
    rows, starts = np.arange(37, dtype=np.int32), np.array([0, 30, 37])
    assert same_bits(pool_sum(x, None, starts), pool_sum(x, rows, starts))
    assert all(map(np.array_equal, pool_max(x, None, starts), pool_max(x, rows, starts)))
    for a, b in zip(pool_sum_gradients(dy, None, starts, x), pool_sum_gradients(dy, rows, starts, x), strict=True):
        assert same_bits(a, b)


@pytest.mark.parametrize("before, after", [(0, 0), (1, 0), (7, 3), (0, 16), (504, 0)])
def test_rows_that_are_not_listed_never_matter(path, rng, before, after):
    """Padding on either side, and holes, hold NaN; the bits are those of the rows alone."""
    x, dy = rng.standard_normal((23, 19)).astype(f32), rng.standard_normal((1, 19)).astype(f32)
    w = rng.random(23).astype(f32)
    starts = np.array([0, 23])
    wide = np.full((before + 3 * 23 + after, 19), np.nan, f32)
    rows = (before + 3 * np.arange(23)).astype(np.int32)
    wide[rows] = x
    for weights in (None, w):
        assert same_bits(pool_sum(wide, rows, starts, weights), pool_sum(x, None, starts, weights))
        dx, dweights = pool_sum_gradients(dy, rows, starts, wide, weights)
        want = pool_sum_gradients(dy, None, starts, x, weights)
        assert same_bits(dx[rows], want[0]) and same_bits(dweights, want[1])
        assert not np.delete(dx, rows, 0).any()
    (y, argmax), (want_y, want_argmax) = pool_max(wide, rows, starts), pool_max(x, None, starts)
    assert same_bits(y, want_y) and np.array_equal(argmax, rows[want_argmax])


def test_accuracy_against_float64(rng):
    x, dy = rng.standard_normal((500, 33)).astype(f32), rng.standard_normal((4, 33)).astype(f32)
    rows, starts = listed(rng, 500, 4)
    w = rng.random(len(rows)).astype(f32)
    y, (dx, dweights) = pool_sum(x, rows, starts, w), pool_sum_gradients(dy, rows, starts, x, w)
    for b in range(4):
        part = slice(starts[b], starts[b + 1])
        picked = x[rows[part]].astype(float)
        assert np.abs(y[b] - w[part].astype(float) @ picked).max() < 2e-5
        assert np.abs(dweights[part] - picked @ dy[b].astype(float)).max() < 1e-5
        assert np.abs(dx[rows[part]] - np.outer(w[part], dy[b]).astype(float)).max() < 1e-6


def test_softmax_gradient_is_the_difference_quotient(rng):
    scores, dp, starts = rng.standard_normal((2, 9)), rng.standard_normal((2, 9)), np.array([0, 4, 9])

    def value(s):
        e = np.exp(s)
        return sum((e[:, a:b] / e[:, a:b].sum(1, keepdims=True) * dp[:, a:b]).sum() for a, b in ((0, 4), (4, 9)))
    p, ds = np.empty((2, 9), f32), np.empty((2, 9), f32)
    k.pool_softmax_forward(scores.astype(f32), starts, p)
    k.pool_softmax_backward(p, dp.astype(f32), starts, ds)
    for i in np.ndindex(2, 9):
        h = np.zeros((2, 9))
        h[i] = 1e-5
        assert abs((value(scores + h) - value(scores - h)) / 2e-5 - ds[i]) < 1e-5


def test_gradients_are_those_of_torch(rng):
    x = rng.standard_normal((40, 12)).astype(f32)
    rows, starts = listed(rng, 40, 3)
    dy, w = rng.standard_normal((3, 12)).astype(f32), rng.random(len(rows)).astype(f32)
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, w))
    parts = [(torch.tensor(rows[a:b]).long(), tw[a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    torch.stack([(tx[r] * v[:, None]).sum(0) for r, v in parts]).backward(torch.tensor(dy))
    dx, dweights = pool_sum_gradients(dy, rows, starts, x, w)
    assert np.abs(dx - tx.grad.numpy()).max() < 1e-6 and np.abs(dweights - tw.grad.numpy()).max() < 1e-5
    tx.grad = None
    torch.stack([tx[r].amax(0) for r, _ in parts]).backward(torch.tensor(dy))
    k.pool_max_backward(dy, pool_max(x, rows, starts)[1], dx)
    assert np.array_equal(dx, tx.grad.numpy())


def test_maximum_ties_nan_and_negative_rows(path):
    nan, inf = np.nan, np.inf
    x = np.array([[-3, 1, 0.0, 1, -inf, 2], [-2, 1, -0.0, nan, -inf, nan], [-2, 0, 0.0, nan, -inf, inf]], f32)
    y, argmax = pool_max(x, None, np.array([0, 3]))
    assert same_bits(y, np.array([[-2, 1, 0.0, nan, -inf, nan]], f32))
    assert argmax.tolist() == [[1, 0, 0, 1, 0, 1]]
    y, argmax = pool_max(x, np.array([1, 2], np.int32), np.array([0, 2]))
    assert same_bits(y[:, 2], np.array([-0.0], f32)) and argmax[0, 2] == 1  # -0 and +0 are equal: the first


def test_sums_of_special_values(path):
    inf = np.inf
    x = np.array([[-0.0, inf, 3e38, 1], [-0.0, 1, 3e38, -1], [-0.0, -inf, 0, 0]], f32)
    y = pool_sum(x, None, np.array([0, 1, 2, 3]))
    assert same_bits(y, x + f32(0))  # -0 starts at +0
    y = pool_sum(x, None, np.array([0, 3]))
    assert np.isnan(y[0, 1]) and y[0, 2] == inf and same_bits(y[0, ::3], np.zeros(2, f32))
    tiny = np.full((1, 1), -2.0**-100, f32)
    y = pool_sum(tiny, None, np.array([0, 1]), np.array([2.0**-100], f32))
    assert same_bits(y, np.zeros((1, 1), f32))  # the product rounds to -0; the padding is executed
    y = pool_sum(np.ones((1, 2), f32), None, np.array([0, 1]), divisors=np.zeros(1, f32))
    assert (y == inf).all()


def test_softmax_edges(path):
    scores = np.array([[-np.inf, -np.inf, 0, 1e4, 5, np.inf, 1, -200, 0]], f32)
    p = np.empty_like(scores)
    k.pool_softmax_forward(scores, np.array([0, 2, 4, 5, 7, 9]), p)
    assert p[0, :5].tolist() == [0, 0, 0, 1, 1] and np.isnan(p[0, 5:7]).all() and p[0, 7:].tolist() == [0, 1]


def test_nothing_to_pool(path):
    none, x = np.zeros(0, np.int32), np.ones((3, 4), f32)
    assert pool_sum(x, none, np.array([0])).shape == (0, 4)
    dx, dweights = pool_sum_gradients(np.zeros((0, 4), f32), none, np.array([0]), x)
    assert not dx.any() and dweights.shape == (0,)
    dx = np.ones((3, 4), f32)
    k.pool_max_backward(np.zeros((0, 4), f32), np.zeros((0, 4), np.int32), dx)
    assert not dx.any()
    assert pool_max(np.zeros((3, 0), f32), None, np.array([0, 3]))[0].shape == (1, 0)
    k.pool_softmax_forward(np.zeros((2, 0), f32), np.array([0]), np.zeros((2, 0), f32))


@pytest.mark.parametrize("rows, starts, message", [
    ([0, 1], [0, 1, 1, 2], r"starts\[2\] = 1: expected more than 1"), ([0, 1], [0, 1], r"starts\[1\] = 1: expected 2"),
    ([0, 1], [1, 2], "starts does not begin with 0"), ([1, 1], [0, 2], r"rows\[1\] = 1: expected 2..4, ascending"),
    ([2, 1], [0, 2], r"rows\[1\] = 1"), ([0, 5], [0, 2], r"rows\[1\] = 5"), ([-1, 2], [0, 2], r"rows\[0\] = -1")])
def test_wrong_lists_are_named(rows, starts, message):
    x, rows, starts = np.ones((5, 3), f32), np.array(rows, np.int32), np.array(starts, np.int64)
    for run in (pool_sum, pool_max):
        with pytest.raises(ValueError, match=message):
            run(x, rows, starts)


def test_list_rows(rng):
    for shape in ((0, 3), (3, 0), (1, 1), (4, 9)):
        mask = rng.integers(0, 3, shape).astype(np.uint8)
        rows, borders = np.full(mask.size, -1, np.int32), np.empty(len(mask) + 1, np.int64)
        n = k.list_rows(mask, rows, borders)
        assert rows[:n].tolist() == np.flatnonzero(mask).tolist() and (rows[n:] == -1).all()
        assert borders.tolist() == [0, *np.cumsum((mask != 0).sum(1)).tolist()]
    with pytest.raises(ValueError, match=r"rows has shape \(2,\)"):
        k.list_rows(np.ones((1, 3), np.uint8), rows[:2], borders[:2])
    with pytest.raises(ValueError, match=r"borders has shape \(3,\): expected \(2,\)"):
        k.list_rows(np.ones((1, 3), np.uint8), rows, borders[:3])


def test_wrong_arguments_are_named():
    x, starts, y = np.ones((5, 3), f32), np.array([0, 5]), np.ones((1, 3), f32)
    with pytest.raises(ValueError, match=r"weights has shape \(4,\): expected \(5,\)"):
        pool_sum(x, None, starts, np.ones(4, f32))
    with pytest.raises(ValueError, match=r"y has shape \(1, 3\): expected \(2, 3\)"):
        k.pool_sum_forward(x, None, np.array([0, 2, 5]), y)
    with pytest.raises(ValueError, match="x = None: expected x"):
        k.pool_sum_backward(y, None, starts, None, np.ones(5, f32))
    with pytest.raises(ValueError, match=r"argmax\[0, 1\] = 5: expected a row of dx, 0..4"):
        k.pool_max_backward(y, np.array([[0, 5, 0]], np.int32), x.copy())
    with pytest.raises(ValueError, match=r"argmax has shape \(1, 2\)"):
        k.pool_max_forward(x, None, starts, y, np.zeros((1, 2), np.int32))


def test_read_only_inputs_and_softmax_in_place(rng):
    x, scores = rng.standard_normal((9, 5)).astype(f32), rng.standard_normal((2, 9)).astype(f32)
    rows, starts = np.arange(9, dtype=np.int32), np.array([0, 4, 9])
    want, p = pool_sum(x, rows, starts), np.empty_like(scores)
    k.pool_softmax_forward(scores, starts, p)
    for a in (x, rows, starts):
        a.setflags(write=False)
    assert same_bits(pool_sum(x, rows, starts), want)
    k.pool_softmax_forward(scores, starts, scores)
    assert same_bits(scores, p)
    dp = rng.standard_normal((2, 9)).astype(f32)
    ds = np.empty_like(dp)
    k.pool_softmax_backward(p, dp, starts, ds)
    k.pool_softmax_backward(p, dp, starts, dp)
    assert same_bits(dp, ds)
