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
