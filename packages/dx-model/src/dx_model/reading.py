"""The order in which the words of a page are read: by position, whatever the order in the file."""
from itertools import chain

import numpy as np

from .below import reading_order as order_kernel

COLUMN_ROWS, COLUMN_WORDS = 10, 4  # a column has at least so many rows with so many words
COLUMN_FILL = 0.7  # of its width is words
COLUMN_BALANCE = 0.6  # of the wider column's width is the other's
GUTTER = 1.5  # line heights


def code_points(texts):
    """(offset, code) of a list of str: text i is code[offset[i]:offset[i + 1]]; int64 (n + 1,) and uint32."""
    code = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)
    offset = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offset[1:])  # exact: whole numbers
    return offset, code


def upright_boxes(page):
    """The boxes of a page turned back by its rotation; float64 (n, 4)."""
    words = page.words
    box = np.fromiter(chain.from_iterable([w.box for w in words]), np.float64, 4 * len(words)).reshape(-1, 4)
    if page.rotation == 0:
        return box
    x0, y0, x1, y1 = box.T
    width, height = page.width, page.height
    turned = {90: (y0, width - x1, y1, width - x0), 180: (width - x1, height - y1, width - x0, height - y0),
              270: (height - y1, x0, height - y0, x1)}
    return np.ascontiguousarray(np.array(turned[page.rotation]).T)


def line_numbers(page):
    """The source's line number of each word, -1 where it gives none; int32 (n,)."""
    return np.array([-1 if w.line is None else w.line for w in page.words], np.int32)


def reading_order(page, *, keep_file_order=False, columns=True):
    """The order of a page's words.

    Rows of words from top to bottom, each from left to right (dx_kernels.reading_order says exactly how); a page turned
    by its declared rotation is read upright. Where a stretch of rows is set in two columns of running text, the left
    column is read before the right one; tables, receipts and forms are not taken for columns.

    Parameters
    ----------
    page : Page
    keep_file_order : bool; the words stay in the order of the file, for files whose own order means something
    columns : bool; look for two columns of text

    Returns
    -------
    order, row : int32 (n,), int32 (n,)
        order[r] is the number of the word read at place r, row[r] its row (from 0, never falling). Only words with the
        same box and text keep their order in the file.
    """
    return order_boxes(upright_boxes(page), line_numbers(page), page.texts, keep_file_order, columns)


def order_boxes(box, line, texts, keep_file_order=False, columns=True):
    """reading_order of upright boxes (n, 4), line numbers (n,) and texts."""
    n = len(box)
    if keep_file_order:
        return np.arange(n, dtype=np.int32), file_rows(box)
    order, row = _by_position(box, line, texts)
    blocks = column_blocks(box, order, row) if columns else [order]
    if len(blocks) == 1:
        return order, row
    orders, rows, below = [], [], 0
    for block in blocks:
        inner, inner_row = _by_position(np.ascontiguousarray(box[block]), line[block], [texts[i] for i in block])
        orders.append(block[inner])
        rows.append(inner_row + np.int32(below))
        below += int(inner_row[-1]) + 1
    return np.concatenate(orders), np.concatenate(rows)


def _by_position(box, line, texts):
    offset, code = code_points(texts)
    order, row = np.empty(len(box), np.int32), np.empty(len(box), np.int32)
    order_kernel(box, line, offset, code, order, row)
    return order, row


def file_rows(box):
    """Rows of words kept in the order of the file: a word begins a new row unless its middle is nearer to that of the
    row's first word than half its own height, and it stands to the right of the word before; int32 (n,)."""
    row = np.zeros(len(box), np.int32)
    current, anchor, left = 0, None, None
    for i, (x0, y0, _, y1) in enumerate(box.tolist()):
        middle = (y0 + y1) / 2
        if anchor is not None and not ((abs(middle - anchor) < 0.5 * (y1 - y0) or middle == anchor) and x0 >= left):
            current, anchor = current + 1, None
        anchor, left = middle if anchor is None else anchor, x0
        row[i] = current
    return row


def column_blocks(box, order, row):
    """The words (numbers into box) of each block to be read one after the other; list of int32 arrays.

    One block unless there is a gutter: a place x with at least COLUMN_ROWS rows that have their only gap of GUTTER line
    heights there and COLUMN_WORDS words on both sides, where the words of these rows fill COLUMN_FILL of either side
    and the sides are about equally wide (COLUMN_BALANCE): running text, not a table. The block of two columns goes from
    the first of these rows to the last, cut at rows that cross the gutter.
    """
    counts = np.bincount(row) if len(row) else np.zeros(0, np.int64)
    if np.count_nonzero(counts >= 2 * COLUMN_WORDS) < COLUMN_ROWS:
        return [order]
    read = box[order]
    heights = np.sort(read[:, 3] - read[:, 1], kind="stable")
    least = GUTTER * heights[(len(heights) - 1) // 2]
    gap = np.flatnonzero((row[1:] == row[:-1]) & (read[1:, 0] - read[:-1, 2] >= least))  # after these places
    begin = np.cumsum(counts) - counts  # exact: whole numbers
    gap = gap[np.bincount(row[gap], minlength=len(counts))[row[gap]] == 1]
    left = gap + 1 - begin[row[gap]]
    gap = gap[(left >= COLUMN_WORDS) & (counts[row[gap]] - left >= COLUMN_WORDS)]
    if len(gap) < COLUMN_ROWS:
        return [order]
    low, high = read[gap, 2], read[gap + 1, 0]
    middle = np.sort((low + high) / 2, kind="stable")
    best = middle[np.argmax(np.count_nonzero((low <= middle[:, None]) & (middle[:, None] <= high), axis=1))]
    chosen = row[gap[(low <= best) & (best <= high)]]
    rows = [order[a:a + n] for a, n in zip(begin.tolist(), counts.tolist())]
    if len(chosen) < COLUMN_ROWS or not _is_text(box, [rows[r] for r in chosen.tolist()], best):
        return [order]
    return _blocks(box, rows, best, chosen[0], chosen[-1])


def _is_text(box, rows, x):
    """Do the words of these rows fill their sides of x, and are the sides about equally wide?"""
    sides = {True: [], False: []}
    for words in rows:
        for word in words:
            sides[bool(box[word, 2] <= x)].append(box[word])
    widths = []
    for side in sides.values():
        side = np.array(side)
        widths.append(side[:, 2].max() - side[:, 0].min())
        filled = 0.0
        for width in (side[:, 2] - side[:, 0]).tolist():
            filled += width
        if filled < COLUMN_FILL * (widths[-1] * len(rows)):
            return False
    return bool(min(widths) >= COLUMN_BALANCE * max(widths))


def _blocks(box, rows, x, first, last):
    blocks, left, right = [], [], []

    def end_columns():
        blocks.extend(np.concatenate(side) for side in (left, right) if side)
        left.clear()
        right.clear()

    for r, words in enumerate(rows):
        on_left = box[words, 2] <= x
        on_right = ~on_left & (box[words, 0] >= x)  # a word without width that stands at x is on the left alone
        if first <= r <= last and bool((on_left | on_right).all()):
            left += [words[on_left]] if on_left.any() else []
            right += [words[on_right]] if on_right.any() else []
        else:
            end_columns()
            blocks.append(words)
    end_columns()
    return blocks
