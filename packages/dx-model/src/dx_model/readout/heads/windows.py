"""Windows over a source that is longer than the model reads, and the answer among them."""
from dataclasses import dataclass

from ..errors import require
from .answers import Answer, NullRule


@dataclass(frozen=True)
class RowWindows:
    """Windows of `window` rows, each sharing `overlap` rows with the one before; the step is window - overlap.

    Both names are stated because "stride" is used for either.
    """

    window: int
    overlap: int

    def __post_init__(self):
        require(isinstance(self.window, int) and self.window >= 1, "windows.window", self.window, "1 or more rows")
        require(isinstance(self.overlap, int) and 0 <= self.overlap < self.window, "windows.overlap", self.overlap,
                f"0..{self.window - 1}: less than the window of {self.window}, so that the step is above 0")

    @property
    def step(self) -> int:
        return self.window - self.overlap

    def cut(self, rows: int) -> list[tuple[int, int]]:
        """Half-open windows [begin, end) that cover 0..rows - 1: each begins a step after the one before, the last ends
        with the rows; no rows give no window."""
        require(isinstance(rows, int) and rows >= 0, "rows", rows, "0 or more")
        found, begin = [], 0
        while rows and (not found or found[-1][1] < rows):
            found.append((begin, min(begin + self.window, rows)))
            begin += self.step
        return found

    def report(self) -> dict:
        return {"window": self.window, "overlap": self.overlap, "step": self.step}


def answer_of_windows(answers, rule: NullRule | None = None) -> tuple[int, Answer]:
    """(window, answer) over the windows of one question, each Answer made by a head whose rule is None or `rule`.

    Without a rule: the answer with the best score, the first window of equal ones. With one: no answer when the lowest
    null score of all windows exceeds the best span's score by more than the rule's threshold; the window given is then
    that of the lowest null score. A window without the answer says "null" loudly and must not win by that.
    """
    answers = list(answers)
    require(answers, "answers", 0, "at least one window")
    scored = [(a.score, -i) for i, a in enumerate(answers) if a.score is not None]
    best = -max(scored)[1] if scored else None
    if rule is None:
        require(best is not None and answers[best].rows is not None, "answers", None, "an admissible span in a window")
        return best, answers[best]
    nulls = [(a.null_score, i) for i, a in enumerate(answers)]
    require(all(n is not None for n, _ in nulls), "answers", None, "a null score from every window")
    null, where = min(nulls)
    if best is None or null - answers[best].score > rule.threshold:
        return where, Answer(None, None if best is None else answers[best].score, null)
    require(answers[best].span is not None, "answers", best, "the window's best span")
    return best, Answer(answers[best].span, answers[best].score, null, answers[best].span)
