"""Reference of dx_kernels.contrastive. exp64 and log64 are those of dx-numerics, which has their reference."""
import numpy as np

from ..below import exp64, log64

f32 = np.float32


def _weighed(z, weight, admit):
    """(m, e, sum of e) of the admitted terms weight * exp(z - m)."""
    z, m = np.where(admit, z, -np.inf), -np.inf
    for v in z:
        m = v if v > m else m
    e = np.where(admit, weight * exp64(z - m), 0.0)
    total = 0.0
    for v in e:
        total = total + v
    return m, e, total


def _rows(scores, positive, temperature, admit, weight):
    """For each anchor: (loss, softmax difference of every candidate, admitted)."""
    scores = np.asarray(scores, f32).astype(np.float64)
    positive = np.asarray(positive, bool)
    admit = np.ones(scores.shape, bool) if admit is None else np.asarray(admit, bool)
    weight = np.ones(scores.shape) if weight is None else weight
    for s, p, a, w in zip(scores, positive, admit, weight):
        z = s / temperature
        m, e, every = _weighed(z, w, a)
        mp, ep, positives = _weighed(z, w, p)
        part = np.where(p, e / every - ep / positives, e / every)
        yield (log64(every) - log64(positives)) + (m - mp), part, a


def contrastive_forward(scores, positive, temperature, admit=None, weight=None):
    """(numerator, denominator, losses): float, int, float64 array (anchors,)."""
    numerator, losses = 0.0, np.zeros(len(scores))
    with np.errstate(all="ignore"):
        for r, (loss, _, _) in enumerate(_rows(scores, positive, temperature, admit, weight)):
            losses[r] = loss
            numerator = numerator + loss
    return numerator, len(scores), losses


def contrastive_backward(scores, positive, temperature, admit=None, weight=None, scale=1.0, denominator=None):
    """dscores, float32 array (anchors, candidates)."""
    denominator = len(scores) if denominator is None else denominator
    dscores = np.zeros(np.shape(scores), f32)
    with np.errstate(all="ignore"):
        factor = np.float64(scale) / denominator / temperature
        for r, (_, part, a) in enumerate(_rows(scores, positive, temperature, admit, weight)):
            dscores[r] = np.where(a, factor * part, 0.0).astype(f32)
    return dscores if denominator else np.zeros_like(dscores)
