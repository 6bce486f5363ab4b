"""The quantile of split conformal sets."""
from fractions import Fraction
from math import ceil

import numpy as np

from ..below import ConformalSets, ReadoutError, Scores, ScoreType
from .split import CalibrationSplit, class_targets, identity_of


def fit_conformal(scores: Scores, labels, split: CalibrationSplit, *, coverage: str) -> ConformalSets:
    """ConformalSets that hold the right class at least `coverage` of the time on exchangeable data.

    The quantile is the k-th smallest 1 - p[y] with k = ceil((N + 1) * coverage), exactly; 1 (every class) where k > N.

    coverage : decimal text above 0, below 1
    """
    if scores.type is not ScoreType.SOFTMAX_PROBABILITY and not scores.exclusive:
        raise ReadoutError("scores.type", scores.type.value, "probabilities that sum to one")
    wanted = Fraction(coverage)
    if not 0 < wanted < 1:
        raise ReadoutError("coverage", coverage, "a decimal above 0, below 1")
    y = class_targets(labels, scores)
    identity_of(scores, split, "conformal", "none")  # as many items as examples
    misses = sorted((1.0 - scores.values.astype(np.float64)[np.arange(len(y)), y]).tolist())
    k = ceil((len(misses) + 1) * wanted)
    return ConformalSets(1.0 if k > len(misses) else misses[k - 1], coverage, split.revision)
