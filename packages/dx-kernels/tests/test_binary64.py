import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import binary64 as ref


def softmax(z):
    p, log_sum = np.full(z.shape, 7.0), np.full(len(z), 7.0)
    k.softmax64(z, p, log_sum)
    return p, log_sum


def products(a, b):
    s = np.full((a.shape[1], b.shape[1]), 7.0)
    k.products64(a, b, s)
    return s


@pytest.mark.parametrize("rows, n, m", [(0, 3, 2), (1, 1, 1), (5, 0, 2), (17, 9, 4), (700, 33, 34)])
def test_bits_equal_reference(path, rng, rows, n, m):
    a, b = rng.standard_normal((rows, n)) * 10, rng.standard_normal((rows, m))
    for degree in (1, 2, 3):
        with k.degree(degree):
            for got, want in zip((*softmax(a), products(a, b)), (*ref.softmax64(a), ref.products64(a, b))):
                assert np.array_equal(got, want, equal_nan=True)


def test_accurate(rng):
    z = rng.standard_normal((40, 7)) * 5
    p, log_sum = softmax(z)
    e = np.exp(z.astype(np.longdouble))
    assert np.abs(p - e / e.sum(1, keepdims=True)).max() < 1e-15
    assert np.abs(log_sum - np.log(e.sum(1))).max() < 3e-15
    assert np.abs(products(z, z) - z.T @ z).max() < 1e-11


def test_edges(path):
    p, log_sum = softmax(np.array([[1e308, -1e308], [0, -np.inf], [np.nan, 0], [-np.inf, -np.inf]]))
    assert p[:2].tolist() == [[1, 0], [1, 0]] and np.isnan(p[2:]).all()
    assert log_sum[0] == 1e308 and log_sum[1] == 0 and np.isnan(log_sum[2:]).all()


def test_wrong_arguments_are_named():
    z = np.zeros((2, 3))
    for wrong, message in ((lambda: k.softmax64(z, z[:1], z[:, 0].copy()), r"p has shape \(1, 3\)"),
                           (lambda: k.softmax64(z, z, np.zeros(3)), r"log_sum has shape \(3,\)"),
                           (lambda: k.products64(z, z[:1], z), r"b has shape \(1, 3\)"),
                           (lambda: k.products64(z, z, z), r"s has shape \(2, 3\): expected \(3, 3\)")):
        with pytest.raises(ValueError, match=message):
            wrong()
