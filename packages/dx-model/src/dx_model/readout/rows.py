"""Identity of contextual rows: one table with separate masks, and the predicates and selectors read from it.

A model row can be visible but not poolable, poolable but not mapped to the source, mapped but not label-bearing. None
of these follows from another or from a shape, so each is its own array; what is derived is derived here, in one place.
"""
from dataclasses import dataclass

import numpy as np

from .errors import ReadoutError, require

NONE = -1  # in sequence, word_ids and offsets: the row has none


def _vector(name, values, length, dtype):
    array = np.asarray(values)
    require(array.ndim == 1 and (length is None or len(array) == length), f"rows.{name}.shape", array.shape,
            "one value a row" if length is None else f"({length},)")
    if dtype == np.bool_:
        require(array.dtype == np.bool_ or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()), f"rows.{name}",
                array.dtype.name if array.dtype.kind not in "iu" else array.tolist(), "booleans or 0 and 1")
    else:
        require(array.dtype.kind in "iu" or array.size == 0, f"rows.{name}", array.dtype.name, "whole numbers")
    fixed = np.array(array, dtype)
    fixed.setflags(write=False)
    return fixed


def normalize_absent_offsets(offsets, special=None):
    """(S, 2) int64 half-open offsets; (-1, -1) where a row has no source characters.

    None, and an interval of no characters such as the (0, 0) that tokenizers give inserted rows, are absent. With
    `special`, an inserted row has none whatever it says.
    """
    result = np.full((len(offsets), 2), NONE, np.int64)
    for s, offset in enumerate(offsets):
        if offset is None or (special is not None and special[s]):
            continue
        begin, end = (int(v) for v in offset)
        require(0 <= begin <= end or (begin, end) == (NONE, NONE), f"rows.offsets[{s}]", (begin, end),
                "a half-open interval 0 <= begin <= end, or None")
        if begin < end:
            result[s] = begin, end
    return result


def _or_none(values):
    return [NONE if v is None else v for v in values]


@dataclass(frozen=True, eq=False)
class RowTable:
    """The rows of one example, S of them, in the model's physical order.

    Attributes
    ----------
    attention : (S,) bool, the model sees the row (padding does not)
    special : (S,) bool, inserted as control state ([CLS], [SEP], padding)
    policy : (S,) bool, the readout may use the row; a visible prompt can be left out here and still be attended to
    sequence : (S,) int32, which source of a pair produced the row, -1 for inserted rows: alignment, not type_ids
    type_ids : (S,) int32, the checkpoint's learned segment input: model input, says nothing about the source
    word_ids : (S,) int32, source word of the row, restarting at 0 in every sequence; -1 for none
    offsets : (S, 2) int64, half-open characters [begin, end) of the row's source, (-1, -1) for none; or None when the
        tokenizer gave none at all: then everything that needs them is refused, never guessed from decoded text
    ids : (S,) int64 token ids, or None

    Build one with `row_table` or `from_encoding`, which check everything.
    """

    attention: np.ndarray
    special: np.ndarray
    policy: np.ndarray
    sequence: np.ndarray
    type_ids: np.ndarray
    word_ids: np.ndarray
    offsets: np.ndarray | None
    ids: np.ndarray | None = None

    def __len__(self):
        return len(self.attention)

    @property
    def valid(self) -> np.ndarray:
        """(S,) bool: the row is visible to the model."""
        return self.attention

    @property
    def content(self) -> np.ndarray:
        """(S,) bool: visible, not inserted, and admitted by the policy: what a pool may read."""
        return self.attention & ~self.special & self.policy

    def in_sequence(self, u: int) -> np.ndarray:
        """(S,) bool: visible rows of source sequence u."""
        return self.attention & (self.sequence == u)

    @property
    def source(self) -> np.ndarray:
        """(S,) bool: the row has source characters. Refused when the table has no offsets."""
        self.need_offsets("the source mask")
        return self.offsets[:, 0] != NONE

    def need_offsets(self, what: str) -> np.ndarray:
        """The offsets, or a ReadoutError that says what needs them."""
        if self.offsets is None:
            raise ReadoutError("rows.offsets", None, f"offsets of the tokenizer: {what} needs them and guesses none")
        return self.offsets


def row_table(attention, special, sequence=None, word_ids=None, offsets=None, *, type_ids=None, policy=None,
              ids=None) -> RowTable:
    """RowTable from lists or arrays of one value a row, checked.

    Parameters
    ----------
    attention, special, policy : booleans or 0 and 1; policy None admits every row
    sequence, word_ids : whole numbers, None or -1 for none; None: no row has one
    offsets : pairs of characters or None; None as a whole: the tokenizer gave no offsets
    type_ids, ids : whole numbers or None

    Raises
    ------
    ReadoutError
        A wrong length or kind of value; a word without a sequence; an inserted row that claims source characters.
    """
    attention = _vector("attention", attention, None, np.bool_)
    n = len(attention)
    special = _vector("special", special, n, np.bool_)
    policy = _vector("policy", np.ones(n, np.bool_) if policy is None else policy, n, np.bool_)
    sequence = _vector("sequence", [NONE] * n if sequence is None else _or_none(sequence), n, np.int32)
    type_ids = _vector("type_ids", [0] * n if type_ids is None else type_ids, n, np.int32)
    word_ids = _vector("word_ids", [NONE] * n if word_ids is None else _or_none(word_ids), n, np.int32)
    ids = None if ids is None else _vector("ids", ids, n, np.int64)
    for name, values in (("sequence", sequence), ("word_ids", word_ids)):
        for s in np.flatnonzero(values < NONE):
            raise ReadoutError(f"rows.{name}[{s}]", int(values[s]), "0 or more, or None")
    for s in np.flatnonzero((word_ids != NONE) & (sequence == NONE)):
        raise ReadoutError(f"rows.word_ids[{s}]", int(word_ids[s]), "None: the row belongs to no sequence")
    for s in np.flatnonzero(special & (sequence != NONE)):
        raise ReadoutError(f"rows.sequence[{s}]", int(sequence[s]), "None: the row is an inserted one")
    if offsets is not None:
        require(len(offsets) == n, "rows.offsets.shape", (len(offsets), 2), f"({n}, 2)")
        offsets = normalize_absent_offsets(offsets)
        for s in np.flatnonzero(special & (offsets[:, 0] != NONE)):
            raise ReadoutError(f"rows.offsets[{s}]", tuple(offsets[s].tolist()), "None: the row is an inserted one")
        offsets.setflags(write=False)
    return RowTable(attention, special, policy, sequence, type_ids, word_ids, offsets, ids)


_ENCODING = {"attention": ("attention_mask",), "special": ("special_tokens_mask",), "sequence": ("sequence_ids",),
             "word_ids": ("word_ids",), "offsets": ("offset_mapping", "offsets"),
             "type_ids": ("token_type_ids", "type_ids"), "ids": ("input_ids", "ids")}
_NEEDED = ("attention", "special", "sequence", "word_ids", "offsets")


def from_encoding(encoding, *, policy=None) -> RowTable:
    """RowTable of one tokenizer encoding: a mapping, or an object with the fast tokenizers' attributes.

    Raises
    ------
    ReadoutError
        The encoding has no attention mask, special mask, sequence ids, word ids or offsets: a tokenizer without
        alignment cannot feed a readout that needs it.
    """
    found = {}
    for name, keys in _ENCODING.items():
        for key in keys:
            value = _entry(encoding, key)
            if value is not None:
                found[name] = value
                break
        else:
            require(name not in _NEEDED, f"rows.{name}", None, f"{' or '.join(keys)} of the tokenizer's encoding")
    special = found["special"]
    found["offsets"] = normalize_absent_offsets(found["offsets"], special)
    found["sequence"] = [NONE if special[s] else v for s, v in enumerate(found["sequence"])]
    return row_table(policy=policy, **found)


def _entry(encoding, key):
    if hasattr(encoding, "keys") and key in encoding:
        return encoding[key]
    value = getattr(encoding, key, None)
    return value() if callable(value) else value


def admit_content_mask(attention, content) -> np.ndarray:
    """A content mask made elsewhere, as bool of the same shape; refused when it selects an unseen row."""
    attention, content = np.asarray(attention), np.asarray(content)
    for name, mask in (("attention", attention), ("content", content)):
        require(mask.dtype == np.bool_, f"rows.{name}.dtype", mask.dtype.name, "bool")
    require(attention.shape == content.shape, "rows.content.shape", content.shape, str(attention.shape))
    padding = np.argwhere(content & ~attention)
    require(not len(padding), "rows.content", [tuple(p) for p in padding[:3].tolist()],
            "rows that the model sees: these are padding")
    return content


def boundary_index(mask, side: str) -> int:
    """Physical index of the first or last row of a (S,) bool mask.

    By the mask, never by counting: sum(mask) - 1 is right only for rows that begin at 0 and have no holes.

    Raises
    ------
    ReadoutError
        No row is selected; side is neither "first" nor "last".
    """
    require(side in ("first", "last"), "side", side, "first or last")
    rows = np.flatnonzero(np.asarray(mask))
    require(len(rows), "rows.selected", 0, "at least one row")
    return int(rows[0] if side == "first" else rows[-1])


def prompt_policy(attention, prompt_rows: int) -> np.ndarray:
    """(S,) bool policy that leaves out the first `prompt_rows` visible rows, wherever padding stands."""
    attention = np.asarray(attention, np.bool_)
    visible = np.flatnonzero(attention)
    require(0 <= prompt_rows <= len(visible), "prompt_rows", prompt_rows, f"0..{len(visible)} visible rows")
    policy = np.ones(len(attention), np.bool_)
    policy[visible[:prompt_rows]] = False
    return policy


def first_piece_mask(table: RowTable) -> np.ndarray:
    """(S,) bool: content rows that begin a source word.

    A row begins a word when it is content, has a sequence and a word, and the row before it is not content with the
    same (sequence, word). The memory of the row before is lost at every row that is not content (inserted, padding, or
    left out by the policy) and at every row without a word, so a word whose first piece is left out begins at its
    first piece that is not.
    """
    mapped = table.content & (table.sequence != NONE) & (table.word_ids != NONE)
    first = mapped.copy()
    same = (table.sequence[1:] == table.sequence[:-1]) & (table.word_ids[1:] == table.word_ids[:-1])
    first[1:] &= ~(mapped[:-1] & same)
    return first
