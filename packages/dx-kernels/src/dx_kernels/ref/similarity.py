"""Reference of dx_kernels.similarity."""
import numpy as np

from ..below import ref

f32 = np.float32


def _scale(row):
    """2^-k for the largest magnitude in [2^k, 2^(k + 1)); 0 where it is 0 or not finite."""
    if not len(row) or not np.isfinite(row).all():
        return 0.0
    m = float(np.max(np.abs(row)))
    if m == 0:
        return 0.0
    _, exponent = np.frexp(m)
    return float(np.ldexp(1.0, 1 - int(exponent)))


def l2_normalize_forward(x, epsilon=0.0):
    """(y, norms)."""
    y, norms, epsilon = np.zeros(x.shape, f32), np.zeros(len(x), f32), f32(epsilon)
    with np.errstate(all="ignore"):
        for r, row in enumerate(x):
            squares = ref.dot16(row, row)
            norm = by = np.sqrt(squares)
            scale = 0.0 if f32(2.0**-100) <= squares <= f32(2.0**100) else _scale(row)
            if scale:
                scaled = (row.astype(np.float64) * scale).astype(f32)
                by = np.sqrt(ref.dot16(scaled, scaled))
                norm = f32(np.float64(by) / scale)
                if norm >= epsilon:
                    row = scaled
                else:
                    by = norm
            if norm < epsilon:
                by = epsilon
            norms[r], y[r] = norm, row / by
    return y, norms


def l2_normalize_backward(dy, y, norms, epsilon=0.0):
    """dx."""
    dx, epsilon = np.zeros(dy.shape, f32), f32(epsilon)
    with np.errstate(all="ignore"):
        for r in range(len(dy)):
            if norms[r] < epsilon:
                dx[r] = dy[r] / epsilon
            else:
                dx[r] = (dy[r] - y[r] * ref.dot16(y[r], dy[r])) / norms[r]
    return dx


def squared_distance_forward(q, e):
    """s (queries, documents)."""
    s = np.zeros((len(q), len(e)), f32)
    with np.errstate(all="ignore"):
        for i, j in np.ndindex(s.shape):
            difference = q[i] - e[j]
            s[i, j] = ref.dot16(difference, difference)
    return s


def squared_distance_backward(ds, q, e):
    """(dq, de)."""
    dq, de = np.zeros(q.shape, f32), np.zeros(e.shape, f32)
    with np.errstate(all="ignore"):
        for i, k in np.ndindex(q.shape):
            dq[i, k] = ref.sum16((f32(2) * ds[i]) * (q[i, k] - e[:, k]))
        for j, k in np.ndindex(e.shape):
            de[j, k] = ref.sum16((f32(2) * ds[:, j]) * (e[j, k] - q[:, k]))
    return dq, de
