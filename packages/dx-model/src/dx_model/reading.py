"""The order in which the words of a page are read: by position, whatever the order in the file."""
from itertools import chain

import numpy as np

from .below import page_order


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

    Rows of words from top to bottom, each from left to right (dx_kernels.page_order says exactly how); a page turned
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
    return page_order(box, line, *code_points(texts), columns=columns)


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
