"""Reference of dx_kernels.binary64. exp64 and log64 are those of dx-numerics."""
import numpy as np

from ..below import exp64, log64


def softmax64(z):
    """(p, log_sum)."""
    p, log_sum = np.zeros(z.shape), np.zeros(len(z))
    with np.errstate(all="ignore"):
        for r, row in enumerate(z):
            m, total = -np.inf, 0.0
            for v in row:
                m = v if v > m else m
            e = exp64(row - m)
            for v in e:
                total = total + v
            p[r], log_sum[r] = e / total, log64(total) + m
    return p, log_sum


def products64(a, b):
    """s (n, m)."""
    s = np.zeros((a.shape[1], b.shape[1]))
    with np.errstate(all="ignore"):
        for r in range(len(a)):
            s = s + a[r][:, None] * b[r][None, :]
    return s
