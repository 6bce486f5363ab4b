"""Extractive question answering: two boundary scores for every row, the best admissible span, and no answer."""
from dataclasses import dataclass

import numpy as np

from ...below import best_spans, cross_entropy_backward, cross_entropy_forward
from ..errors import ReadoutError, require
from ..rows import RowTable
from ..spans import span_of_rows
from .base import IGNORED, Dropout, Linear, LocalLoss, f32, int32, mask8
from .tokens import gathered, scattered

LOGIT_CHANNELS = 2


@dataclass(frozen=True)
class NullRule:
    """No answer, by a declared row (its column, so pad on the side that leaves it in place; a padding row is refused):
    no answer when its score start + end exceeds the best span's by more than
    `threshold` (chosen on a development population, part of the release)."""

    row: int
    threshold: float
    revision: str

    def __post_init__(self):
        require(self.threshold - self.threshold == 0, "output.null.threshold", self.threshold, "a finite number")
        require(bool(self.revision), "output.null.revision", self.revision, "where the threshold was chosen")


@dataclass(frozen=True)
class AnswerabilityRule:
    """No answer, by a head of its own: an answer when its probability is at least `threshold`."""

    threshold: float
    revision: str

    def __post_init__(self):
        require(0 <= self.threshold <= 1, "output.answerable.threshold", self.threshold, "a probability")
        require(bool(self.revision), "output.answerable.revision", self.revision, "where the threshold was chosen")


@dataclass(frozen=True)
class Answer:
    """rows : (first, last) or None for no answer · score, span : of the best admissible span, None when there is none;
    kept also where the rule chose no answer · null_score : what it was compared with, None without a rule"""

    rows: tuple[int, int] | None
    score: float | None
    null_score: float | None = None
    span: tuple[int, int] | None = None

    def source(self, table: RowTable) -> tuple[int, int, int]:
        """(sequence, start, end) in characters."""
        require(self.rows is not None, "answer.rows", None, "an answer")
        return span_of_rows(table, *self.rows)


class AnswerHead:
    """(start, end) logits of every row from one linear map with two channels.

    Parameters
    ----------
    weight, bias : float32 (2, D), (2,): row 0 is the start, row 1 the end
    max_answer_length : rows that an answer may have, 1 or more
    no_answer : NullRule, AnswerabilityRule or None (every question has an answer)
    """

    kind = "extractive_qa"

    def __init__(self, weight, bias, max_answer_length: int, no_answer=None, dropout: float = 0.0):
        self.linear, self.dropout = Linear(weight, bias), Dropout(dropout)
        require(self.linear.outputs == LOGIT_CHANNELS, "head.weight.shape", weight.shape, "2 rows: start and end")
        require(isinstance(max_answer_length, int) and max_answer_length > 0, "output.max_answer_length",
                max_answer_length, "1 or more")
        self.max_answer_length, self.no_answer = max_answer_length, no_answer

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def forward(self, hidden, valid, *, training=False, factors=None) -> np.ndarray:
        """(B, S, 2) logits; zeros in rows that are not valid. factors: (N, D), valid rows in order."""
        rows, valid = gathered(hidden, valid)
        return scattered(self.linear.forward(self.dropout.apply(rows, training, factors)), valid)

    def _admit(self, context, shape):
        """Rows that may be a target: the context and the null row."""
        admit = mask8("context_mask", context, shape).copy()
        if isinstance(self.no_answer, NullRule):
            admit[:, self.no_answer.row] = 1
        return admit

    def loss(self, logits, targets, context) -> LocalLoss:
        """Half the sum of both boundaries' -log softmax over the admitted rows; the denominator counts examples.

        targets (B, 2): first and last row, or (-1, -1): not counted. A target outside of the admitted rows is refused,
        never clamped or ignored.
        """
        numerator, denominator, _ = self._run(logits, targets, context, None, 1.0, None)
        return LocalLoss(numerator, denominator)

    def _run(self, logits, targets, context, hidden, scale, denominator):
        logits = np.asarray(logits, f32)
        require(logits.ndim == 3 and logits.shape[2] == LOGIT_CHANNELS, "logits.shape", logits.shape, "(B, S, 2)")
        admit, targets = self._admit(context, logits.shape[:2]), int32("targets", targets, (len(logits), 2))
        for b, (s, e) in enumerate(targets.tolist()):
            if (s, e) == (IGNORED, IGNORED):
                continue
            for t in (s, e):
                if not (0 <= t < logits.shape[1] and admit[b, t]):
                    raise ReadoutError(f"targets[{b}]", (s, e), "rows of the context or the null row, or (-1, -1)")
            require(s <= e, f"targets[{b}]", (s, e), "a first row that is not after the last")
        counted = float(np.count_nonzero(targets[:, 0] >= 0))
        over, total, d = (counted if denominator is None else denominator), 0.0, np.zeros(logits.shape, f32)
        for channel in range(LOGIT_CHANNELS):
            z, t = np.ascontiguousarray(logits[:, :, channel]), np.ascontiguousarray(targets[:, channel])
            if hidden is None:
                part, _ = cross_entropy_forward(z, t, None, admit)
            else:
                own = np.empty(z.shape, f32)
                part, _ = cross_entropy_backward(z, t, None, admit, own, scale=0.5 * scale, denominator=over)
                d[:, :, channel] = own
            total = total + part
        return 0.5 * total, counted, d

    def backward(self, logits, targets, context, hidden, valid, *, scale=1.0, denominator=None, factors=None):
        """(dhidden (B, S, D), gradients of the parameters); a context row that is not valid is refused."""
        unseen = np.argwhere(np.asarray(context, bool) & ~np.asarray(valid, bool))
        require(not len(unseen), "context_mask", [tuple(p) for p in unseen[:3].tolist()], "rows that the model sees")
        if isinstance(self.no_answer, NullRule):
            padded = np.flatnonzero(~np.asarray(valid, bool)[:, self.no_answer.row])
            require(not len(padded), "output.null.row", self.no_answer.row,
                    f"a row that the model sees: it is padding in the examples {padded[:3].tolist()}")
        _, _, d = self._run(logits, targets, context, hidden, scale, denominator)
        x, mask = gathered(hidden, valid)
        dx, gradients = self.linear.backward(np.ascontiguousarray(d[mask]),
                                             x if factors is None else x * np.asarray(factors, f32))
        return scattered(Dropout.backward(dx, factors), mask), gradients

    def best(self, logits, context, most: int = 1) -> list[tuple[float, int, int]]:
        """The best admissible spans of one example: (score, first, last); logits (S, 2), context (S,) bool."""
        start, end = (np.ascontiguousarray(np.asarray(logits, f32)[:, i]) for i in range(LOGIT_CHANNELS))
        return admissible_spans(start, end, None, context, self.max_answer_length, most)

    def answer(self, logits, context, answerable: float | None = None) -> Answer:
        """The best span of one example, or no answer by the head's rule.

        Without any admissible span: no answer under a rule, a ReadoutError without one. answerable : the probability
        that an AnswerabilityRule asks for.
        """
        found = self.best(logits, context)
        rule = self.no_answer
        require((answerable is not None) == isinstance(rule, AnswerabilityRule), "answerable", answerable,
                "a probability exactly where the head has an answerability rule")
        require(found or rule is not None, "answer", None, "an admissible span: the head has no rule for no answer")
        best = found[0] if found else None
        if rule is None:
            return Answer(best[1:], best[0], None, best[1:])
        if isinstance(rule, AnswerabilityRule):
            null, refused = answerable, answerable < rule.threshold
        else:
            z = np.asarray(logits, np.float64)[rule.row]
            null = float(z[0] + z[1])
            refused = best is None or null - best[0] > rule.threshold
        if best is None or refused:
            return Answer(None, best[0] if best else None, null, best[1:] if best else None)
        return Answer(best[1:], best[0], null, best[1:])


def admissible_spans(start, end, pair, context, max_length: int, most: int = 1):
    """The best admissible spans, (score, first, last), best first (dx_kernels.best_spans)."""
    context = np.ascontiguousarray(np.asarray(context, bool), np.uint8)
    found, scores = np.zeros((most, 2), np.int32), np.zeros(most)
    count = best_spans(start, end, pair, context, found, scores, max_length=max_length)
    return [(float(scores[i]), int(found[i, 0]), int(found[i, 1])) for i in range(count)]


def best_valid_span(start, end, context_mask, max_answer_length: int) -> tuple[int, int, float]:
    """(first, last, score) of the best admissible span; ReadoutError "no admissible answer span" when there is none.

    Of equal scores the larger first row wins, then the larger last row.
    """
    start, end = (np.ascontiguousarray(x, f32) for x in (start, end))
    found = admissible_spans(start, end, None, context_mask, max_answer_length)
    require(found, "answer", None, "an admissible answer span: no admissible answer span")
    score, first, last = found[0]
    return first, last, score
