"""The softmax part of bench gemm: softmax(raw / scale + bias) row by row, one thread.

figure  softmax_vs_torch_1t: against torch.softmax(raw / scale + bias), geometric mean over the forward rows
rows    part, form, shape (rows x columns), threads, ns (per element), vs_torch; backward: of raw and bias
"""
import dx_kernels
import numpy as np

from . import geomean, interleave, progress, threads

SHAPES = [(512, 64), (1024, 128), (2048, 256), (3072, 512)]
SCALE = float(np.sqrt(np.float32(32)))


def measured(sides, form, shape, quick):
    with threads(1):
        t = interleave({name: call for name, call in sides.items() if call}, quick, seconds=0.6)
    row = {"part": "softmax", "form": form, "shape": "x".join(map(str, shape)), "threads": 1,
           "ns": 1e9 * t.seconds["dx"] / (shape[0] * shape[1]),
           "vs_torch": t.ratio("torch") if sides["torch"] else None}
    progress(str(row))
    return row


def forward(torch, shape, quick):
    raw, bias = np.random.default_rng(7).standard_normal((2, *shape), np.float32)
    p = np.empty_like(raw)
    sides = {"dx": lambda: dx_kernels.softmax_forward(raw, p, scale=SCALE, bias=bias), "torch": None}
    if torch:
        t_raw, t_bias = torch.from_numpy(raw), torch.from_numpy(bias)
        sides["torch"] = lambda: torch.softmax(t_raw / SCALE + t_bias, -1)
    return measured(sides, "forward", shape, quick)


def backward(torch, shape, quick):
    raw, bias, dp = np.random.default_rng(7).standard_normal((3, *shape), np.float32)
    p, draw, dbias = np.empty((3, *shape), np.float32)
    dx_kernels.softmax_forward(raw, p, scale=SCALE, bias=bias)
    sides = {"dx": lambda: dx_kernels.softmax_backward(p, dp, draw, dbias, scale=SCALE), "torch": None}
    if torch:
        with torch.enable_grad():
            inputs = [torch.from_numpy(x).requires_grad_() for x in (raw, bias)]
            y = torch.softmax(inputs[0] / SCALE + inputs[1], -1)
        t_dp = torch.from_numpy(dp)
        sides["torch"] = lambda: torch.autograd.grad(y, inputs, t_dp, retain_graph=True)
    return measured(sides, "backward", shape, quick)


def rows(torch, quick):
    shapes = SHAPES[1:2] if quick else SHAPES
    ahead = [forward(torch, shape, quick) for shape in shapes]
    back = [backward(torch, shape, quick) for shape in shapes]
    return {"softmax_vs_torch_1t": geomean([row["vs_torch"] for row in ahead])}, ahead + back, []
