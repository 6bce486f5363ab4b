"""Reference of dx_kernels.softmax."""
import numpy as np

from ..below import ref as numerics

f32 = np.float32


def _exp32(x):
    with np.errstate(all="ignore"):
        x = np.where(x > f32(89), f32(89), x)
        x = np.where(x < f32(-104), f32(-104), x)
        t = x * f32(float.fromhex("0x1.715476p+0")) + f32(12582912)
        n = t.view(np.int32) - np.int32(0x4B400000)
        fn = t - f32(12582912)
        a, w = x - fn * f32(float.fromhex("0x1.63p-1")), fn * f32(float.fromhex("-0x1.bd0106p-13"))
        r = a - w
        q = f32(float.fromhex("0x1.a125p-13"))
        for c in ("0x1.6d4334p-10", "0x1.1110e0p-7", "0x1.5554e8p-5", "0x1.555556p-3", "0x1.0p-1"):
            q = q * r + f32(float.fromhex(c))
        r_low, s = (a - r) - w, f32(1) + r
        y = s + (((f32(1) - s) + r) + (r_low + (r * r) * q))
        n1 = n >> 1
        n2 = n - n1
        return (y * ((n1 + 127) << 23).view(f32)) * ((n2 + 127) << 23).view(f32)


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
            e = _exp32(x)
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
