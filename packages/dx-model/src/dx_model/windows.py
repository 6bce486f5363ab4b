"""Pages of more rows than the model takes at once: windows that overlap, and which window speaks for which row."""
import numpy as np


def page_windows(rows, max_rows, overlap=None):
    """The windows of a page.

    Parameters
    ----------
    rows : int, rows of the page
    max_rows : int, rows that the model takes at most
    overlap : int or None; rows that neighbouring windows share at least, default a quarter of max_rows

    Returns
    -------
    list of (begin, end): (0, rows) where the page fits, otherwise the fewest windows of max_rows rows, spread evenly

    Raises
    ------
    ValueError: max_rows < 1, overlap outside 0..max_rows-1, rows < 0
    """
    overlap = max_rows // 4 if overlap is None else overlap
    if max_rows < 1:
        raise ValueError(f"max_rows = {max_rows}: expected at least 1")
    if not 0 <= overlap < max_rows:
        raise ValueError(f"overlap = {overlap}: expected 0 to {max_rows - 1}")
    if rows < 0:
        raise ValueError(f"rows = {rows}: expected at least 0")
    if rows <= max_rows:
        return [(0, rows)]
    count = -(-(rows - overlap) // (max_rows - overlap))
    return [(k * (rows - max_rows) // (count - 1), k * (rows - max_rows) // (count - 1) + max_rows)
            for k in range(count)]


def window_owners(rows, windows):
    """The window that owns each row: where the row is farthest from a cut, the first of equals; int32 (rows,).

    A cut is an end of a window that is no end of the page. Training supervises a row only in the window that owns it,
    and inference takes its result from there.
    """
    owner, best = np.zeros(rows, np.int32), np.full(rows, -1, np.int64)
    for k, (begin, end) in enumerate(windows):
        place = np.arange(begin, end)
        left = place - begin if begin > 0 else np.full(end - begin, rows)
        right = end - 1 - place if end < rows else np.full(end - begin, rows)
        distance = np.minimum(left, right)
        better = distance > best[begin:end]
        owner[begin:end][better] = k
        best[begin:end][better] = distance[better]
    return owner


def window_id(page_id, k):
    """The id of window k of a page: an example's id; str."""
    return f"{page_id}#{k}"
