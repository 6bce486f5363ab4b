"""Source words that own several model rows: labels to rows, rows back to words, rows pooled into words."""
from dataclasses import dataclass

import numpy as np

from .errors import ReadoutError, require
from .pooling import MODES
from .rows import NONE, RowTable, first_piece_mask
from .selection import Selection, widen

POLICIES = ("first", "all", "aggregate")
REDUCTIONS = ("first", "vote")


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


@dataclass(frozen=True)
class WordLabel:
    """One word's label after reduction. start, end: source characters of the word's rows, None without offsets."""

    sequence: int
    word: int
    label: int
    score: float
    start: int | None
    end: int | None


def reduce_pieces(table: RowTable, labels, scores, how: str = "first") -> list[WordLabel]:
    """One label and one score a source word, from the labels and scores of its rows.

    Parameters
    ----------
    labels : (S,) whole numbers, the predicted label of each row
    scores : (S,) the score of that label
    how : "first": label and score of the first piece; "vote": the label of most pieces, of equally many the one that
        occurs first; its score is the smallest among the pieces that voted for it

    Grouping is by word first, whatever the labels say: four pieces labelled B-x are one word, not four values.
    """
    require(how in REDUCTIONS, "pieces.reduction", how, " or ".join(REDUCTIONS))
    labels, scores = np.asarray(labels), np.asarray(scores)
    for name, values in (("labels", labels), ("scores", scores)):
        require(values.shape == (len(table),), name, values.shape, f"({len(table)},)")
    words, found = words_of_rows(table), []
    for k in range(len(words)):
        own = words.pieces[words.starts[k]:words.starts[k + 1]]
        chosen = own[:1]
        if how == "vote":
            kinds, at, votes = np.unique(labels[own], return_index=True, return_counts=True)
            best = min(range(len(kinds)), key=lambda i: (-votes[i], at[i]))
            chosen = own[labels[own] == kinds[best]]
        start = end = None
        if table.offsets is not None:
            mapped = own[table.offsets[own, 0] != NONE]
            if len(mapped):
                start, end = int(table.offsets[mapped[0], 0]), int(table.offsets[mapped[-1], 1])
        found.append(WordLabel(int(words.sequence[k]), int(words.word_ids[k]), int(labels[chosen[0]]),
                               float(scores[chosen].min()), start, end))
    return found


def word_spans(words: list[WordLabel], begin, inside) -> list[tuple[str, int, int, int, float]]:
    """(class, sequence, start, end, score) of every run: a begin label and the words behind it with its inside label.

    Parameters
    ----------
    begin : mapping label → class of labels that begin a run; inside : mapping label → class of labels that go on
        with one. An inside label without a run of its class before it begins one.

    The characters are the source's from the first word's start to the last one's end; the score is the smallest of the
    words'.
    """
    runs, previous = [], None
    for word in words:
        kind = begin.get(word.label, inside.get(word.label))
        if kind is not None and word.start is None:
            raise ReadoutError("rows.offsets", None, "offsets of the tokenizer: spans are source characters")
        going_on = kind is not None and word.label in inside and previous == (kind, word.sequence)
        if going_on:
            label, sequence, start, _, score = runs[-1]
            runs[-1] = (label, sequence, start, word.end, min(score, word.score))
        elif kind is not None:
            runs.append((kind, word.sequence, word.start, word.end, word.score))
        previous = None if kind is None else (kind, word.sequence)
    return runs
