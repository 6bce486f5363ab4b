"""Reference of dx_kernels.attention."""
import numpy as np

from ..below import ref as numerics
from .softmax import softmax_backward, softmax_forward

f32 = np.float32


def product(a, b):
    """dot16 of every row of a with every row of b: (rows of a, rows of b)."""
    return numerics.dot16(a[:, None, :], b[None, :, :])


def head(x, h, heads):
    """Columns of head h."""
    d = x.shape[1] // heads
    return x[:, h * d:(h + 1) * d]


def admitted(mask, causal, nq, nk):
    """bool (nq, nk): what mask (nq or 1, nk) or None, and causal, admit."""
    allowed = np.ones((nq, nk), bool) if mask is None else np.broadcast_to(np.asarray(mask) != 0, (nq, nk))
    return allowed & (np.arange(nk) <= np.arange(nq)[:, None]) if causal else allowed


def attention_forward(q, k, v, heads, bias=None, mask=None, causal=False):
    """(out, probs) for q (nq, heads * d), k and v (nk, heads * d), bias (heads, nq, nk) or None; float32 arrays."""
    scale = np.sqrt(f32(q.shape[1] // heads))
    allowed = admitted(mask, causal, len(q), len(k))
    out, probs = [], []
    for h in range(heads):
        raw = product(head(q, h, heads), head(k, h, heads))
        p = softmax_forward(raw, scale, None if bias is None else bias[h], allowed)
        out.append(product(p, head(v, h, heads).T))
        probs.append(p)
    return np.concatenate(out, axis=1), np.stack(probs)


def attention_backward(dout, q, k, v, probs):
    """(dq, dk, dv, dbias) for dout (nq, heads * d), probs (heads, nq, nk); float32 arrays."""
    heads = len(probs)
    scale = np.sqrt(f32(q.shape[1] // heads))
    dq, dk, dv, dbias = [], [], [], []
    for h, p in enumerate(probs):
        qh, kh, vh, da = (head(x, h, heads) for x in (q, k, v, dout))
        e, ds = softmax_backward(p, product(da, vh), scale)
        dq.append(product(e, kh.T))
        dk.append(product(e.T, qh.T))
        dv.append(product(p.T, da.T))
        dbias.append(ds)
    return *(np.concatenate(x, axis=1) for x in (dq, dk, dv)), np.stack(dbias)
