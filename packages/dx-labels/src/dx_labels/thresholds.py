"""The LocalFirst threshold: from which confidence on a field's values were right often enough."""
from dataclasses import dataclass
from fractions import Fraction

from .intervals import clopper_pearson
from .texts import share


@dataclass(frozen=True)
class Threshold:
    """A field's threshold and what it rests on.

    field : name
    share, least : what was asked for: the share of right values, and how many values must stand behind it
    value : the lowest confidence from which at least that share of at least that many values were right; None: none
    best : the lowest confidence that reaches the share whatever the number of values; None: none does
    right, count : right and all values from `value` on (from `best` on where value is None)
    reached : right / all right values, the recall; 0.0 without right values
    interval : Clopper-Pearson 95 % interval of right / count, or None
    pages : how many pages it was chosen on
    """
    field: str
    share: str
    least: int
    value: float | None
    best: float | None
    right: int
    count: int
    reached: float
    interval: tuple | None
    pages: int

    @property
    def supported(self):
        return self.value is not None

    def statement(self):
        """What a report says of it, with the pages it was chosen on; str."""
        where = f"chosen on these {self.pages} pages" if self.pages != 1 else "chosen on this one page"
        if self.interval:
            seen = (f"{self.right} of {self.count} values right, 95 % interval {self.interval[0]:.3f} to "
                    f"{self.interval[1]:.3f}")
        if self.supported:
            return f"{self.field}: accept from confidence {share(self.value)} on ({seen}; {where})"
        if self.best is None:
            return (f"{self.field}: no threshold: at no confidence were {self.share} of the values right "
                    f"({where})")
        return (f"{self.field}: no threshold: from {share(self.best)} on {seen}, but fewer than {self.least} values "
                f"do not support one ({where})")

    def to_json(self):
        interval = None if self.interval is None else list(self.interval)
        return {"field": self.field, "share": self.share, "least": self.least, "threshold": self.value,
                "best": self.best, "supported": self.supported, "right": self.right, "count": self.count,
                "recall": self.reached, "interval": interval, "pages": self.pages, "statement": self.statement()}


def choose_threshold(field, confidences, correct, *, share="0.99", least=5, pages=None):
    """The lowest confidence from which at least `share` of the values were exactly right.

    Parameters
    ----------
    field : str, its name
    confidences : floats, one for each value that the model gave (no NaN)
    correct : bools, whether that value was exactly right
    share : str, decimal; compared exactly
    least : int; a threshold needs so many values at or above it
    pages : int, pages the values come from; default: the number of values

    Returns
    -------
    Threshold. Values of one confidence are taken whole.

    Examples
    --------
    >>> t = choose_threshold("total", [0.1, 0.8, 0.9, 0.3, 1.0, 0.95], [0, 0, 1, 1, 1, 1], share="0.75")
    >>> t.value, t.right, t.count, t.reached
    (0.3, 4, 5, 1.0)
    """
    confidences, correct = [float(c) for c in confidences], [bool(c) for c in correct]
    if len(confidences) != len(correct):
        raise ValueError(f"{len(confidences)} confidences, {len(correct)} results: expected equally many")
    if any(c != c for c in confidences):
        raise ValueError(f"field {field!r}: a confidence is NaN")
    wanted = Fraction(share)
    if not 0 < wanted <= 1:
        raise ValueError(f"share = {share!r}: expected a decimal above 0, at most 1")
    order = sorted(range(len(correct)), key=lambda i: -confidences[i])
    all_right, right, value, best = correct.count(True), 0, None, None
    for place, i in enumerate(order):
        right += correct[i]
        last = place + 1 == len(order) or confidences[order[place + 1]] < confidences[i]
        if last and right >= wanted * (place + 1):
            best = (confidences[i], right, place + 1)
            if place + 1 >= least:
                value = best
    chosen = value or best
    seen_right, count = chosen[1:] if chosen else (0, 0)
    return Threshold(field, str(share), least, value and value[0], best and best[0], seen_right, count,
                     seen_right / all_right if all_right else 0.0,
                     clopper_pearson(seen_right, count) if count else None, len(correct) if pages is None else pages)
