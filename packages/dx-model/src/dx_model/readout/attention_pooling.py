"""Learned pools: one or several attention distributions over the selected rows, and the penalty on equal ones."""
import math

import numpy as np

from ..below import (
    embedding_forward,
    ieee_mode,
    linear_backward,
    linear_forward,
    matmul,
    pool_softmax_backward,
    pool_softmax_forward,
    pool_sum_backward,
    pool_sum_forward,
    tanh_backward,
    tanh_forward,
)
from .errors import require
from .pooling import F32, add_examples


class AttentionPool:
    """A mode of Pooling: u = v tanh(W h + b), alpha = softmax of u over the example's rows, y = sum of alpha * h.

    Parameters
    ----------
    size : rows of W
    hops : distributions; with more than one, y is their vectors one after the other (a matrix hops x D until then)
    bias : whether b exists (structured self-attention has none)
    name : prefix of the parameters name.weight (size, D), name.bias (size,), name.v (hops, size)

    A row's gradient has two parts: alpha * dy, and through its score (alpha dy.(h - y)) back to h.
    """

    def __init__(self, size: int, hops: int = 1, *, bias: bool = True, name: str = "attention"):
        for what, value in (("size", size), ("hops", hops)):
            require(isinstance(value, int) and value >= 1, f"readout.attention.{what}", value, "a whole number >= 1")
        self.size, self.hops, self.bias, self.name = size, hops, bias, name

    def width(self, d):
        return self.hops * d

    def shapes(self, d):
        shapes = {"weight": (self.size, d), "bias": (self.size,), "v": (self.hops, self.size)}
        return {f"{self.name}.{n}": s for n, s in shapes.items() if self.bias or n != "bias"}

    def forward(self, x, selected, parameters, weights):
        weight, v = parameters[f"{self.name}.weight"], parameters[f"{self.name}.v"]
        listed, d = len(selected.rows), x.shape[1]
        h, t = np.empty((listed, d), F32), np.empty((listed, self.size), F32)
        scores, alpha = np.empty((self.hops, listed), F32), np.empty((self.hops, listed), F32)
        embedding_forward(x, selected.rows, h)
        linear_forward(h, weight, parameters.get(f"{self.name}.bias"), t)
        tanh_forward(t.reshape(-1), t.reshape(-1))
        matmul(v, t, scores, transpose_b=True)
        pool_softmax_forward(scores, selected.starts, alpha)
        y = np.empty((len(selected.kept), self.hops * d), F32)
        for hop in range(self.hops):
            part = np.empty((len(y), d), F32)
            pool_sum_forward(h, None, selected.starts, part, weights=alpha[hop])
            y[:, hop * d:(hop + 1) * d] = part
        return y, (x.shape, selected, h, t, alpha, weight, v)

    def backward(self, dy, saved):
        shape, selected, h, t, alpha, weight, v = saved
        starts, d = selected.starts, h.shape[1]
        dh, dalpha = None, np.empty_like(alpha)
        for hop in range(self.hops):
            direct = np.empty_like(h)
            part = np.ascontiguousarray(dy[:, hop * d:(hop + 1) * d])
            pool_sum_backward(part, None, starts, direct, dalpha[hop], x=h, weights=alpha[hop])
            dh = direct if dh is None else dh + direct
        dscores, dt, dz, through = np.empty_like(alpha), np.empty_like(t), np.empty_like(t), np.empty_like(h)
        pool_softmax_backward(alpha, dalpha, starts, dscores)
        matmul(dscores, v, dt, transpose_a=True)
        tanh_backward(dt.reshape(-1), t.reshape(-1), dz.reshape(-1))
        linear_backward(dz, None, weight, through)
        dx = np.zeros(shape, F32)
        dx[selected.rows] = dh + through
        gradients = [self.of_example(h[a:b], t[a:b], dz[a:b], dscores[:, a:b], weight, v)
                     for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        names = [f"{self.name}.{n}" for n in ("weight", "bias", "v") if self.bias or n != "bias"]
        return dx, {name: add_examples([g[name] for g in gradients]) for name in names if gradients}

    def of_example(self, h, t, dz, dscores, weight, v):
        """Parameter gradients of one example."""
        dweight, dbias, dv = np.empty_like(weight), np.empty(self.size, F32), np.empty_like(v)
        linear_backward(dz, h, weight, None, dweight, dbias if self.bias else None)
        matmul(np.ascontiguousarray(dscores), t, dv)
        return {f"{self.name}.weight": dweight, f"{self.name}.bias": dbias, f"{self.name}.v": dv}

    @staticmethod
    def weights(saved):
        """(alpha (hops, listed), starts): the distributions of the last forward's saved state."""
        return saved[4], saved[1].starts


@ieee_mode()
def diversity_penalty(alpha, starts, scale: float = 1.0):
    """(penalties (segments,) float64, dalpha): ||A A^T - I||_F^2 of every example, A = its alpha (hops, rows).

    Parameters
    ----------
    alpha : (hops, listed) float32, starts : (segments + 1,) int64, as AttentionPool gives them
    scale : factor of the penalties' sum in the loss

    Returns
    -------
    penalties : products are dot16, minus I in binary32, squares exact in binary64 and added exactly, rounded once
    dalpha : (hops, listed) float32, scale * 4 (A A^T - I) A: scale * 4 rounded to binary32 first, then one product each
    """
    alpha, starts = np.asarray(alpha), np.asarray(starts)
    require(alpha.dtype == np.float32 and alpha.ndim == 2, "alpha", f"{alpha.dtype.name} {alpha.shape}",
            "float32 (hops, listed)")
    penalties, dalpha = np.empty(len(starts) - 1), np.empty_like(alpha)
    for b, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        a = np.ascontiguousarray(alpha[:, begin:end])
        excess, slope = np.empty((len(a), len(a)), F32), np.empty_like(a)
        matmul(a, a, excess, transpose_b=True)
        excess = excess - np.eye(len(a), dtype=F32)
        penalties[b] = math.fsum(float(e) * float(e) for e in excess.reshape(-1))
        matmul(excess, a, slope)
        dalpha[:, begin:end] = F32(4 * scale) * slope
    return penalties, dalpha
