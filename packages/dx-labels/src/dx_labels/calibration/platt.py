"""Platt's sigmoid of one score: slope and shift by regularised maximum likelihood."""
import math

import numpy as np

from ..below import Platt, Scores, exp64, softplus64
from .newton import minimise
from .split import CalibrationSplit, binary_targets, identity_of


def fit_platt(scores: Scores, labels, split: CalibrationSplit, *, software: str) -> Platt:
    """slope and shift of sigmoid(slope * s + shift) for labels 0 and 1.

    The targets are (N+ + 1) / (N+ + 2) and 1 / (N- + 2) (Platt 1999), so a minimum exists also where the scores
    separate the labels. Newton's method on standardised scores (s - middle) / half width, from slope 0.

    Raises
    ------
    ReadoutError
        A slope against the score's declared orientation; scores that are all equal; more than one score an item.
    """
    s, y = binary_targets(labels, scores)
    identity = identity_of(scores, split, "negative log likelihood of Platt's targets", software)
    positives = int(np.count_nonzero(y))
    target = np.where(y, (positives + 1.0) / (positives + 2.0), 1.0 / (len(y) - positives + 2.0))
    low, high = float(np.min(s)), float(np.max(s))
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    x = (s - middle) / (half if half > 0 else 1.0)

    def value(theta):
        u = theta[0] * x + theta[1]
        return math.fsum((softplus64(u) - target * u).tolist())

    def derivatives(theta):
        u = theta[0] * x + theta[1]
        p, q = exp64(-softplus64(-u)), exp64(-softplus64(u))
        error, w = p - target, p * q
        gradient = np.array([math.fsum((error * x).tolist()), math.fsum(error.tolist())])
        cross = math.fsum((w * x).tolist())
        return gradient, np.array([[math.fsum((w * x * x).tolist()), cross], [cross, math.fsum(w.tolist())]])
    slope, shift = minimise(value, derivatives, np.zeros(2)).tolist()
    slope = slope / (half if half > 0 else 1.0)
    return Platt(identity, slope, shift - slope * middle)
