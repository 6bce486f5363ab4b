"""Reference of dx_kernels.softmax."""
import numpy as np

from ..below import ref as numerics

f32 = np.float32


def softmax_forward(raw, scale=1.0, bias=None, mask=None, limits=None):
    """p for raw, bias (rows, n), mask (rows or 1, n) or None, limits (rows,) or None; float32 array."""
    raw = np.asarray(raw, f32)
    admitted = np.ones(raw.shape, bool)
    if mask is not None:
        admitted &= np.asarray(mask) != 0
    if limits is not None:
        admitted &= np.arange(raw.shape[1]) < np.asarray(limits)[:, None]
    p = np.zeros(raw.shape, f32)
    with np.errstate(all="ignore"):
        s = raw / f32(scale)
        s = s if bias is None else s + bias
        for r in range(len(raw)):
            row = np.where(admitted[r], s[r], f32(-np.inf))
            maximum = max((x for x in row if not np.isnan(x)), default=f32(-np.inf))
            if maximum == -np.inf and not np.isnan(row).any():
                continue
            x = np.where(row == -np.inf, row, row - maximum)
            e = numerics.exp32(x)
            e = np.where(e < f32(2.0**-126), f32(0), e)
            q = e / numerics.sum16(e)
            q = np.where(q < f32(2.0**-126), f32(0), q)
            p[r] = np.where(admitted[r], q, f32(0))
    return p


def softmax_backward(p, dp, scale=1.0):
    """(draw, dbias) for p, dp (rows, n); float32 arrays."""
    with np.errstate(all="ignore"):
        ds = p * (dp - numerics.dot16(p, dp)[:, None])
        return ds / f32(scale), ds
