"""Answers of windows mapped back to their source; a start and an end in two windows are no answer."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..readout.errors import require
from ..readout.heads.answers import Answer, NullRule
from ..readout.heads.windows import answer_of_windows
from ..readout.spans import span_of_rows
from .windows import WindowRecord, admit_windows


@dataclass(frozen=True)
class SourceSpan:
    """window_id : where it was found · tokens : (first, last) of the source · characters : (sequence, start, end) ·
    score"""

    window_id: str
    tokens: tuple[int, int]
    characters: tuple[int, int, int]
    score: float


@dataclass(frozen=True)
class SourceAnswer:
    """span : None for no answer · null_score : what it was compared with, None without a rule · window_id"""

    span: SourceSpan | None
    null_score: float | None
    window_id: str


def span_between(start: tuple[WindowRecord, int], end: tuple[WindowRecord, int], score: float) -> SourceSpan:
    """The source span between two (window, row) boundaries: they must be of one window, in order, and content."""
    (window, first), (other, last) = start, end
    require(window.window_id == other.window_id and window.parent_release == other.parent_release, "answer.window",
            (window.window_id, other.window_id), "one window: scores of two windows were not made together, and no row "
            "saw both ends")
    for name, row in (("start", first), ("end", last)):
        require(0 <= row < len(window.rows) and window.content[row], f"answer.{name}", row,
                "a content row of the window")
    require(first <= last, "answer.rows", (first, last), "a first row that is not after the last")
    return SourceSpan(window.window_id, (int(window.token[first]), int(window.token[last])),
                      span_of_rows(window.rows, first, last), float(score))


def source_spans(records: Sequence[WindowRecord], spans) -> list[SourceSpan]:
    """Distinct spans of the source, best first, from (score, first, last) lists of the windows (`AnswerHead.best`).

    A span found in several windows stands once, with its best score, the first window's of equals; equal scores are in
    source order.
    """
    require(len(records) == len(spans), "spans", len(spans), f"{len(records)} lists, one for each window")
    given = {r.window_id: found for r, found in zip(records, spans, strict=True)}
    best = {}
    for record in admit_windows(records):
        for score, first, last in given[record.window_id]:
            span = span_between((record, first), (record, last), score)
            if span.tokens not in best or span.score > best[span.tokens].score:
                best[span.tokens] = span
    return sorted(best.values(), key=lambda s: (-s.score, s.tokens))


def source_answer(records: Sequence[WindowRecord], answers: Sequence[Answer], rule: NullRule | None = None
                  ) -> SourceAnswer:
    """The answer of a source from its windows' answers under one rule (`answer_of_windows`), in source characters."""
    require(len(records) == len(answers), "answers", len(answers), f"{len(records)}, one for each window")
    order = np.argsort([r.index for r in records], kind="stable")
    admit_windows(records)
    where, answer = answer_of_windows([answers[i] for i in order], rule)
    record = records[order[where]]
    span = None if answer.rows is None else span_between((record, answer.rows[0]), (record, answer.rows[1]),
                                                         answer.score)
    return SourceAnswer(span, answer.null_score, record.window_id)
