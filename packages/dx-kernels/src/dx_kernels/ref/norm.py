"""Reference of dx_kernels.norm."""
import numpy as np

from ..below import ref as numerics

f32 = np.float32


def squared_norm(g):
    """Sum of squares of a finite gradient; float."""
    g = np.asarray(g, f32).reshape(-1)
    total = float(numerics.dot16(g, g))
    if np.isfinite(total):
        return total
    scaled = g * f32(2.0 ** -80)
    return float(numerics.dot16(scaled, scaled)) * 2.0 ** 160


def gradient_norm(gradients):
    """sqrt of the squared norms added in order; float."""
    total = 0.0
    for g in gradients:
        total = total + squared_norm(g)
    return float(np.sqrt(total))


def clip_gradients(gradients, max_norm):
    """(scaled gradients, norm before)."""
    norm = gradient_norm(gradients)
    factor = max_norm / (norm + 1e-6)
    if max_norm == 0 or factor >= 1:
        return list(gradients), norm
    return [(np.asarray(g, np.float64) * factor).astype(f32) for g in gradients], norm
