"""Losses of sentence pairs and triplets: classification, regression on the cosine, triplets with a metric's margin."""
from dataclasses import dataclass

import numpy as np

from .below import cross_entropy_backward, l2_normalize_backward, linear_backward, linear_forward
from .contrastive import unit_rows
from .examples import TrainingError

TRIPLET_METRICS = ("euclidean", "cosine")


@dataclass(frozen=True, eq=False)
class PairLoss:
    """numerator, denominator : sum of losses and number of pairs · gradients : name → float32 gradient of
    scale * numerator / denominator"""

    numerator: float
    denominator: int
    gradients: dict[str, np.ndarray]


def _same(**arrays):
    shapes = {name: a.shape for name, a in arrays.items()}
    if len(dict.fromkeys(shapes.values())) != 1:
        raise ValueError(f"shapes {shapes}: expected equal ones")


def pair_classification(u: np.ndarray, v: np.ndarray, labels: np.ndarray, weight: np.ndarray, bias: np.ndarray,
                        scale: float = 1.0) -> PairLoss:
    """Cross-entropy of a linear head on [u; v; |u - v|], for labelled pairs that one encoder and pool made.

    u, v : float32 (pairs, d) · labels : int32 (pairs,) · weight : float32 (classes, 3 d) · bias : (classes,)
    Gradients: u, v, weight, bias. Where u and v are equal |u - v| passes no gradient.
    """
    _same(u=u, v=v)
    pairs, d = u.shape
    difference = u - v
    features = np.ascontiguousarray(np.concatenate([u, v, np.abs(difference)], axis=1))
    if weight.shape != (len(bias), 3 * d):
        raise ValueError(f"weight has shape {weight.shape}: expected ({len(bias)}, {3 * d}), three times the vector")
    logits = np.empty((pairs, len(bias)), np.float32)
    dlogits, dfeatures = np.empty_like(logits), np.empty_like(features)
    dweight, dbias = np.empty_like(weight), np.empty_like(bias)
    linear_forward(features, weight, bias, logits)
    numerator, denominator = cross_entropy_backward(logits, labels, None, None, dlogits, scale=scale)
    linear_backward(dlogits, features, weight, dfeatures, dweight, dbias)
    du, dv, da = dfeatures[:, :d], dfeatures[:, d:2 * d], dfeatures[:, 2 * d:]
    signed = np.where(difference > 0, da, np.where(difference < 0, -da, np.float32(0)))
    return PairLoss(numerator, int(denominator), {"u": du + signed, "v": dv - signed, "weight": dweight, "bias": dbias})


def _row_dots(a, b):
    """float64 (rows,): exact products added in order; rows are short and the loss is in binary64."""
    total = np.zeros(len(a))
    for j in range(a.shape[1]):
        total = total + a[:, j].astype(np.float64) * b[:, j].astype(np.float64)
    return total


def _ordered_sum(values):
    total = 0.0
    for value in values.tolist():
        total += value
    return total


def pair_regression(u: np.ndarray, v: np.ndarray, targets: np.ndarray, scale: float = 1.0) -> PairLoss:
    """Squared error of the cosine against similarity targets (pairs,), each in [-1, 1]. Gradients: u, v."""
    _same(u=u, v=v)
    targets = np.asarray(targets, np.float64)
    if targets.shape != (len(u),) or not (np.abs(targets) <= 1).all():
        raise ValueError("targets: expected one number a pair, from -1 to 1: the target is a cosine")
    (a, a_norms), (b, b_norms) = unit_rows(u, "u"), unit_rows(v, "v")
    error = _row_dots(a, b) - targets
    factor = ((2.0 * scale / len(u)) * error).astype(np.float32)[:, None]
    du, dv = np.empty_like(u), np.empty_like(v)
    l2_normalize_backward(factor * b, a, a_norms, du)
    l2_normalize_backward(factor * a, b, b_norms, dv)
    return PairLoss(_ordered_sum(error * error), len(u), {"u": du, "v": dv})


@dataclass(frozen=True)
class TripletContract:
    """metric : "euclidean" (distance) or "cosine" (1 - cosine) · margin : in that metric's own numbers: an euclidean
    margin says nothing about cosines, so the two travel together"""

    metric: str
    margin: float

    def __post_init__(self):
        if self.metric not in TRIPLET_METRICS:
            raise ValueError(f"metric = {self.metric!r}: expected one of {', '.join(TRIPLET_METRICS)}")
        if not 0 < self.margin < float("inf"):
            raise ValueError(f"margin = {self.margin}: expected a finite number > 0")
        if self.metric == "cosine" and self.margin > 2:
            raise ValueError(f"margin = {self.margin}: expected at most 2, the largest cosine distance; is it another "
                             "metric's?")


def triplet_loss(anchor: np.ndarray, positive: np.ndarray, negative: np.ndarray, contract: TripletContract,
                 scale: float = 1.0) -> PairLoss:
    """Sum over triplets of max(0, distance(anchor, positive) - distance(anchor, negative) + margin).

    float32 (triplets, d) each. Gradients: anchor, positive, negative; a triplet whose loss is 0 gives none, and so does
    a euclidean distance of 0.
    """
    _same(anchor=anchor, positive=positive, negative=negative)
    if contract.metric == "euclidean":
        near, d_near = _euclidean(anchor, positive)
        far, d_far = _euclidean(anchor, negative)
    else:
        near, d_near = _cosine(anchor, positive)
        far, d_far = _cosine(anchor, negative)
    losses = near - far + contract.margin
    if np.isnan(losses).any():
        raise TrainingError("a distance of a triplet is not a number")
    active = losses > 0
    factor = np.where(active, scale / len(anchor), 0.0)
    (da, dp), (da2, dn) = d_near(factor), d_far(-factor)
    return PairLoss(_ordered_sum(np.where(active, losses, 0.0)), len(anchor),
                    {"anchor": da + da2, "positive": dp, "negative": dn})


def _euclidean(a, b):
    """Distances in binary64, and factor → gradients of factor * distance."""
    difference = a.astype(np.float64) - b
    squares = np.zeros(len(a))
    for j in range(a.shape[1]):
        squares = squares + difference[:, j] * difference[:, j]
    distance = np.sqrt(squares)

    def gradients(factor):
        unit = np.where(distance[:, None] > 0, difference / np.where(distance > 0, distance, 1.0)[:, None], 0.0)
        da = (factor[:, None] * unit).astype(np.float32)
        return da, -da

    return distance, gradients


def _cosine(a, b):
    """1 - cosine in binary64, and factor → gradients of factor * (1 - cosine)."""
    (ua, a_norms), (ub, b_norms) = unit_rows(a, "anchor"), unit_rows(b, "positive or negative")

    def gradients(factor):
        back = (-factor).astype(np.float32)[:, None]
        da, db = np.empty_like(a), np.empty_like(b)
        l2_normalize_backward(back * ub, ua, a_norms, da)
        l2_normalize_backward(back * ua, ub, b_norms, db)
        return da, db

    return 1.0 - _row_dots(ua, ub), gradients
