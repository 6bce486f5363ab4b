"""Temperature, vector and matrix scaling of class logits by minimal negative log likelihood."""
import math

import numpy as np

from ..below import MatrixScaling, ReadoutError, Scores, ScoreType, Temperature, VectorScaling, products64, softmax64
from .newton import minimise
from .split import CalibrationSplit, class_targets, identity_of

LOWEST, HIGHEST = 2.0**-20, 2.0**20  # of 1 / T


def _inputs(scores: Scores, labels):
    scores.expect(ScoreType.LOGIT)
    if scores.values.ndim != 2 or not np.isfinite(scores.values).all():
        raise ReadoutError("scores.values.shape", scores.values.shape, "finite logits (N, C)")
    return np.ascontiguousarray(scores.values, np.float64), class_targets(labels, scores)


def _softmax(z):
    p, log_sum = np.empty(z.shape), np.empty(len(z))
    softmax64(np.ascontiguousarray(z), p, log_sum)
    return p, log_sum


def mean_nll(z, y) -> float:
    """Mean of log sum exp(z) - z[y], exactly summed."""
    _, log_sum = _softmax(z)
    return math.fsum((log_sum - z[np.arange(len(y)), y]).tolist()) / len(y)


def fit_temperature(scores: Scores, labels, split: CalibrationSplit, *, software: str) -> Temperature:
    """The temperature T > 0 with the smallest negative log likelihood of frozen logits.

    In b = 1 / T the function is convex; the zero of its derivative, the mean of E_p[z] - z[y], is found by bisection
    of [2^-20, 2^20] to the last bit, so T is the same wherever it is fitted.

    Raises
    ------
    ReadoutError
        No such T: the labels lie against the logits, or the logits separate the labels without a mistake (T would go
        to 0).
    """
    z, y = _inputs(scores, labels)
    identity = identity_of(scores, split, "negative log likelihood", software)
    right = z[np.arange(len(y)), y]

    def slope(b):
        p, _ = _softmax(z * b)
        return math.fsum((p * (z - right[:, None])).reshape(-1).tolist())
    low, high = LOWEST, HIGHEST
    if not slope(low) < 0:
        raise ReadoutError("calibration.temperature", None, "labels that agree with the logits: no T > 0 is best")
    if not slope(high) > 0:
        raise ReadoutError("calibration.temperature", None, "a mistake on the split: without one T goes to 0")
    while True:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return Temperature(identity, 1.0 / high)


def _objective(ridge):
    return f"mean negative log likelihood + {ridge!r} / 2 * |theta - identity|^2"


def _require_examples(count, parameters):
    if count < parameters:
        raise ReadoutError("calibration.ids", count, f"one or more for each of {parameters} parameters")


def fit_vector_scaling(scores: Scores, labels, split: CalibrationSplit, *, software: str,
                       ridge: float = 0.001) -> VectorScaling:
    """scale and shift of each class, minimal mean negative log likelihood + ridge / 2 * (|scale - 1|^2 + |shift|^2).

    Raises
    ------
    ReadoutError
        Fewer examples than parameters (2 C).
    """
    z, y = _inputs(scores, labels)
    identity = identity_of(scores, split, _objective(ridge), software)
    n, c = z.shape
    _require_examples(n, 2 * c)
    onehot = (np.arange(c)[None, :] == y[:, None]).astype(np.float64)
    origin = np.concatenate([np.ones(c), np.zeros(c)])

    def value(theta):
        away = theta - origin
        return mean_nll(z * theta[:c] + theta[c:], y) + 0.5 * ridge * math.fsum((away * away).tolist())

    def derivatives(theta):
        p, _ = _softmax(z * theta[:c] + theta[c:])
        ones = np.ones((n, 1))
        error = p - onehot
        columns = np.concatenate([error * z, error], axis=1)
        gradient = _sums(columns, ones)[:, 0] / n + ridge * (theta - origin)
        features = np.concatenate([p * z, p], axis=1)
        hessian = -_sums(features, features)
        for j in range(c):
            own = np.stack([z[:, j], np.ones(n)], axis=1)
            block = _sums(own * p[:, j:j + 1], own)
            for a in range(2):
                for b in range(2):
                    hessian[a * c + j, b * c + j] = hessian[a * c + j, b * c + j] + block[a, b]
        return gradient, hessian / n + ridge * np.eye(2 * c)
    theta = minimise(value, derivatives, origin)
    return VectorScaling(identity, tuple(theta[:c].tolist()), tuple(theta[c:].tolist()))


def fit_matrix_scaling(scores: Scores, labels, split: CalibrationSplit, *, software: str,
                       ridge: float = 0.001) -> MatrixScaling:
    """A matrix and a shift, minimal mean negative log likelihood + ridge / 2 * (|W - I|^2 + |shift|^2).

    Raises
    ------
    ReadoutError
        Fewer examples than parameters (C (C + 1)).
    """
    z, y = _inputs(scores, labels)
    identity = identity_of(scores, split, _objective(ridge), software)
    n, c = z.shape
    _require_examples(n, c * (c + 1))
    x = np.concatenate([z, np.ones((n, 1))], axis=1)
    onehot = (np.arange(c)[None, :] == y[:, None]).astype(np.float64)
    origin = np.concatenate([np.eye(c), np.zeros((c, 1))], axis=1).reshape(-1)

    def logits(theta):
        out = np.zeros((n, c))
        for j in range(c + 1):
            out = out + x[:, j:j + 1] * theta.reshape(c, c + 1)[:, j]
        return out

    def value(theta):
        away = theta - origin
        return mean_nll(logits(theta), y) + 0.5 * ridge * math.fsum((away * away).tolist())

    def derivatives(theta):
        p, _ = _softmax(logits(theta))
        gradient = _sums(p - onehot, x).reshape(-1) / n + ridge * (theta - origin)
        hessian, w = np.empty((len(theta), len(theta))), c + 1
        for a in range(c):
            for b in range(a, c):
                weight = p[:, a] * ((1.0 if a == b else 0.0) - p[:, b])
                block = _sums(x * weight[:, None], x)
                hessian[a * w:(a + 1) * w, b * w:(b + 1) * w] = block
                hessian[b * w:(b + 1) * w, a * w:(a + 1) * w] = block.T
        return gradient, hessian / n + ridge * np.eye(len(theta))
    theta = minimise(value, derivatives, origin).reshape(c, c + 1)
    return MatrixScaling(identity, tuple(tuple(row) for row in theta[:, :c].tolist()), tuple(theta[:, c].tolist()))


def _sums(a, b):
    s = np.empty((a.shape[1], b.shape[1]))
    products64(np.ascontiguousarray(a), np.ascontiguousarray(b), s)
    return s
