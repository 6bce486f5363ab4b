"""Cross-encoders: the pair grammar, its length budget, and scores that keep their type and their order."""
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from .errors import ReadoutError, require
from .interaction import TRUNCATIONS, CrossEncoderRelease, record_digest
from .rows import RowTable, row_table
from .scores import Scores, ScoreType, activate


@dataclass(frozen=True)
class Pair:
    """A rendered pair: `table` its rows (token ids in table.ids), and how many tokens of each side were left out."""

    table: RowTable
    query_left_out: int
    document_left_out: int


@dataclass(frozen=True)
class PairTemplate:
    """[first] query [separator] document [separator] within max_length rows.

    truncation : which side gives way when both do not fit: only_first (the query), only_second (the document),
    longest_first (the longer one token by token, the document when they are equal) or refuse. Tokens go from the end.
    long_documents : "truncate", or "windows": the document in windows that overlap by `overlap` tokens, each a pair of
    its own, their scores reduced by `aggregate` (max, or first)
    """

    first: int
    separator: int
    max_length: int
    truncation: str = "only_second"
    long_documents: str = "truncate"
    overlap: int = 0
    aggregate: str = "max"

    def __post_init__(self):
        require(self.truncation in TRUNCATIONS, "template.truncation", self.truncation, ", ".join(TRUNCATIONS))
        require(self.long_documents in ("truncate", "windows"), "template.long_documents", self.long_documents,
                "truncate or windows")
        require(self.aggregate in ("max", "first"), "template.aggregate", self.aggregate, "max or first")
        require(self.max_length >= 4, "template.max_length", self.max_length, "at least 4 rows")
        require(self.overlap >= 0, "template.overlap", self.overlap, "0 or more tokens")

    def digest(self) -> str:
        """SHA-256 (hex): the template's identity."""
        return record_digest(asdict(self))

    def render(self, query: Sequence[int], document: Sequence[int]) -> Pair:
        """One pair within the budget. ReadoutError: an empty side, or one that truncation would leave without a token,
        or a pair that does not fit under "refuse"."""
        q, d = len(query), len(document)
        require(q > 0, "pair.query", q, "at least one token")
        require(d > 0, "pair.document", d, "at least one token")
        keep_q, keep_d = self._shares(q, d)
        for name, keep in (("query", keep_q), ("document", keep_d)):
            require(keep > 0, f"pair.{name}", keep, f"a token left of it: {q} and {d} tokens do not fit into "
                    f"{self.max_length} rows under {self.truncation}")
        return Pair(self._table(query[:keep_q], document[:keep_d]), q - keep_q, d - keep_d)

    def _shares(self, q, d):
        room = self.max_length - 3
        over = max(0, q + d - room)
        if over == 0:
            return q, d
        if self.truncation == "only_second":
            return q, d - over
        if self.truncation == "only_first":
            return q - over, d
        if self.truncation == "longest_first":
            gap = min(over, abs(q - d))  # down to equal lengths first, then in turns, the document first
            q, d = (q - gap, d) if q > d else (q, d - gap)
            rest = over - gap
            return q - rest // 2, d - (rest - rest // 2)
        raise ReadoutError("pair.length", q + d + 3, f"at most {self.max_length} rows: truncation is refused")

    def _table(self, query, document):
        ids = [self.first, *query, self.separator, *document, self.separator]
        q, d = len(query), len(document)
        special = [1, *[0] * q, 1, *[0] * d, 1]
        sequence = [None, *[0] * q, None, *[1] * d, None]
        return row_table([1] * len(ids), special, sequence, type_ids=[0] * (q + 2) + [1] * (d + 1), ids=ids)

    def windows(self, query: Sequence[int], document: Sequence[int]) -> list[Pair]:
        """The pairs that stand for one document: one under "truncate", otherwise windows that cover all of it."""
        room = self.max_length - 3 - len(query)
        if self.long_documents == "truncate" or len(document) <= room:
            return [self.render(query, document)]
        require(room > self.overlap, "template.overlap", self.overlap,
                f"less than the {max(room, 0)} tokens that the query leaves a window")
        step, cuts = room - self.overlap, [0]
        while cuts[-1] + room < len(document):
            cuts.append(cuts[-1] + step)
        return [self.render(query, document[at:at + room]) for at in cuts]


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of one query with documents, in the caller's order.

    ids : stable document ids · scores : Scores of the cross-encoder's release, values (documents,), or (documents,
    outputs) with the outputs' names as axis
    """

    ids: tuple
    scores: Scores


class CrossEncoder:
    """Scores pairs that are encoded jointly.

    Parameters
    ----------
    score : callable (RowTable) → float32 (classes,), the head's raw output for one rendered pair: encoder, readout and
        head together
    template : PairTemplate
    release : CrossEncoderRelease, admitted here; its activation is the one applied
    outputs : names of the head's outputs in order, or None for one output

    There is no call that encodes a document alone: its rows under one query are not those under another.
    """

    def __init__(self, score: Callable[[RowTable], np.ndarray], template: PairTemplate, release: CrossEncoderRelease,
                 outputs: Sequence[str] | None = None):
        release.admit()
        require(release.pair_template_hash == template.digest(), "interaction.pair_template_hash",
                release.pair_template_hash, f"{template.digest()}, the template's")
        require(release.pair_truncation_policy == template.truncation, "interaction.pair_truncation_policy",
                release.pair_truncation_policy, f"{template.truncation}, the template's")
        self._score, self.template, self.release = score, template, release
        self.outputs = None if outputs is None else tuple(outputs)

    def score_pairs(self, query: Sequence[int], documents: Sequence[Sequence[int]], ids: Sequence) -> PairScores:
        """Scores of one query with documents. Pairs run longest first; results come back by their ids' places.

        query, documents : token ids · ids : a stable id a document, all different
        """
        require(len(ids) == len(documents) == len(dict.fromkeys(ids)), "ids", list(ids),
                f"{len(documents)} different ids, one a document")
        pairs = [(place, pair) for place, document in enumerate(documents)
                 for pair in self.template.windows(query, document)]
        schedule = sorted(range(len(pairs)), key=lambda i: (-len(pairs[i][1].table), i))
        raw: list = [None] * len(pairs)
        for i in schedule:  # the order of work is a schedule, the place of a result is not
            raw[i] = np.asarray(self._score(pairs[i][1].table), np.float32).reshape(-1)
            require(len(raw[i]) == len(self.outputs or "1"), "head.outputs", len(raw[i]), f"{len(self.outputs or '1')}")
        found: list = [None] * len(documents)
        for (place, _), value in zip(pairs, raw):
            found[place] = value if found[place] is None else self._reduce(found[place], value)
        values = np.array(found, np.float32).reshape(len(documents), len(self.outputs or "1"))
        values = values[:, 0] if self.outputs is None else values
        logits = Scores(values, ScoreType.LOGIT, self.release.digest(), self.outputs)
        return PairScores(tuple(ids), activate(logits, self.release.activation))

    def _reduce(self, so_far, value):
        """Scores of a document's windows, before the activation; a class takes the window of its largest logit."""
        if self.template.aggregate == "first":
            return so_far
        require(not (np.isnan(so_far).any() or np.isnan(value).any()), "head.outputs", "NaN", "numbers")
        return np.where(value > so_far, value, so_far)
