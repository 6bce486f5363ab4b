"""Source characters to rows and back: half-open offsets, inside the declared sequence only."""
import numpy as np

from .errors import ReadoutError, require
from .rows import NONE, RowTable


def rows_overlapping_span(table: RowTable, sequence: int, start: int, end: int) -> np.ndarray:
    """int64 rows of `sequence`, ascending, whose characters meet [start, end): begin < end and stop > start.

    Rows that only touch at a border do not overlap; rows of another sequence never count, whatever their offsets say.
    Visible or not is not asked here.
    """
    offsets = table.need_offsets("overlap with a span")
    require(0 <= start < end, "span", (start, end), "0 <= start < end")
    meets = (table.sequence == sequence) & (offsets[:, 0] != NONE)
    return np.flatnonzero(meets & (offsets[:, 1] > start) & (offsets[:, 0] < end))


def span_target(table: RowTable, sequence: int, start: int, end: int, *, truncated: str = "null", null_row: int = 0):
    """(first row, last row) of an answer [start, end) in characters of `sequence`.

    An answer that the window does not hold whole has no clipped target: the surviving border would be a false label.
    It is whole when the window's visible rows of the sequence reach from start to end and every row that meets it is
    visible.

    Parameters
    ----------
    truncated : "null" gives (null_row, null_row), the declared no-answer target; "drop" gives None: leave the window
        out of training

    Raises
    ------
    ReadoutError
        No offsets; an empty span; null_row is no visible row.
    """
    require(truncated in ("null", "drop"), "truncated", truncated, "null or drop")
    rows = rows_overlapping_span(table, sequence, start, end)
    window = np.flatnonzero(table.in_sequence(sequence) & table.source)
    whole = len(rows) and table.attention[rows].all() and (
        table.offsets[window, 0].min() <= start and table.offsets[window, 1].max() >= end)
    if whole:
        return int(rows[0]), int(rows[-1])
    if truncated == "drop":
        return None
    require(0 <= null_row < len(table) and table.attention[null_row], "null_row", null_row, "a visible row")
    return null_row, null_row


def span_of_rows(table: RowTable, first: int, last: int) -> tuple[int, int, int]:
    """(sequence, start, end): the source characters from row `first` to row `last`.

    Raises
    ------
    ReadoutError
        A row without source characters or of another sequence than the other; last before first.
    """
    offsets = table.need_offsets("a span of rows")
    require(0 <= first <= last < len(table), "span of rows", (first, last), f"0 <= first <= last < {len(table)}")
    for row in (first, last):
        if offsets[row, 0] == NONE:
            raise ReadoutError("span of rows", (first, last), f"source rows: row {row} has no characters")
    require(table.sequence[first] == table.sequence[last], "span of rows", (first, last), "rows of one sequence")
    return int(table.sequence[first]), int(offsets[first, 0]), int(offsets[last, 1])
