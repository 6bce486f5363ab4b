"""Matrix products and what is built on them, against numpy (OpenBLAS) and torch (MKL).

figures  vs_numpy_*, vs_torch_*: layer shapes with prepacked weights, 1 and 2 threads; linear_gelu_vs_torch_1t: a linear
         layer with bias and GELU (tanh form); share_of_fma_peak_1t: of the rate of fused multiply-adds in registers.
         softmax_vs_torch_1t, attention_vs_torch_1t, pair_mlp_vs_torch_1t: from the parts beside this file
rows     part, form (NN, NT, TN as stored; QK, PV with heads), shape (rows x contraction x columns), threads, gflops,
         share_of_peak, vs_numpy, vs_torch (their time / ours)
"""
import dx_kernels
import numpy as np

from . import _gemm_attention, _gemm_softmax, geomean, interleave, machine_notes, pair_mlp, peer, progress, threads

PEERS = ("torch",)

LAYERS = [(64, 192, 576), (256, 192, 576), (512, 192, 576), (64, 192, 192), (512, 192, 192), (512, 192, 768),
          (64, 768, 192), (512, 768, 192), (256, 256, 768), (512, 256, 256), (512, 256, 1024), (512, 1024, 256)]
PLAIN = {
    "NT": [(64, 192, 576), (512, 192, 192), (512, 768, 192), (512, 256, 1024)],
    "TN": [(192, 64, 576), (192, 256, 576), (192, 512, 576), (768, 512, 192), (256, 512, 1024), (1024, 64, 256),
           (16, 65536, 32), (32, 65536, 8), (32, 65536, 32)],
    "NT long": [(32, 65536, 16), (8, 65536, 32)],
    "NT few": [(1, 384, 1536), (4, 384, 1536)],
}
HEADS = {
    "QK": [(64, 32, 64), (128, 32, 128), (256, 32, 256), (512, 32, 512), (64, 64, 64), (512, 64, 512)],
    "PV": [(64, 64, 32), (256, 256, 32), (512, 512, 32), (64, 64, 64), (512, 512, 64)],
}
GELU = [(64, 192, 768), (512, 192, 768), (512, 256, 1024)]

def random(*shape):
    return np.random.default_rng(7).standard_normal(shape, np.float32)


def measured(sides, flops, quick, **columns):
    """One row from a dict of callables; "peak", when there, does its own number of operations."""
    peak = sides.pop("peak", None)
    if peak:
        sides["peak"], peak_flops = peak
    t = interleave({name: call for name, call in sides.items() if call}, quick, seconds=0.6)
    row = columns | {"gflops": 1e-9 * flops / t.seconds["dx"],
                     "share_of_peak": t.ratio("peak") * flops / peak_flops if peak else None}
    row |= {f"vs_{name}": t.ratio(name) if sides.get(name) else None for name in ("numpy", "torch")}
    progress(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else str(v) for k, v in row.items() if v is not None))
    return row


def peak():
    """The probe of the rate of fused multiply-adds, and its operations."""
    return (lambda: dx_kernels.fma_probe(20_000)), dx_kernels.fma_probe(20_000)


def product(torch, form, shape, n_threads, quick):
    """One row for a product a @ b: NN with b packed beforehand, the others with the operands as they are stored."""
    m, k, n = shape
    heads = (8,) if form in HEADS else ()
    transpose_a, transpose_b = form.startswith("TN"), form.startswith("NT") or form == "QK"
    a = random(*heads, *((k, m) if transpose_a else (m, k)))
    b = random(*heads, *((n, k) if transpose_b else (k, n)))
    outs = [np.empty((*heads, m, n), np.float32) for _ in range(3)]
    left, right = (x.swapaxes(-1, -2) if t else x for x, t in ((a, transpose_a), (b, transpose_b)))
    with threads(n_threads):
        ours = dx_kernels.PackedMatrix(b) if form == "NN" else b
        sides = {"dx": lambda: dx_kernels.matmul(a, ours, outs[0], transpose_a=transpose_a, transpose_b=transpose_b),
                 "numpy": lambda: np.matmul(left, right, out=outs[1]), "torch": None}
        if torch:
            t_left, t_right = (torch.from_numpy(x.swapaxes(-1, -2)).transpose(-1, -2) if t else torch.from_numpy(x)
                               for x, t in ((left, transpose_a), (right, transpose_b)))
            t_out = torch.from_numpy(outs[2])
            sides["torch"] = lambda: torch.matmul(t_left, t_right, out=t_out)
        if n_threads == 1:
            sides["peak"] = peak()
        return measured(sides, 2.0 * m * k * n * (heads or (1,))[0], quick, part="product", form=form,
                        shape="x".join(map(str, heads + shape)), threads=n_threads)


def linear(torch, activation, shape, quick):
    """One row for a linear layer with bias and activation, weight packed beforehand."""
    m, k, n = shape
    x, weight, bias, y = random(m, k), random(n, k) / np.sqrt(np.float32(k)), random(n), np.empty((m, n), np.float32)
    packed = dx_kernels.PackedMatrix(weight, transpose_b=True)
    sides = {"dx": lambda: dx_kernels.linear_forward(x, packed, bias, y, activation=activation), "torch": None}
    if torch:
        f, tensors = torch.nn.functional, [torch.from_numpy(v) for v in (x, weight, bias)]
        after = {"relu": f.relu, "gelu_erf": f.gelu, "gelu_tanh": lambda u: f.gelu(u, approximate="tanh")}[activation]
        sides["torch"] = lambda: after(f.linear(*tensors))
    with threads(1):
        return measured(sides, 2.0 * m * k * n, quick, part="linear", form=activation,
                        shape="x".join(map(str, shape)), threads=1)


def run(quick):
    torch = peer("torch")
    figures, rows, notes = {}, [], machine_notes()
    for n_threads in (1, 2):
        layers = [product(torch, "NN", shape, n_threads, quick) for shape in (LAYERS[:2] if quick else LAYERS)]
        rows += layers
        figures[f"vs_numpy_{n_threads}t"] = geomean([row["vs_numpy"] for row in layers])
        figures[f"vs_torch_{n_threads}t"] = geomean([row["vs_torch"] for row in layers])
        if n_threads == 1:
            share = figures["share_of_fma_peak_1t"] = geomean([row["share_of_peak"] for row in layers])
            notes += [f"{name} reaches {share / figures[f'vs_{name}_1t']:.2f} of the FMA peak at layer shapes, 1 thread"
                      for name in ("numpy", "torch") if figures[f"vs_{name}_1t"]]
        rows += [product(torch, form, shape, n_threads, quick) for form, shapes in (PLAIN | HEADS).items()
                 for shape in (shapes[:1] if quick else shapes)]
    for activation in ("gelu_tanh", "gelu_erf", "relu"):
        layers = [linear(torch, activation, shape, quick) for shape in (GELU[:1] if quick else GELU)]
        rows += layers
        if activation == "gelu_tanh":
            figures["linear_gelu_vs_torch_1t"] = geomean([row["vs_torch"] for row in layers])
    for part in (_gemm_softmax, _gemm_attention):
        more, part_rows, part_notes = part.rows(torch, quick)
        figures |= more
        rows += part_rows
        notes += part_notes
    pairs = pair_mlp.run(quick)
    figures["pair_mlp_vs_torch_1t"] = pairs["figures"]["pair_mlp_vs_torch_1t"]
    rows += [{"part": "pair_mlp"} | row for row in pairs["rows"]]
    return {"figures": figures, "rows": rows, "notes": notes}
