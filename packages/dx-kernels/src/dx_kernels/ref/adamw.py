"""Reference of dx_kernels.adamw, on arrays of any shape."""
import numpy as np

f32 = np.float32
TINY = f32(2.0 ** -126)


def _power(beta, step):
    power = 1.0
    for _ in range(step):
        power = power * beta
    return power


def adamw_step(w, g, m, v, *, step, rate, scale=1.0, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, decay=True):
    """(w, m, v) after one update; float32 arrays."""
    rate = rate * scale
    keep = f32(1.0 - rate * weight_decay) if decay else f32(1)
    with np.errstate(all="ignore"):
        m = f32(beta1) * m + f32(1.0 - beta1) * g
        v = f32(beta2) * v + f32(1.0 - beta2) * (g * g)
        m = np.where(np.abs(m) < TINY, f32(0), m)
        v = np.where(v < TINY, f32(0), v)
        corrected = v / f32(1.0 - _power(beta2, step))
        update = (m / f32(1.0 - _power(beta1, step))) / (np.sqrt(corrected) + f32(eps))
        return w * keep - f32(rate) * update, m, v


def sgd_step(w, g, *, rate, scale=1.0):
    """w - round(rate * scale) * g; float32 array."""
    with np.errstate(all="ignore"):
        return w - f32(rate * scale) * g
