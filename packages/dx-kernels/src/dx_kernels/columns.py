"""The reading order of a page that may be set in two columns of running text."""
import numpy as np

from .reading import reading_order

COLUMN_ROWS, COLUMN_WORDS = 10, 4  # a column has at least so many rows with so many words
COLUMN_FILL = 0.7  # of its width is words
COLUMN_BALANCE = 0.6  # of the wider column's width is the other's
GUTTER = 1.5  # line heights


def page_order(box, line, offset, code, columns=True):
    """(order, row) of a page's words: as `reading_order`, and where a stretch of rows is set in two columns of running
    text, the left column before the right one.

    There are columns if there is a gutter: a place x with at least COLUMN_ROWS rows that have their only gap of GUTTER
    line heights there and COLUMN_WORDS words on both sides, where the words of these rows fill COLUMN_FILL of either
    side and the sides are about equally wide (COLUMN_BALANCE): running text, not a table. They go from the first of
    these rows to the last, cut at rows that cross the gutter.

    Shapes    box (n, 4) float64, upright · line (n,) int32, -1 for none · offset (n + 1,) int64 and code uint32, texts
              as code points · returns order, row int32 (n,): order[r] is the word read at place r, row[r] its row
    Order     comparisons, and binary64 sums of widths in the order of the words; docs/numerics.md "Columns"
    Raises    as reading_order
    Source    design: reading order
    """
    order, row = _by_position(box, line, offset, code)
    blocks = _column_blocks(box, order, row) if columns else [order]
    if len(blocks) == 1:
        return order, row
    orders, rows, above = [], [], 0
    for block in blocks:
        length = (offset[1:] - offset[:-1])[block]
        begin = np.cumsum(length) - length  # exact: whole numbers
        inside = np.arange(int(length.sum())) - begin.repeat(length) + offset[:-1][block].repeat(length)  # exact: same
        own, own_row = _by_position(box[block], line[block], np.append(begin, len(inside)).astype(np.int64),
                                    code[inside])
        orders.append(block[own])
        rows.append(own_row + np.int32(above))
        above += int(own_row[-1]) + 1
    return np.concatenate(orders), np.concatenate(rows)


def _by_position(box, line, offset, code):
    order, row = np.empty(len(box), np.int32), np.empty(len(box), np.int32)
    reading_order(box, line, offset, code, order, row)
    return order, row


def _column_blocks(box, order, row):
    """The words (numbers into box) of each block to be read one after the other; list of int32 arrays."""
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
