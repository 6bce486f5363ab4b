"""Reference of dx_kernels.regression. exp64 is that of dx-numerics, which has its reference."""
import numpy as np

from ..below import exp64

f32, f64 = np.float32, np.float64
LOG_TWO_PI = float.fromhex("0x1.d67f1c864beb5p+0")


def _sum(losses, counted):
    numerator, denominator = 0.0, 0.0
    for loss, c in zip(losses.reshape(-1), counted.reshape(-1), strict=True):
        if c:
            numerator, denominator = numerator + loss, denominator + 1.0
    return numerator, denominator


def _error(prediction, target, counted):
    counted = np.ones(prediction.shape, bool) if counted is None else np.asarray(counted, bool)
    return prediction.astype(f64) - target, counted


def _losses(e, kind, delta):
    """(losses, slopes)."""
    size = np.where(e < 0, -e, e)
    sign = np.where(e > 0, 1.0, np.where(e < 0, -1.0, e))
    if kind == "squared":
        return e * e, 2.0 * e
    if kind == "absolute":
        return size, sign
    inside = size <= delta
    return np.where(inside, 0.5 * (e * e), delta * (size - 0.5 * delta)), np.where(inside, e, delta * sign)


def _gradient(slope, counted, scale, denominator):
    if denominator == 0:
        return np.zeros(slope.shape, f32)
    return np.where(counted, (scale / denominator) * slope, 0.0).astype(f32)


def regression_forward(prediction, target, counted=None, kind="squared", delta=1.0):
    """(numerator, denominator, losses)."""
    with np.errstate(all="ignore"):
        e, counted = _error(prediction, target, counted)
        losses = np.where(counted, _losses(e, kind, delta)[0], 0.0)
        return *_sum(losses, counted), losses


def regression_backward(prediction, target, counted=None, kind="squared", delta=1.0, scale=1.0, denominator=None):
    """dprediction."""
    if denominator is None:
        denominator = regression_forward(prediction, target, counted)[1]
    with np.errstate(all="ignore"):
        e, counted = _error(prediction, target, counted)
        return _gradient(_losses(e, kind, delta)[1], counted, scale, denominator)


def gaussian_nll_forward(mean, log_variance, target, counted=None):
    """(numerator, denominator, losses)."""
    with np.errstate(all="ignore"):
        e, counted = _error(mean, target, counted)
        s = log_variance.astype(f64)
        losses = np.where(counted, 0.5 * ((s + (e * e) * exp64(-s)) + LOG_TWO_PI), 0.0)
        return *_sum(losses, counted), losses


def gaussian_nll_backward(mean, log_variance, target, counted=None, scale=1.0, denominator=None):
    """(dmean, dlog_variance)."""
    if denominator is None:
        denominator = gaussian_nll_forward(mean, log_variance, target, counted)[1]
    with np.errstate(all="ignore"):
        e, counted = _error(mean, target, counted)
        precision = exp64(-log_variance.astype(f64))
        return (_gradient(e * precision, counted, scale, denominator),
                _gradient(0.5 * (1.0 - (e * e) * precision), counted, scale, denominator))
