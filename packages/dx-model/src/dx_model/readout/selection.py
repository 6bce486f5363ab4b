"""What every pool shares: the rows a batch's masks select, number formats at its borders, and what no rows mean."""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..below import ieee_mode, list_rows
from .errors import ReadoutError, require
from .rows import admit_content_mask

FORMATS = ("float32", "float16", "bfloat16")
EMPTY = ("reject", "learned", "special_row", "zero")


def widen(values, name: str = "hidden", dtype: str | None = None) -> np.ndarray:
    """C-contiguous float32 array of float32 or float16 values, or of bfloat16 bits in uint16: exact.

    Parameters
    ----------
    dtype : "bfloat16" says that a uint16 array holds bfloat16 bits; None takes the array's own

    Raises
    ------
    ReadoutError
        Any other dtype, binary64 among them: nothing is rounded on the way in.
    """
    values = np.asarray(values)
    if values.dtype == np.float32 and dtype is None:
        return np.ascontiguousarray(values)
    if dtype == "bfloat16" and values.dtype == np.uint16:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    require(values.dtype in (np.float32, np.float16) and dtype in (None, values.dtype.name), f"{name}.dtype",
            values.dtype.name if dtype is None else (values.dtype.name, dtype),
            "float32, float16, or bfloat16 as uint16 bits")
    return np.ascontiguousarray(values, np.float32)


def narrow(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values in the output format, to nearest, ties to even: float32, float16, or bfloat16 as uint16 bits."""
    require(dtype in FORMATS, "output_dtype", dtype, " or ".join(FORMATS))
    if dtype == "float32":
        return values
    if dtype == "bfloat16":
        bits = values.view(np.uint32)
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)
    with np.errstate(over="ignore"), ieee_mode():
        return values.astype(dtype)


class Selection(NamedTuple):
    """The selected rows of a batch (B, S), gathered in order.

    Attributes
    ----------
    shape : (B, S)
    rows : (listed,) int32, row b * S + s of every selected (b, s), ascending
    starts : (kept + 1,) int64, borders in rows of the examples that have some
    kept : (kept,) examples that have selected rows
    empty : (B - kept,) examples that have none
    """

    shape: tuple[int, int]
    rows: np.ndarray
    starts: np.ndarray
    kept: np.ndarray
    empty: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """(kept,) selected rows of each kept example, at least 1."""
        return self.starts[1:] - self.starts[:-1]

    def ranks(self) -> np.ndarray:
        """(listed,) 0 for an example's first selected row, 1 for the next: positions that no padding moves."""
        return np.arange(len(self.rows)) - np.repeat(self.starts[:-1], self.counts)


def select_rows(mask) -> Selection:
    """Selection of a (B, S) bool mask."""
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.ndim != 2:
        raise ReadoutError("mask", f"{mask.dtype.name} {mask.shape}", "bool (B, S)")
    rows, borders = np.empty(mask.size, np.int32), np.empty(len(mask) + 1, np.int64)
    listed = list_rows(np.ascontiguousarray(mask).view(np.uint8), rows, borders)
    filled = borders[1:] != borders[:-1]
    kept = np.flatnonzero(filled)
    if len(kept) == len(mask):
        return Selection(mask.shape, rows[:listed], borders, kept, kept[:0])
    starts = np.append(borders[kept], np.int64(listed))
    return Selection(mask.shape, rows[:listed], starts, kept, np.flatnonzero(~filled))


@dataclass(frozen=True)
class EmptyRows:
    """What an example without selected rows becomes.

    Attributes
    ----------
    policy : "reject" (the default everywhere) refuses it: preprocessing has drifted; "learned" gives the trained vector
        `empty.vector` of the pool's width; "special_row" pools the rows of the declared special mask instead, which
        the training must have done too; "zero" gives zeros, finite and dangerous when accidental
    """

    policy: str = "reject"

    def __post_init__(self):
        require(self.policy in EMPTY, "readout.empty", self.policy, ", ".join(EMPTY))

    def select(self, attention, mask, special=None) -> Selection:
        """Selection of a batch after the policy. attention may be None; special (B, S): the declared rows."""
        mask = np.asarray(mask)
        if attention is not None:
            admit_content_mask(attention, mask)
        if self.policy == "special_row":
            require(special is not None, "special", None, "a (B, S) mask of the declared special rows")
            special = np.asarray(special)
            if attention is not None:
                admit_content_mask(attention, special)
            require(special.dtype == np.bool_ and special.shape == mask.shape, "special.shape", special.shape,
                    f"bool {mask.shape}")
            mask = np.where(mask.any(1)[:, None], mask, special)
        selected = select_rows(mask)
        if len(selected.empty) and self.policy in ("reject", "special_row"):
            raise ReadoutError("rows.selected", {"examples": selected.empty.tolist()}, "at least one row an example")
        return selected
