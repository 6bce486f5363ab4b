"""Source words that own several model rows: labels to rows, and rows pooled into words; heads/grouping.py goes back."""
from dataclasses import dataclass

import numpy as np

from .errors import require
from .pooling import MODES
from .rows import NONE, RowTable, first_piece_mask
from .selection import Selection, widen

POLICIES = ("first", "all", "aggregate")


@dataclass(frozen=True, eq=False)
class Words:
    """The source words of a row table, in row order: word k owns the rows pieces[starts[k]:starts[k + 1]].

    Attributes
    ----------
    sequence, word_ids : (words,) whose word it is
    pieces : (listed,) int32 rows, ascending; with starts, the segments that pools and `aggregate` read
    starts : (words + 1,) int64
    """

    sequence: np.ndarray
    word_ids: np.ndarray
    pieces: np.ndarray
    starts: np.ndarray

    def __len__(self):
        return len(self.word_ids)

    @property
    def counts(self) -> np.ndarray:
        """(words,) pieces of each word."""
        return self.starts[1:] - self.starts[:-1]

    def rows(self, k: int) -> list[int]:
        """The rows of word k, ascending."""
        return self.pieces[self.starts[k]:self.starts[k + 1]].tolist()


def words_of_rows(table: RowTable) -> Words:
    """Words of the content rows that have one. A word begins where first_piece_mask says."""
    first = first_piece_mask(table)
    mapped = table.content & (table.sequence != NONE) & (table.word_ids != NONE)
    pieces, begins = np.flatnonzero(mapped), np.flatnonzero(first)
    starts = np.append(np.searchsorted(pieces, begins), len(pieces)).astype(np.int64)
    return Words(table.sequence[begins], table.word_ids[begins], pieces.astype(np.int32), starts)


def pool_words(hidden, words: Words, mode: str = "mean") -> np.ndarray:
    """(words, D) float32: the rows of each word pooled into one, the "aggregate" policy.

    Parameters
    ----------
    hidden : (S, D) float32 or float16 rows of the table's example
    mode : "first", "last", "mean", "mean_sqrt_length", "max" or "position_weighted_mean", as dx_model.readout.Pooling
    """
    x = widen(hidden)
    last = int(words.pieces[-1]) if len(words.pieces) else -1
    require(x.ndim == 2 and last < len(x), "hidden.shape", x.shape, f"(S, D) with S > {last}")
    require(mode in MODES and not MODES[mode]().shapes(1) and mode != "weighted_mean", "readout.modes", mode,
            "a mode without parameters or weights")
    selected = Selection((1, len(x)), words.pieces, words.starts, np.arange(len(words)), np.arange(0))
    return MODES[mode]().forward(x, selected, {}, None)[0]


def _labels(words, labels):
    labels = np.asarray(labels)
    require(labels.dtype.kind in "iu" and labels.shape == (len(words),), "labels",
            f"{labels.dtype.name} {labels.shape}", f"whole numbers, one for each of the {len(words)} words")
    return labels


def expand_labels(table: RowTable, labels, policy: str = "first", *, inside=None):
    """(targets (S,) int32, weights (S,) float32): word labels as targets of rows, -1 and 0 where a row has none.

    Parameters
    ----------
    labels : one whole number a word of words_of_rows(table); -1 for an unlabelled word
    policy : "first": the first piece bears the label, one loss term a word; "all": every piece does, each with weight
        1 / pieces of its word, so that a long word counts once (weights of 1 count it once a piece). "aggregate" has no
        row targets: pool the pieces (`words_of_rows` gives the segments) and train on words
    inside : for "all" under a tagging scheme, label → label of the word's later pieces (B-x → I-x); None copies

    Raises
    ------
    ReadoutError
        Labels that do not fit the words; a policy without row targets.
    """
    words = words_of_rows(table)
    labels = _labels(words, labels)
    require(policy in ("first", "all"), "pieces.policy", policy, "first or all: aggregate has targets of words")
    targets, weights = np.full(len(table), -1, np.int32), np.zeros(len(table), np.float32)
    for k, label in enumerate(labels.tolist()):
        if label < 0:
            continue
        own = words.pieces[words.starts[k]:words.starts[k + 1]]
        targets[own[0]], weights[own[0]] = label, 1
        if policy == "all":
            targets[own[1:]] = label if inside is None else inside.get(label, label)
            weights[own] = np.float32(1) / np.float32(len(own))
    return targets, weights
