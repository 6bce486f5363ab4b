"""What metrics share: exact means, and F1 of counts averaged two ways."""
import math

from ..entities import F1


class MetricError(ValueError):
    """Inputs that a metric has no meaning for; the message names argument, value and rule."""


def mean(values) -> float | None:
    """Exactly summed mean, rounded once at the sum and once at the division; None of nothing."""
    values = list(values)
    return math.fsum(values) / len(values) if values else None


def equally_long(**lists) -> int:
    """The common length of the arguments; MetricError where they differ."""
    sizes = {name: len(value) for name, value in lists.items()}
    if len(dict.fromkeys(sizes.values())) > 1:
        raise MetricError(", ".join(f"{n} {name}" for name, n in sizes.items()) + ": expected equally many")
    return next(iter(sizes.values()))


def averages(counts) -> dict:
    """Macro and micro precision, recall and F1 of class → F1.

    macro : the mean of the classes' own shares, every class the same weight, also one without support
    micro : shares of the summed counts: 2 TP / (2 TP + FP + FN)
    """
    whole = F1(0, 0, 0)
    for one in counts.values():
        whole += one
    macro = {name: mean(getattr(one, name) for one in counts.values()) for name in ("precision", "recall", "f1")}
    return {"macro": macro, "micro": {name: getattr(whole, name) for name in ("precision", "recall", "f1")}}
