"""Reference of dx_kernels.pointer."""
import numpy as np

from .attention import admitted, head, product

f32 = np.float32


def pointer_forward(q, k, parts=1, bias=None, mask=None, causal=False):
    """scores (parts, nq, nk) for q (nq, parts * d), k (nk, parts * d); float32 array."""
    scale = np.sqrt(f32(q.shape[1] // parts))
    allowed = admitted(mask, causal, len(q), len(k))
    scores = []
    with np.errstate(all="ignore"):
        for p in range(parts):
            s = product(head(q, p, parts), head(k, p, parts)) / scale
            s = s if bias is None else s + bias[p]
            scores.append(np.where(allowed, s, f32(-np.inf)))
    return np.stack(scores)


def pointer_backward(dscores, q, k):
    """(dq, dk) for dscores (parts, nq, nk); float32 arrays."""
    parts = len(dscores)
    scale = np.sqrt(f32(q.shape[1] // parts))
    dq, dk = [], []
    with np.errstate(all="ignore"):
        for p in range(parts):
            e = dscores[p] / scale
            dq.append(product(e, head(k, p, parts).T))
            dk.append(product(e.T, head(q, p, parts).T))
    return np.concatenate(dq, axis=1), np.concatenate(dk, axis=1)
