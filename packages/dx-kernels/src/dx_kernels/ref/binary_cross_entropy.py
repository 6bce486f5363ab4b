"""Reference of dx_kernels.binary_cross_entropy. exp64 and softplus64 are those of dx-numerics."""
import numpy as np

from ..below import exp64, softplus64

f32, f64 = np.float32, np.float64


def _terms(logits, targets, positive, negative, gamma):
    """(losses, d loss / d z) of all elements, counted or not."""
    columns = logits.shape[1]
    positive = np.ones(columns) if positive is None else positive
    negative = np.ones(columns) if negative is None else negative
    z, one = logits.astype(f64), targets > 0
    u, w = np.where(one, z, -z), np.where(one, positive, negative)
    nll, hit = softplus64(-u), softplus64(u)
    slope = exp64(-hit)
    if gamma:
        p = exp64(-nll)
        w = w * exp64(-(gamma * hit))
        slope = slope + np.where(p == 0, 0.0, (gamma * p) * nll)
    du = -(w * slope)
    return w * nll, np.where(one, du, -du)


def binary_cross_entropy_forward(logits, targets, positive=None, negative=None, gamma=0.0):
    """(numerator, denominator, losses)."""
    with np.errstate(all="ignore"):
        losses = np.where(targets >= 0, _terms(logits, targets, positive, negative, gamma)[0], 0.0)
        numerator, denominator = 0.0, 0.0
        for loss, target in zip(losses.reshape(-1), targets.reshape(-1), strict=True):
            if target >= 0:
                numerator, denominator = numerator + loss, denominator + 1.0
    return numerator, denominator, losses


def binary_cross_entropy_backward(logits, targets, positive=None, negative=None, gamma=0.0, scale=1.0,
                                  denominator=None):
    """dlogits."""
    if denominator is None:
        denominator = float(np.count_nonzero(targets >= 0))
    if denominator == 0:
        return np.zeros(logits.shape, f32)
    with np.errstate(all="ignore"):
        slope = _terms(logits, targets, positive, negative, gamma)[1]
        return np.where(targets >= 0, (scale / denominator) * slope, 0.0).astype(f32)
