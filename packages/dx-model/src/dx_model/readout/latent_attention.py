"""Rows that attend to a trained dictionary, an MLP, then the mean: a pool with a learned block before it."""
import numpy as np

from ..below import (
    cross_attention_backward,
    cross_attention_forward,
    embedding_forward,
    gelu_erf_backward,
    linear_backward,
    linear_forward,
    pool_sum_backward,
    pool_sum_forward,
)
from .errors import require
from .pooling import F32, add_examples


class LatentAttention:
    """A mode of Pooling: O = softmax of (H Wq)(R Wk)^T / sqrt(dk) over the latents, times R Wv; an MLP; the mean.

    The token rows H are the queries, the trained dictionary R gives keys and values, so the row axis survives the
    attention and only the mean reduces it. Exchanging the two roles fits the same shapes and is another readout.

    Parameters
    ----------
    latents : rows of R; size : heads * dk, outputs of Wq, Wk, Wv; hidden : width of the MLP (GELU in its erf form)
    heads : attention heads, a divisor of size
    name : prefix of the parameters name.latents (latents, D), name.query, name.key, name.value (size, D), name.up
        (hidden, size), name.up_bias (hidden,), name.down (D, hidden), name.down_bias (D,)
    """

    def __init__(self, latents: int, size: int, hidden: int, heads: int = 1, *, name: str = "latent"):
        for what, value in (("latents", latents), ("size", size), ("hidden", hidden), ("heads", heads)):
            require(isinstance(value, int) and value >= 1, f"readout.latent.{what}", value, "a whole number >= 1")
        require(size % heads == 0, "readout.latent.heads", heads, f"a divisor of size = {size}")
        self.latents, self.size, self.hidden, self.heads, self.name = latents, size, hidden, heads, name

    def width(self, d):
        return d

    def shapes(self, d):
        shapes = {"latents": (self.latents, d), "query": (self.size, d), "key": (self.size, d), "value": (self.size, d),
                  "up": (self.hidden, self.size), "up_bias": (self.hidden,), "down": (d, self.hidden),
                  "down_bias": (d,)}
        return {f"{self.name}.{n}": s for n, s in shapes.items()}

    def forward(self, x, selected, parameters, weights):
        p = {n: parameters[f"{self.name}.{n}"] for n in ("latents", "query", "key", "value", "up", "up_bias", "down",
                                                         "down_bias")}
        listed, d = len(selected.rows), x.shape[1]
        h, q, o = np.empty((listed, d), F32), np.empty((listed, self.size), F32), np.empty((listed, self.size), F32)
        k, v = np.empty((self.latents, self.size), F32), np.empty((self.latents, self.size), F32)
        probs = np.empty((self.heads, listed, self.latents), F32)
        embedding_forward(x, selected.rows, h)
        linear_forward(h, p["query"], None, q)
        linear_forward(p["latents"], p["key"], None, k)
        linear_forward(p["latents"], p["value"], None, v)
        cross_attention_forward(q, k, v, o, heads=self.heads, probs=probs)
        pre, up, rows = np.empty((listed, self.hidden), F32), np.empty((listed, self.hidden), F32), np.empty_like(h)
        linear_forward(o, p["up"], p["up_bias"], up, activation="gelu_erf", pre=pre)
        linear_forward(up, p["down"], p["down_bias"], rows)
        y, counts = np.empty((len(selected.kept), d), F32), selected.counts.astype(F32)
        pool_sum_forward(rows, None, selected.starts, y, divisors=counts)
        return y, (x.shape, selected, p, h, q, k, v, o, probs, pre, up, counts)

    def backward(self, dy, saved):
        shape, selected, p, h, q, k, v, o, probs, pre, up, counts = saved
        dx, parts = np.zeros(shape, F32), []
        drows = np.empty_like(h)
        pool_sum_backward(np.ascontiguousarray(dy), None, selected.starts, drows, divisors=counts)
        for a, b in zip(selected.starts[:-1].tolist(), selected.starts[1:].tolist(), strict=True):
            example = {"drows": drows[a:b], "h": h[a:b], "q": q[a:b], "o": o[a:b], "pre": pre[a:b], "up": up[a:b],
                       "probs": np.ascontiguousarray(probs[:, a:b])}
            dh, gradients = self.of_example(p, k, v, **example)
            dx[selected.rows[a:b]] = dh
            parts.append(gradients)
        return dx, {f"{self.name}.{n}": add_examples([g[n] for g in parts]) for n in p if parts}

    def of_example(self, p, k, v, drows, h, q, o, pre, up, probs):
        """(dh, parameter gradients) of one example. dR is the keys' part plus the values' part."""
        g = {n: np.empty_like(value) for n, value in p.items()}
        dup, dpre, do, dq = np.empty_like(up), np.empty_like(up), np.empty_like(o), np.empty_like(q)
        dk, dv, dh = np.empty_like(k), np.empty_like(v), np.empty_like(h)
        linear_backward(drows, up, p["down"], dup, g["down"], g["down_bias"])
        gelu_erf_backward(dup.reshape(-1), np.ascontiguousarray(pre).reshape(-1), dpre.reshape(-1))
        linear_backward(dpre, o, p["up"], do, g["up"], g["up_bias"])
        cross_attention_backward(do, q, k, v, probs, dq, dk, dv, heads=self.heads)
        linear_backward(dq, h, p["query"], dh, g["query"])
        of_keys = np.empty_like(p["latents"])
        linear_backward(dk, p["latents"], p["key"], of_keys, g["key"])
        linear_backward(dv, p["latents"], p["value"], g["latents"], g["value"])
        g["latents"] = of_keys + g["latents"]
        return dh, g
