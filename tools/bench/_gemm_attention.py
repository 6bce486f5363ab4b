"""The attention part of bench gemm: all heads of one page with a bias for every pair, one thread.

figure  attention_vs_torch_1t: forward against torch's scaled_dot_product_attention with the bias as its mask, geometric
        mean over the forward rows
rows    part, form, shape (heads x words x columns of a head), threads, gflops (of the products), vs_torch. "forward
        saved" keeps the probabilities; torch's backward is autograd's of the same call, with the bias' gradient
"""
from functools import partial

import dx_kernels
import numpy as np

from . import geomean, interleave, progress, threads

SHAPES = [(4, 64, 32), (4, 128, 32), (4, 256, 32), (4, 512, 32), (8, 256, 32), (6, 512, 32)]


class Page:
    """Inputs of one shape on both sides."""

    def __init__(self, shape):
        rng = np.random.default_rng(7)
        self.heads, self.n, self.d = shape
        width = self.heads * self.d
        self.qkv = rng.standard_normal((self.n, 3 * width), np.float32)
        self.dout = rng.standard_normal((self.n, width), np.float32)
        self.bias = rng.standard_normal((self.heads, self.n, self.n), np.float32)
        self.out, self.probs, self.dbias = np.empty_like(self.dout), np.empty_like(self.bias), np.empty_like(self.bias)
        self.dqkv = np.empty_like(self.qkv)

    def forward(self, probs=None):
        dx_kernels.attention_forward(self.qkv, self.out, heads=self.heads, bias=self.bias, probs=probs)

    def backward(self):
        dx_kernels.attention_backward(self.dout, self.qkv, self.probs, self.dqkv, self.dbias, heads=self.heads)

    def by_head(self, torch, x):
        """(1, heads, n, d), contiguous, as torch likes it best."""
        return torch.from_numpy(x).reshape(1, self.n, self.heads, self.d).transpose(1, 2).contiguous()

    def torch_inputs(self, torch):
        q, k, v = (self.by_head(torch, x.copy()) for x in np.split(self.qkv, 3, axis=1))
        return q, k, v, torch.from_numpy(self.bias)[None]


def attend(torch, q, k, v, bias):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def measured(page, form, ours, theirs, flops, quick):
    with threads(1):
        t = interleave({"dx": ours, "torch": theirs} if theirs else {"dx": ours}, quick, seconds=0.6)
    row = {"part": "attention", "form": form, "shape": f"{page.heads}x{page.n}x{page.d}", "threads": 1,
           "gflops": 1e-9 * flops / t.seconds["dx"], "vs_torch": t.ratio("torch") if theirs else None}
    progress(str(row))
    return row


def forward(torch, shape, saved, quick):
    page = Page(shape)
    theirs = None
    if torch:
        inputs = page.torch_inputs(torch)
        theirs = partial(attend, torch, *inputs)
    return measured(page, "forward saved" if saved else "forward", lambda: page.forward(page.probs if saved else None),
                    theirs, 4.0 * page.bias.size * page.d, quick)


def backward(torch, shape, quick):
    page = Page(shape)
    page.forward(page.probs)
    theirs = None
    if torch:
        with torch.enable_grad():
            inputs = [x.clone().requires_grad_() for x in page.torch_inputs(torch)]
            y = attend(torch, *inputs)
        dout = page.by_head(torch, page.dout)
        theirs = partial(torch.autograd.grad, y, inputs, dout, retain_graph=True)
    return measured(page, "backward", page.backward, theirs, 8.0 * page.bias.size * page.d, quick)


def rows(torch, quick):
    shapes = SHAPES[1:2] if quick else SHAPES
    ahead = [forward(torch, shape, False, quick) for shape in shapes]
    saved = [forward(torch, shape, True, quick) for shape in shapes]
    back = [backward(torch, shape, quick) for shape in shapes]
    return {"attention_vs_torch_1t": geomean([row["vs_torch"] for row in ahead])}, ahead + saved + back, []
