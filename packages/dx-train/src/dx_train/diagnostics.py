"""Alignment and uniformity: what a representation's geometry looks like on a declared sample; no labels, no recipe."""
import numpy as np

from .below import softmax64, squared_distance_forward
from .contrastive import unit_rows


def alignment(x: np.ndarray, y: np.ndarray) -> float:
    """Mean squared distance of positive pairs, rows made unit length: 0 when every pair coincides, collapse included.

    x, y : float32 (pairs, d), row i of both a pair of the declared positive distribution, at least one
    """
    (a, _), (b, _) = unit_rows(x, "x"), unit_rows(y, "y")
    if a.shape != b.shape or not len(a):
        raise ValueError(f"x has shape {x.shape}, y {y.shape}: expected equal ones, at least one pair")
    total, distance = 0.0, np.empty((1, 1), np.float32)
    for i in range(len(a)):
        squared_distance_forward(a[i:i + 1], b[i:i + 1], distance)
        total += float(distance[0, 0])
    return total / len(a)


def uniformity(x: np.ndarray) -> float:
    """log of the mean of exp(-2 * squared distance) over all ordered pairs of different rows, rows made unit length:
    0 when all rows coincide, lower the wider they spread.

    x : float32 (n, d), n >= 2, independent samples of the declared population
    """
    a, _ = unit_rows(x, "x")
    if len(a) < 2:
        raise ValueError(f"x has {len(a)} rows: expected at least 2")
    distances = np.empty((len(a), len(a)), np.float32)
    squared_distance_forward(a, a, distances)
    different = ~np.eye(len(a), dtype=np.bool_)
    z = (-2.0 * distances[different].astype(np.float64)).reshape(1, -1)
    sums = np.empty(1)
    softmax64(z, np.empty_like(z), sums)
    log_count = np.empty(1)
    softmax64(np.zeros_like(z), np.empty_like(z), log_count)
    return float(sums[0] - log_count[0])
