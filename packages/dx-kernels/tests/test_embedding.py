import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import embedding as ref

f32 = np.float32
SHAPES = [(0, 3, 4), (1, 1, 1), (7, 5, 3), (33, 12, 96), (8000, 64, 40)]  # words, rows, d


def ids_of(rng, *shape, rows):
    return rng.integers(0, rows, shape).astype(np.int32)


@pytest.mark.parametrize("n, rows, d", SHAPES)
def test_bits_equal_reference(path, rng, n, rows, d):
    table, dy = rng.standard_normal((rows, d)).astype(f32), rng.standard_normal((n, d)).astype(f32)
    table.setflags(write=False)
    ids = ids_of(rng, n, rows=rows)
    for degree in (1, 2, 3):
        for padding in (-1, 0, rows - 1):
            with k.degree(degree):
                y, dtable = np.full((n, d), np.nan, f32), np.full((rows, d), np.nan, f32)
                k.embedding_forward(table, ids, y, padding=padding)
                assert same_bits(y, ref.embedding_forward(table, ids, padding))
                k.embedding_backward(dy, ids, dtable, padding=padding)
                assert same_bits(dtable, ref.embedding_backward(dy, ids, rows, padding))


@pytest.mark.parametrize("n, rows, d", SHAPES)
@pytest.mark.parametrize("count", [1, 4, 8])
def test_sum_of_tables(path, rng, n, rows, d, count):
    tables = [rng.standard_normal((rows + i, d)).astype(f32) for i in range(count)]
    ids, x = ids_of(rng, count, n, rows=rows), rng.standard_normal((n, d)).astype(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y = np.empty((n, d), f32)
            k.embedding_sum_forward(tables, ids, y)
            assert same_bits(y, ref.embedding_sum_forward(tables, ids))
            k.embedding_sum_forward(tables, ids, y, x)
            want = ref.embedding_sum_forward(tables, ids, x)
            assert same_bits(y, want)
            y[:] = x
            k.embedding_sum_forward(tables, ids, y, y)
            assert same_bits(y, want)


def test_gradient_is_added_in_word_order():
    """1e8 + 1 - 1e8 in binary32 is 0 in this order and 1 in another; -0 alone becomes +0."""
    dy = np.array([[1e8], [1.0], [-1e8], [-0.0]], f32)
    dtable = np.empty((2, 1), f32)
    k.embedding_backward(dy, np.array([0, 0, 0, 1], np.int32), dtable)
    assert same_bits(dtable, np.array([[0.0], [0.0]], f32))


def test_padding_row_reads_as_zeros_and_gets_no_gradient(path):
    """Case ker-08."""
    table = np.array([[0.5, 0.5], [0.9, 0.3], [0.5, 0.2]], f32)
    ids, y, dtable = np.array([0, 1, 2], np.int32), np.empty((3, 2), f32), np.empty((3, 2), f32)
    k.embedding_forward(table, ids, y, padding=0)
    assert same_bits(y, np.array([[0, 0], [0.9, 0.3], [0.5, 0.2]], f32))
    k.embedding_backward(np.ones((3, 2), f32), ids, dtable, padding=0)
    assert same_bits(dtable, np.array([[0, 0], [1, 1], [1, 1]], f32))


def test_nan_and_huge_rows_pass():
    table = np.array([[np.nan, 3e38], [np.inf, -0.0]], f32)
    y = np.empty((2, 2), f32)
    k.embedding_forward(table, np.array([1, 0], np.int32), y)
    assert same_bits(y, table[::-1])


@pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1])
def test_ids_outside_the_table_are_named(bad):
    table, y, ids = np.zeros((3, 2), f32), np.zeros((2, 2), f32), np.array([0, bad], np.int32)
    message = rf"ids\[1\] = {bad}: expected an id in 0\.\.2"
    with pytest.raises(ValueError, match=message):
        k.embedding_forward(table, ids, y)
    with pytest.raises(ValueError, match=message):
        k.embedding_backward(y, ids, table)
    with pytest.raises(ValueError, match=rf"ids\[1\]\[1\] = {bad}: expected an id in 0\.\.2"):
        k.embedding_sum_forward([table, table], np.array([[0, 1], [0, bad]], np.int32), y)


def test_wrong_arguments_are_named():
    table, y, ids = np.zeros((3, 2), f32), np.zeros((2, 2), f32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match=r"y has shape \(2, 2\): expected \(2, 3\)"):
        k.embedding_forward(np.zeros((3, 3), f32), ids, y)
    with pytest.raises(ValueError, match="padding = 3"):
        k.embedding_forward(table, ids, y, padding=3)
    with pytest.raises(ValueError, match="padding = -2"):
        k.embedding_backward(y, ids, table, padding=-2)
    with pytest.raises(ValueError, match="tables has 0 tables"):
        k.embedding_sum_forward([], np.zeros((0, 2), np.int32), y)
    with pytest.raises(ValueError, match=r"ids has shape \(1, 2\): expected \(2, 2\)"):
        k.embedding_sum_forward([table, table], np.zeros((1, 2), np.int32), y)
    with pytest.raises(ValueError, match=r"tables\[1\] has shape \(3, 3\): expected \(3, 2\)"):
        k.embedding_sum_forward([table, np.zeros((3, 3), f32)], np.zeros((2, 2), np.int32), y)
    with pytest.raises(ValueError, match="dtype"):
        k.embedding_forward(table, np.zeros(2, np.int64), y)
