import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import similarity as ref

f32 = np.float32
SHAPES = [(0, 5), (1, 1), (3, 2), (17, 21), (5, 70)]


def normalize(x, epsilon=0.0):
    y, norms = np.full(x.shape, np.nan, f32), np.full(len(x), np.nan, f32)
    k.l2_normalize_forward(x, y, norms, epsilon=epsilon)
    return y, norms


def normalize_backward(dy, y, norms, epsilon=0.0):
    dx = np.full(dy.shape, np.nan, f32)
    k.l2_normalize_backward(dy, y, norms, dx, epsilon=epsilon)
    return dx


def distances(q, e):
    s = np.full((len(q), len(e)), np.nan, f32)
    k.squared_distance_forward(q, e, s)
    return s


def distances_backward(ds, q, e):
    dq, de = np.full(q.shape, np.nan, f32), np.full(e.shape, np.nan, f32)
    k.squared_distance_backward(ds, q, e, dq, de)
    return dq, de


@pytest.mark.parametrize("rows, d", SHAPES)
@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30, 3e-41])
def test_bits_equal_reference(path, rng, rows, d, size):
    x, dy = (rng.standard_normal((rows, d)) * size).astype(f32), rng.standard_normal((rows, d)).astype(f32)
    e = (rng.standard_normal((7, d)) * size).astype(f32)
    x[:, 0] = f32(size)  # no row of zeros
    ds = rng.standard_normal((rows, 7)).astype(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            for epsilon in (0.0, 1e-12, 2.0):
                y, norms = normalize(x, epsilon)
                want = ref.l2_normalize_forward(x, epsilon)
                assert same_bits(y, want[0]) and same_bits(norms, want[1])
                assert same_bits(normalize_backward(dy, y, norms, epsilon),
                                 ref.l2_normalize_backward(dy, y, norms, epsilon))
            assert same_bits(distances(x, e), ref.squared_distance_forward(x, e))
            for got, want in zip(distances_backward(ds, x, e), ref.squared_distance_backward(ds, x, e)):
                assert same_bits(got, want)


@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25, 1e-38])
def test_accurate_whatever_the_size(rng, size):
    x = (rng.standard_normal((30, 50)) * size).astype(f32)
    y, norms = normalize(x)
    exact = np.sqrt((x.astype(np.float64) ** 2).sum(1))
    assert np.abs(norms / exact - 1).max() < 2e-7
    assert np.abs(y * exact[:, None] - x).max() <= 3e-7 * exact.max()


def test_jacobian_is_the_projection(rng):
    """(I - y y^T) / norm, column by column, against float64."""
    x = rng.standard_normal((1, 9)).astype(f32)
    y, norms = normalize(x)
    exact = x[0].astype(np.float64)
    length = np.sqrt(exact @ exact)
    jacobian = (np.eye(9) - np.outer(exact, exact) / length**2) / length
    for j in range(9):
        dy = np.zeros((1, 9), f32)
        dy[0, j] = 1
        assert np.abs(normalize_backward(dy, y, norms)[0] - jacobian[j]).max() < 3e-7
    along = normalize_backward(x, y, norms)  # the radial part does not come back
    assert np.abs(along).max() < 1e-6


@pytest.mark.parametrize("epsilon", [1e-12, 4.0])
def test_agrees_with_torch(rng, epsilon):
    x, dy = rng.standard_normal((20, 16)).astype(f32), rng.standard_normal((20, 16)).astype(f32)
    t = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    z = torch.nn.functional.normalize(t, dim=1, eps=epsilon)
    z.backward(torch.tensor(dy, dtype=torch.float64))
    y, norms = normalize(x, epsilon)
    assert np.abs(y - z.detach().numpy()).max() < 2e-7
    assert np.abs(normalize_backward(dy, y, norms, epsilon) - t.grad.numpy()).max() < 1e-6


def test_distance_gradients_are_difference_quotients(rng):
    q, e, ds = (rng.standard_normal(s) for s in ((4, 6), (5, 6), (4, 5)))

    def total(q, e):
        return (ds * ((q[:, None] - e[None]) ** 2).sum(-1)).sum()
    dq, de = distances_backward(ds.astype(f32), q.astype(f32), e.astype(f32))
    for at, d, which in ((q, dq, 0), (e, de, 1)):
        for place in np.ndindex(at.shape):
            step = np.zeros(at.shape)
            step[place] = 1e-5
            up, down = (total(*((q + s, e) if which == 0 else (q, e + s))) for s in (step, -step))
            assert abs((up - down) / 2e-5 - d[place]) < 2e-5


def test_unit_rows_tie_distance_to_cosine(rng):
    """|q - e|^2 = 2 - 2 q.e on the unit sphere."""
    q, _ = normalize(rng.standard_normal((6, 40)).astype(f32))
    e, _ = normalize(rng.standard_normal((8, 40)).astype(f32))
    dots = np.empty((6, 8), f32)
    k.matmul(q, e, dots, transpose_b=True)
    assert np.abs(distances(q, e) - (2 - 2 * dots)).max() < 1e-6


def test_a_zero_row_is_refused_or_declared():
    x = np.array([[3, 4], [0, -0.0]], f32)
    with pytest.raises(ValueError, match=r"x\[1\] has norm 0"):
        normalize(x)
    y, norms = normalize(x, 1e-12)
    assert same_bits(y, np.array([[0.6, 0.8], [0, -0.0]], f32)) and norms.tolist() == [5, 0]
    assert normalize_backward(np.ones((2, 2), f32), y, norms, 1e-12)[1].tolist() == [f32(1) / f32(1e-12)] * 2


def test_extreme_rows(path):
    big = np.finfo(f32).max
    y, norms = normalize(np.array([[big, big], [1e-45, 0], [np.nan, 1], [np.inf, 1], [-1e-45, 1e-45]], f32), 1e-60)
    assert np.abs(y[0] - 0.5**0.5).max() < 1e-7 and norms[0] == np.inf
    assert y[1].tolist() == [1, 0] and norms[1] == f32(1e-45)
    assert np.isnan(y[2]).all() and np.isnan(y[3, 0]) and y[3, 1] == 0
    assert np.abs(np.abs(y[4]) - 0.5**0.5).max() < 1e-7


def test_wrong_arguments_are_named():
    x, n = np.ones((2, 3), f32), np.ones(2, f32)
    for wrong, message in (
            (lambda: k.l2_normalize_forward(x, x[:1], n), r"y has shape \(1, 3\)"),
            (lambda: k.l2_normalize_forward(x, x, n[:1]), r"norms has shape \(1,\)"),
            (lambda: k.l2_normalize_forward(x, x, n, epsilon=-1.0), "epsilon = -1.0"),
            (lambda: k.l2_normalize_forward(x, x, n, epsilon=np.nan), "epsilon = nan"),
            (lambda: k.l2_normalize_backward(x, x, n, x, epsilon=np.inf), "epsilon = inf"),
            (lambda: k.l2_normalize_backward(x, x, n, x[:, :0].copy()), r"dx has shape \(2, 0\)"),
            (lambda: k.squared_distance_forward(x, x[:, :2].copy(), x), r"e has shape \(2, 2\)"),
            (lambda: k.squared_distance_backward(x, x, x), r"ds has shape \(2, 3\): expected \(2, 2\)")):
        with pytest.raises(ValueError, match=message):
            wrong()
