"""Reference of dx_kernels.pairs: elementwise numpy, binary64 until one rounding."""
import numpy as np

from ..below import ref as numerics

f32, f64 = np.float32, np.float64


def page_geometry(box, row, line, key):
    """(relative (n, 4), real (6, n), whole (3, n), line height)"""
    box = np.asarray(box, f64).reshape(-1, 4)
    n = len(box)
    whole = np.array([row, line, key], np.int32).reshape(3, n)
    if n == 0:
        return np.zeros((0, 4)), np.zeros((6, 0)), whole, 1.0
    x0, y0, x1, y1 = box.T
    left, top, width, height = x0.min(), y0.min(), x1.max() - x0.min(), y1.max() - y0.min()
    heights = sorted(h for h in (y1 - y0).tolist() if h > 0)
    h = f64(heights[(len(heights) - 1) // 2]) if heights else f64(1)
    h = max(h, max(width, height) * 2.0 ** -20)
    zero = np.zeros(n)
    across = [(x - left) / width if width > 0 else zero for x in (x0, x1)]
    down = [(y - top) / height if height > 0 else zero for y in (y0, y1)]
    relative = np.array([across[0], down[0], across[1], down[1]]).T
    own = (y1 - y0) / h
    real = np.array([(across[0] + across[1]) * 0.5, (down[0] + down[1]) * 0.5, (x0 - left) / h, (x1 - left) / h,
                     ((y0 - top) + (y1 - top)) * 0.5 / h, numerics.log64(np.where(own < 2.0 ** -10, 2.0 ** -10, own))])
    return relative, real, whole, float(h)


def positions(relative, size):
    """(4, n) int32"""
    p = np.asarray(relative, f64) * size
    p = np.where(p > 0, p, 0.0)
    return np.where(p < size - 1, p, size - 1).astype(np.int32).T


def pair_features(real, whole, i0=0, i1=None):
    """(20, i1 - i0, n) float32"""
    rows = slice(i0, real.shape[1] if i1 is None else i1)
    cx, cy, x0, x1, my, lh = real
    row, line, key = whole
    place = np.arange(real.shape[1], dtype=np.int32)

    def difference(x):
        return x[None, :] - x[rows, None]

    dx, dy = difference(cx).astype(f32), difference(cy).astype(f32)
    down, step = difference(row), difference(place)
    over = np.minimum(x1[None, :], x1[rows, None]) - np.maximum(x0[None, :], x0[rows, None]) > 0
    same_text = (key[None, :] == key[rows, None]) & (step != 0)
    features = [
        dx, dy, abs(dx), abs(dy), numerics.tanh32(((x0[None, :] - x1[rows, None]) * 0.25).astype(f32)),
        numerics.tanh32((difference(my) * 0.5).astype(f32)), down == 0, np.clip(down, -3, 3).astype(f32) / f32(3),
        np.clip(step, -8, 8).astype(f32) / f32(8), step == 1, step == -1, step == 0, over,
        abs(difference(x0)) < 0.5, abs(difference(x1)) < 0.5, (down == 1) & over, same_text,
        line[None, :] == line[rows, None], np.clip(difference(lh), -1.0, 1.0), (down == -1) & over]
    return np.array([np.asarray(f).astype(f32) for f in features], f32)
