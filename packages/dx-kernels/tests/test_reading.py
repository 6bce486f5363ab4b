import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import reading as ref
from pages import arrays, random_boxes, random_texts


def order_of(box, line=None, texts=None):
    n = len(box)
    line = np.full(n, -1, np.int32) if line is None else line
    offset, code = arrays(texts or [""] * n)
    order, row = np.empty(n, np.int32), np.empty(n, np.int32)
    k.reading_order(np.asarray(box, np.float64).reshape(n, 4), line, offset, code, order, row)
    return order, row


@pytest.mark.parametrize("n", [0, 1, 2, 9, 64, 333])
def test_equals_reference(path, rng, n):
    for spread in (1, 3, 40):
        box, line = random_boxes(rng, n, spread)
        texts = random_texts(rng, n)
        got, want = order_of(box, line, texts), ref.reading_order(box, line, *arrays(texts))
        assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])
        assert np.array_equal(np.sort(got[0]), np.arange(n))


def test_input_order_does_not_matter(rng):
    box, line = random_boxes(rng, 80, 5)
    texts = random_texts(rng, 80)
    order, row = order_of(box, line, texts)
    for _ in range(5):
        p = rng.permutation(80)
        other, other_row = order_of(box[p], line[p], [texts[i] for i in p])
        assert [(box[i].tolist(), texts[i]) for i in order] == [(box[p[i]].tolist(), texts[p[i]]) for i in other]
        assert np.array_equal(row, other_row)


def test_uneven_rows_stay_together():
    """Case io-23."""
    box = [[x, y, x + 40, y + 12] for x, y in ((10, 100), (300, 103), (600, 98), (10, 118), (600, 118))]
    order, row = order_of(box)
    assert order.tolist() == [0, 1, 2, 3, 4] and row.tolist() == [0, 0, 0, 1, 1]
    assert order_of(box[::-1])[0].tolist() == [4, 3, 2, 1, 0]


def test_equal_words_keep_input_order(path):
    """Case io-25."""
    assert order_of([[5, 5, 9, 9]] * 3, texts=["a"] * 3)[0].tolist() == [0, 1, 2]
    assert order_of([[5, 5, 9, 9]] * 3, texts=["c", "a", "b"])[0].tolist() == [1, 2, 0]


def test_a_line_of_several_rows_is_not_taken_as_a_line():
    box = [[0, 0, 40, 10], [50, 0, 90, 10], [0, 20, 40, 30], [50, 20, 90, 30]]
    assert order_of(box, np.zeros(4, np.int32))[0].tolist() == [0, 1, 2, 3]


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"box\[1, 2\] = nan"):
        order_of([[0, 0, 1, 1], [0, 0, float("nan"), 1]])
    with pytest.raises(ValueError, match=r"box\[0, 3\] = 1e\+300"):
        order_of([[0, 0, 1, 1e300]])


def columns(rows, words, gutter):
    """Boxes of two columns of running text, words of 40 with spaces of 5, row by row."""
    return np.array([[side * (words * 45.0 + gutter) + 45 * i, 15.0 * r, side * (words * 45.0 + gutter) + 45 * i + 40,
                      15.0 * r + 10] for r in range(rows) for side in (0, 1) for i in range(words)])


def page_order(box, columns=True, texts=None):
    n = len(box)
    return k.page_order(np.asarray(box, np.float64).reshape(n, 4), np.full(n, -1, np.int32),
                        *arrays(texts or [f"{i % 7}" * (i % 3) for i in range(n)]), columns)


@pytest.mark.parametrize("rows, words, gutter, are", [(10, 6, 40, True), (9, 6, 40, False), (10, 3, 40, False),
                                                      (10, 6, 5, False), (60, 9, 30, True)])
def test_columns(path, rng, rows, words, gutter, are):
    box = columns(rows, words, gutter)
    order, row = page_order(box)
    plain = page_order(box, columns=False)
    assert order.dtype == row.dtype == np.int32 and (np.diff(row) >= 0).all() and row[0] == 0
    assert np.array_equal(np.sort(order), np.arange(len(box)))
    left = box[order, 0] < words * 45
    if are:
        assert left[:rows * words].all() and not left[rows * words:].any() and row[-1] == 2 * rows - 1
    else:
        assert np.array_equal(order, plain[0]) and np.array_equal(row, plain[1])
    moved = rng.permutation(len(box))
    again, again_row = page_order(box[moved], texts=[f"{i % 7}" * (i % 3) for i in moved])
    assert np.array_equal(moved[again], order) and np.array_equal(again_row, row)


def test_columns_of_nothing_and_wrong_arguments():
    order, row = page_order(np.zeros((0, 4)))
    assert order.shape == row.shape == (0,)
    with pytest.raises(ValueError, match=r"box\[1, 2\] = nan"):
        page_order([[0, 0, 1, 1], [0, 0, float("nan"), 1]])
