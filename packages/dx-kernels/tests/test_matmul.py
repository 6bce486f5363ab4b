import itertools

import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref.matmul import matmul as reference

TRANSPOSES = list(itertools.product((False, True), repeat=2))


def stored(x, transposed):
    """x as a caller stores it: C-contiguous, transposed when asked."""
    return np.ascontiguousarray(np.swapaxes(x, -1, -2) if transposed else x)


def product(a, b, transpose_a=False, transpose_b=False, packed=False):
    """a @ b through the kernel in the given storage; out starts as NaN, so an element left out shows."""
    out = np.full(a.shape[:-1] + b.shape[-1:], np.nan, np.float32)
    a, b = stored(a, transpose_a), stored(b, transpose_b)
    if packed:
        k.matmul(a, k.PackedMatrix(b, transpose_b=transpose_b), out, transpose_a=transpose_a)
    else:
        k.matmul(a, b, out, transpose_a=transpose_a, transpose_b=transpose_b)
    return out


def everywhere(a, b, degrees=(1, 2, 3)):
    """Every storage, packed or not, on every degree, against the reference."""
    want = reference(a, b)
    for degree in degrees:
        with k.degree(degree):
            for (ta, tb), packed in itertools.product(TRANSPOSES, (False, True)):
                got = product(a, b, ta, tb, packed)
                assert same_bits(got, want), (a.shape, b.shape, ta, tb, packed, degree)


def test_random_odd_shapes(path, rng):
    for _ in range(40):
        m, n, kk = rng.integers(1, 71, 3)
        everywhere(rng.standard_normal((m, kk), np.float32), rng.standard_normal((kk, n), np.float32))


@pytest.mark.parametrize("m, k_, n", [(1, 1, 1), (1, 64, 192), (2, 64, 33), (7, 16, 32), (8, 17, 31), (70, 15, 16),
                                      (6, 100, 1), (33, 48, 97), (1, 1100, 5)])
def test_edges_of_tiles(path, rng, m, k_, n):
    everywhere(rng.standard_normal((m, k_), np.float32), rng.standard_normal((k_, n), np.float32))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_few_rows(path, rng, m):
    """B unpacked is read as it is: whole and ragged vectors of columns, stretches of columns, several chunks of k."""
    for kk, n in [(1, 16), (15, 17), (16, 33), (130, 47), (300, 20), (64, 700), (257, 530), (4100, 18), (40, 3)]:
        everywhere(rng.standard_normal((m, kk), np.float32), rng.standard_normal((kk, n), np.float32), (1, 3))


def test_large_enough_for_several_tasks(rng):
    """More than a million multiply-adds: rows and columns are shared out among the threads."""
    for m, kk, n in [(250, 130, 70), (12, 300, 600), (600, 300, 12), (300, 1500, 9)]:
        a, b = rng.standard_normal((m, kk), np.float32), rng.standard_normal((kk, n), np.float32)
        everywhere(a, b, degrees=(1, 2, 3, 7))


@pytest.mark.parametrize("m, k_, n", [(5, 4100, 3), (16, 5000, 33), (32, 9001, 16), (8, 4096, 32)])
def test_long_contraction(path, rng, m, k_, n):
    everywhere(rng.standard_normal((m, k_), np.float32), rng.standard_normal((k_, n), np.float32))


def test_special_values(path, rng):
    """Zeros of both signs, denormals, scaling by 2^±60, overflow, infinities and NaN."""
    for kk in (3, 16, 37):
        a, b = rng.standard_normal((9, kk), np.float32), rng.standard_normal((kk, 35), np.float32)
        zeros = np.array([0.0, -0.0], np.float32)
        everywhere(rng.choice(zeros, a.shape), rng.choice(zeros, b.shape), (1,))
        everywhere(np.where(rng.random(a.shape) < 0.7, rng.choice(zeros, a.shape), a), b, (1,))
        everywhere(a * np.float32(1e-30), b * np.float32(1e-12), (1,))
        everywhere(a * np.float32(2**60), b * np.float32(2**-60), (1,))
        everywhere(a * np.float32(2**60), b * np.float32(2**65), (1,))
        a[1, 0], a[2, 1], b[2, 3], b[0, 5] = np.nan, np.inf, -np.inf, np.nan
        everywhere(a, b, (1,))


def test_tiny_negative_products_do_not_leave_a_negative_zero(path):
    """The padding of the last chunk counts: a lane at -0 becomes +0."""
    a = np.full((1, 17), 1e-30, np.float32)
    b = np.zeros((17, 1), np.float32)
    b[1] = -1e-30  # rounds to -0 in lane 1, which has padding in the second chunk
    everywhere(a, b, (1,))
    assert not np.signbit(product(a, b))[0, 0]


@pytest.mark.parametrize("m, kk, n", [(1, 17, 20), (4, 33, 40), (5, 2049, 32), (32, 2063, 5), (6, 2064, 32),
                                      (9, 48, 9)])
def test_every_element_is_a_negative_zero_or_none_is(path, m, kk, n):
    """All lanes end at -0, and stay so only where the last chunk has no padding."""
    a, b = np.full((m, kk), 1e-30, np.float32), np.full((kk, n), -1e-30, np.float32)
    want = np.full((m, n), -0.0 if kk % 16 == 0 else 0.0, np.float32)
    for ta, tb in TRANSPOSES:
        assert same_bits(product(a, b, ta, tb), want) and same_bits(product(a, b, ta, tb, packed=True), want)


@pytest.mark.parametrize("kk", [*range(1, 36), 47, 56, 63])
def test_padding_is_as_if_executed(path, rng, kk):
    """Kernels add +0 to the finished dot where the definition adds it to every lane with padding: sums of zeros of both
    signs, of products that round to -0, of denormals, and with infinities and NaN among them."""
    zeros, tiny = np.array([0.0, -0.0], np.float32), np.array([-1e-30, 1e-30, -0.0, 0.0, -1e-45], np.float32)
    for values in (zeros, zeros[1:], tiny, tiny[:1], tiny[[0, 2]], np.append(tiny, [np.float32(1), -1]),
                   np.append(tiny, np.array([np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32))):
        a = rng.choice(values, (3, kk)).astype(np.float32)
        for b in (rng.choice(np.abs(values), (kk, 18)), rng.choice(values, (kk, 18)), np.full((kk, 18), 1e-30)):
            with np.errstate(invalid="ignore"):  # in the reference
                everywhere(a, b.astype(np.float32), (1,))


def test_empty(path):
    for packed in (False, True):
        assert same_bits(product(np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32), packed=packed),
                         np.zeros((3, 4), np.float32))
        assert product(np.zeros((0, 5), np.float32), np.zeros((5, 4), np.float32), packed=packed).shape == (0, 4)
        assert product(np.zeros((2, 5), np.float32), np.zeros((5, 0), np.float32), packed=packed).shape == (2, 0)


def test_heads(path, rng):
    for h, m, kk, n in [(1, 5, 7, 9), (3, 20, 32, 41), (8, 33, 65, 32), (2, 0, 3, 4), (0, 2, 2, 2), (2, 3, 0, 4)]:
        a, b = rng.standard_normal((h, m, kk), np.float32), rng.standard_normal((h, kk, n), np.float32)
        want = reference(a, b)
        for degree, (ta, tb) in itertools.product((1, 2, 3), TRANSPOSES):
            with k.degree(degree):
                assert same_bits(product(a, b, ta, tb), want)


def test_heads_inside_rows(path, rng):
    """(words, heads, d) seen as (heads, words, d) without a copy; also a large pair, split inside each head."""
    for n, h, d in [(37, 4, 8), (300, 2, 32)]:
        q, v = rng.standard_normal((2, n, h, d), np.float32).transpose(0, 2, 1, 3)
        out = np.empty((h, n, n), np.float32)
        with k.degree(2):
            k.matmul(q, v, out, transpose_b=True)
        if n < 100:
            assert same_bits(out, reference(q, v, transpose_b=True))
        one = np.empty((n, n), np.float32)
        k.matmul(q[1], v[1], one, transpose_b=True)
        assert same_bits(out[1], one)


def test_row_strides(path, rng):
    big_a, big_b = rng.standard_normal((20, 50), np.float32), rng.standard_normal((50, 70), np.float32)
    a, b = big_a[:, 3:20], big_b[10:27, 5:38]
    out = np.zeros((20, 40), np.float32)
    k.matmul(a, b, out[:, 2:35])
    assert same_bits(out[:, 2:35], reference(a, b))
    assert not out[:, :2].any() and not out[:, 35:].any()
    k.matmul(big_a[::2, :17], b, out[:10, 2:35])
    assert same_bits(out[:10, 2:35], reference(big_a[::2, :17], b))


def test_one_row_alone_and_in_any_batch(path):
    """Case num-01: the product of the same rows does not depend on how many rows are in the call."""
    i, j, kk = np.ogrid[:100, :30, :8]
    a = (((31 * i + 7 * j + 3 * kk) % 97) / 97 - 0.5).astype(np.float32).reshape(-1, 8)
    kk, n = np.ogrid[:8, :20]
    w = (((13 * kk + 5 * n) % 89) / 89 - 0.5).astype(np.float32)
    chunked = [np.concatenate([product(a[r:r + size], w, packed=packed) for r in range(0, len(a), size)])
               for size in (1, 2, 50, 3000) for packed in (False, True)]
    assert all(y.tobytes() == chunked[0].tobytes() for y in chunked)


def test_accuracy(rng):
    a, b = rng.standard_normal((64, 300), np.float32), rng.standard_normal((300, 64), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(product(a, b) - exact).max() < 3e-5


def test_packed_matrix(rng):
    b = rng.standard_normal((40, 30), np.float32)
    a = rng.standard_normal((5, 40), np.float32)
    b.flags.writeable = False
    packed = k.PackedMatrix(b)
    assert packed.shape == (40, 30) and packed.nbytes >= b.nbytes
    for path in k.available_paths():  # one object, used under each path in turn
        with k.kernel_path(path):
            out = np.empty((5, 30), np.float32)
            k.matmul(a, packed, out)
            assert same_bits(out, reference(a, b))
    c = rng.standard_normal((30, 40), np.float32)
    packed = k.PackedMatrix(c, transpose_b=True)
    before = c.copy()
    c *= 2
    k.matmul(a, packed, out)
    assert same_bits(out, reference(a, before, transpose_b=True))  # values at packing time
    packed.repack()
    k.matmul(a, packed, out)
    assert same_bits(out, reference(a, c, transpose_b=True))


def test_packed_matrix_from_several_threads(rng):
    import threading
    b, a = rng.standard_normal((64, 50), np.float32), rng.standard_normal((9, 64), np.float32)
    want, packed, wrong = reference(a, b), k.PackedMatrix(b), []

    def work(path):
        with k.kernel_path(path):
            for _ in range(50):
                out = np.empty_like(want)
                k.matmul(a, packed, out)
                if not same_bits(out, want):
                    wrong.append(path)

    threads = [threading.Thread(target=work, args=(path,)) for path in k.available_paths() * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_read_only_and_memory_mapped(rng, tmp_path):
    a, b = rng.standard_normal((6, 20), np.float32), rng.standard_normal((20, 7), np.float32)
    a.tofile(tmp_path / "a")
    mapped = np.memmap(tmp_path / "a", np.float32, "r", shape=a.shape)
    b.flags.writeable = False
    out = np.empty((6, 7), np.float32)
    k.matmul(mapped, b, out)
    assert same_bits(out, reference(a, b))
    k.matmul(mapped, k.PackedMatrix(b), out)
    assert same_bits(out, reference(a, b))


def test_errors_name_what_is_wrong():
    x = np.zeros((4, 5), np.float32)
    with pytest.raises(ValueError, match=r"a \(4, 5\), b \(4, 5\) and out \(4, 5\) do not fit"):
        k.matmul(x, x, x.copy())
    with pytest.raises(ValueError, match=r"a \(4, 5\) transposed, b \(5, 5\)"):
        k.matmul(x, np.zeros((5, 5), np.float32), x.copy(), transpose_a=True)
    with pytest.raises(ValueError, match="out has strides"):
        k.matmul(np.zeros((5, 5), np.float32), np.zeros((5, 4), np.float32), x.T)
    with pytest.raises(ValueError, match="b has strides"):
        k.PackedMatrix(x[:, ::2])
    with pytest.raises(ValueError, match="a has strides"):
        k.matmul(x[::-1], np.zeros((5, 5), np.float32), x.copy())
    with pytest.raises(ValueError, match=r"b has strides .* for shape \(2, 5, 4\)"):
        k.matmul(np.zeros((2, 4, 5), np.float32), np.zeros((2, 4, 5), np.float32).transpose(0, 2, 1),
                 np.zeros((2, 4, 4), np.float32))
    with pytest.raises(ValueError, match="transpose_b"):
        k.matmul(x, k.PackedMatrix(x), x.copy(), transpose_b=True)
    with pytest.raises(TypeError, match="b is None"):
        k.matmul(x, None, x.copy())
    with pytest.raises(ValueError, match="float"):
        k.matmul(x.astype(np.float64), x, x.copy())
    frozen = np.zeros((4, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        k.matmul(x, x, frozen, transpose_b=True)


def test_probe_counts_its_operations(path):
    assert k.fma_probe(0) == 0 and k.fma_probe(20) == 2 * k.fma_probe(10) > 0
    with pytest.raises(ValueError, match="steps = -1"):
        k.fma_probe(-1)
