"""Reference of dx_kernels.pooling. rows: listed rows of x, or None for all of them; starts: borders of segments."""
import numpy as np

from ..below import ref as numerics
from .softmax import softmax_backward, softmax_forward

f32 = np.float32


def _listed(rows, starts):
    return np.arange(starts[-1]) if rows is None else np.asarray(rows)


def pool_sum_forward(x, rows, starts, weights=None, divisors=None):
    """y (segments, d); float32 array."""
    rows, y = _listed(rows, starts), np.empty((len(starts) - 1, x.shape[1]), f32)
    with np.errstate(all="ignore"):
        for b, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
            columns = np.ascontiguousarray(x[rows[begin:end]].T)
            if weights is None:
                y[b] = numerics.sum16(columns)
            else:
                y[b] = numerics.dot16(columns, np.broadcast_to(weights[begin:end], columns.shape))
            if divisors is not None:
                y[b] = y[b] / divisors[b]
    return y


def pool_sum_backward(dy, rows, starts, x, weights=None, divisors=None):
    """(dx, dweights) for dy (segments, d); float32 arrays."""
    rows, dx, dweights = _listed(rows, starts), np.zeros_like(x), np.empty(starts[-1], f32)
    with np.errstate(all="ignore"):
        for b, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
            t = dy[b] if divisors is None else dy[b] / divisors[b]
            for i in range(begin, end):
                dx[rows[i]] = t if weights is None else weights[i] * t
                dweights[i] = numerics.dot16(t[None], x[rows[i]][None])[0]
    return dx, dweights


def pool_max_forward(x, rows, starts):
    """(y, argmax), both (segments, d): float32 and int32 arrays."""
    rows, y = _listed(rows, starts), np.empty((len(starts) - 1, x.shape[1]), f32)
    argmax = np.empty(y.shape, np.int32)
    for b, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        for j in range(x.shape[1]):
            best = rows[begin]
            for r in rows[begin + 1:end]:
                if x[r, j] > x[best, j] or (np.isnan(x[r, j]) and not np.isnan(x[best, j])):
                    best = r
            y[b, j], argmax[b, j] = x[best, j], best
    return y, argmax


def pool_max_backward(dy, argmax, x_rows):
    """dx (x_rows, d); float32 array."""
    dx = np.zeros((x_rows, dy.shape[1]), f32)
    with np.errstate(all="ignore"):
        for b in range(len(dy)):
            for j in range(dy.shape[1]):
                dx[argmax[b, j], j] = dx[argmax[b, j], j] + dy[b, j]
    return dx


def pool_softmax_forward(scores, starts):
    """p (heads, listed); float32 array."""
    p = np.empty_like(scores)
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        p[:, begin:end] = softmax_forward(scores[:, begin:end])
    return p


def pool_softmax_backward(p, dp, starts):
    """dscores (heads, listed); float32 array."""
    dscores = np.empty_like(p)
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        dscores[:, begin:end] = softmax_backward(p[:, begin:end], dp[:, begin:end])[0]
    return dscores
