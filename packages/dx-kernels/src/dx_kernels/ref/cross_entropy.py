"""Reference of dx_kernels.cross_entropy. exp64 and log64 are those of dx-numerics, which has their reference."""
import numpy as np

from ..below import exp64, log64

f32 = np.float32


def _row(z, admit):
    """(m, e, S) of one row of binary64 logits."""
    z = np.where(admit, z, -np.inf)
    m = -np.inf
    for v in z:
        m = v if v > m else m
    e = np.where(admit, exp64(z - m), 0.0)
    total = 0.0
    for v in e:
        total = total + v
    return m, e, total


def _arrays(logits, targets, weight, admit):
    logits = np.asarray(logits, f32)
    weight = np.ones(logits.shape[1]) if weight is None else weight
    admit = np.ones(logits.shape, bool) if admit is None else np.asarray(admit, bool)
    return logits.astype(np.float64), targets, weight, admit


def cross_entropy_forward(logits, targets, weight=None, admit=None):
    """(numerator, denominator, losses): floats and a float64 array (rows,)."""
    logits, targets, weight, admit = _arrays(logits, targets, weight, admit)
    losses, numerator, denominator = np.zeros(len(targets)), 0.0, 0.0
    with np.errstate(all="ignore"):
        for r, t in enumerate(targets):
            if t < 0:
                continue
            m, _, total = _row(logits[r], admit[r])
            losses[r] = weight[t] * (log64(total) - (logits[r, t] - m))
            numerator = numerator + losses[r]
            denominator = denominator + weight[t]
    return numerator, denominator, losses


def cross_entropy_backward(logits, targets, weight=None, admit=None, scale=1.0, denominator=None):
    """dlogits, float32 array (rows, columns)."""
    if denominator is None:
        denominator = cross_entropy_forward(logits, targets, weight, admit)[1]
    logits, targets, weight, admit = _arrays(logits, targets, weight, admit)
    dlogits = np.zeros(logits.shape, f32)
    with np.errstate(all="ignore"):
        for r, t in enumerate(targets):
            if t < 0 or denominator == 0:
                continue
            _, e, total = _row(logits[r], admit[r])
            factor = (scale * weight[t]) / denominator
            onehot = np.arange(len(e)) == t
            dlogits[r] = np.where(admit[r], factor * np.where(onehot, e / total - 1.0, e / total), 0.0).astype(f32)
    return dlogits
