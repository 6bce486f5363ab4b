"""How calibrated scores are: proper scoring rules, and binned reliability with its binning on record."""
import math
from dataclasses import dataclass

import numpy as np

from ..below import ReadoutError, log64

STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class CalibrationBin:
    """One bin of a reliability diagram. low, high : smallest and largest confidence in it · count, right · confidence :
    their mean · frequency : right / count"""

    low: float
    high: float
    count: int
    right: int
    confidence: float

    @property
    def frequency(self) -> float:
        return self.right / self.count


def _checked(p, right):
    p, right = np.asarray(p, np.float64), np.asarray(right)
    if p.ndim != 1 or right.shape != p.shape or not np.isin(right, (0, 1)).all():
        raise ReadoutError("labels", right.shape, f"one 0 or 1 for each of {p.shape} confidences")
    if not ((p >= 0) & (p <= 1)).all():
        raise ReadoutError("confidences", float(p[~((p >= 0) & (p <= 1))][0]), "probabilities")
    return p.tolist(), [int(r) for r in right]


def reliability(p, right, *, bins: int = 10, strategy: str = "uniform") -> list[CalibrationBin]:
    """The bins that hold something, ascending.

    uniform : bin min(floor(p * bins), bins - 1), so p = 1 is in the last
    quantile : the i-th smallest of N goes to bin floor(i * bins / N); equal confidences go together, to the bin of the
        first of them
    """
    p, right = _checked(p, right)
    if not (isinstance(bins, int) and bins >= 1):
        raise ReadoutError("bins", bins, "a whole number >= 1")
    if strategy not in STRATEGIES:
        raise ReadoutError("strategy", strategy, " or ".join(STRATEGIES))
    order = sorted(range(len(p)), key=lambda i: p[i])
    groups, before = {}, None
    for place, i in enumerate(order):
        if strategy == "uniform":
            at = min(math.floor(p[i] * bins), bins - 1)
        elif before is not None and p[before[0]] == p[i]:
            at = before[1]
        else:
            at = place * bins // len(p)
        groups.setdefault(at, []).append(i)
        before = (i, at)
    return [CalibrationBin(p[m[0]], p[m[-1]], len(m), [right[i] for i in m].count(1),
                           math.fsum(p[i] for i in m) / len(m)) for _, m in sorted(groups.items())]


def calibration_error(p, right, *, bins: int = 10, strategy: str = "uniform") -> float:
    """Expected calibration error: sum over bins of count / N * |mean confidence - frequency|; 0.0 without items.

    Against the mean confidence of a bin, never its centre. It depends on the binning, so state it with the figure.
    """
    found = reliability(p, right, bins=bins, strategy=strategy)
    return math.fsum(b.count * abs(b.confidence - b.frequency) for b in found) / max(len(p), 1)


def positive_class_error(p, labels, **binning) -> float:
    """calibration_error of the probability of the positive class against how often it is positive."""
    return calibration_error(p, labels, **binning)


def top_class_error(p, labels, **binning) -> float:
    """calibration_error of the chosen class's probability against how often it is right; p (N, C), or (N,) of the
    positive of two classes (0.5 chooses class 0)."""
    p, y = np.asarray(p, np.float64), np.asarray(labels)
    if p.ndim == 1:
        p = np.stack([1.0 - p, p], axis=1)
    chosen = np.argmax(p, axis=1)
    return calibration_error(p[np.arange(len(p)), chosen], (chosen == y).astype(int), **binning)


def negative_log_likelihood(p, labels) -> float:
    """Mean -log64 p[y] of probabilities (N, C), exactly summed; infinite where a right class has probability 0."""
    p, y = np.asarray(p, np.float64), np.asarray(labels)
    taken = p[np.arange(len(y)), y]
    if (taken == 0).any():
        return math.inf
    return -math.fsum(log64(np.ascontiguousarray(taken)).tolist()) / len(y)


def brier_score(p, labels) -> float:
    """Mean over items of the sum over classes of (p - onehot)^2 of probabilities (N, C), exactly summed."""
    p, y = np.asarray(p, np.float64), np.asarray(labels)
    away = p - (np.arange(p.shape[1])[None, :] == y[:, None])
    return math.fsum((away * away).reshape(-1).tolist()) / len(y)
