"""The pair MLP of a page, 16 features → 32 units (ReLU) → 8 heads for all n² pairs, against torch in its better layout.

figures  pair_mlp_vs_torch_1t (forward, geometric mean over the pages), pair_mlp_backward_vs_torch_1t (forward and
         backward together, as torch times them)
rows     words, pass, dx_ms, vs_torch, layout (the one in which torch was faster)
"""
import numpy as np

from . import geomean, interleave, machine_notes, peer, progress, threads

PEERS = ("torch",)
INPUTS, UNITS, HEADS = 16, 32, 8


def _torch_sides(torch, arrays):
    """layout → (forward, forward and backward): pairs as rows of linear layers, or as columns of matrix products."""
    x, dy, weights = arrays["x"], arrays["dy"], [torch.tensor(arrays[name]) for name in ("w1", "b1", "w2", "b2")]
    by_layout = {"rows": (torch.tensor(np.ascontiguousarray(x.T)), torch.tensor(np.ascontiguousarray(dy.T))),
                 "columns": (torch.tensor(x), torch.tensor(dy))}
    linear = torch.nn.functional.linear

    def compute(layout, w1, b1, w2, b2):
        x = by_layout[layout][0]
        if layout == "rows":
            return linear(torch.relu(linear(x, w1, b1)), w2, b2)
        return torch.addmm(b2[:, None], w2, torch.relu(torch.addmm(b1[:, None], w1, x)))

    def forward(layout):
        with torch.no_grad():
            compute(layout, *weights)

    def both(layout):
        parameters = [w.clone().requires_grad_() for w in weights]
        compute(layout, *parameters).backward(by_layout[layout][1])
    return {name: (lambda name=name: forward(name), lambda name=name: both(name)) for name in by_layout}


def rows(quick, sizes=(128, 256, 512)):
    """One row a page size and pass; the caller imports torch and sets the threads."""
    import dx_kernels as k
    torch, rng, result = peer("torch"), np.random.default_rng(17), []
    for words in sizes[:1] if quick else sizes:
        progress(f"pair MLP, {words} words")
        shapes = {"x": (INPUTS, words * words), "w1": (UNITS, INPUTS), "b1": (UNITS,), "w2": (HEADS, UNITS),
                  "b2": (HEADS,), "dy": (HEADS, words * words)}
        a = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        parameters = [a[name] for name in ("w1", "b1", "w2", "b2")]
        y, gradients = np.empty_like(a["dy"]), [np.empty_like(p) for p in parameters]

        def forward(a=a, parameters=parameters, y=y):
            k.pair_mlp_forward(a["x"], *parameters, y)

        def both(a=a, parameters=parameters, gradients=gradients, forward=forward):
            forward()
            k.pair_mlp_backward(a["dy"], a["x"], None, *parameters[:3], *gradients)
        peers = _torch_sides(torch, a) if torch else {}
        for i, (name, ours) in enumerate((("forward", forward), ("forward and backward", both))):
            t = interleave({"dx": ours, **{layout: calls[i] for layout, calls in peers.items()}}, quick)
            best = min(peers, key=t.seconds.get, default=None)
            result.append({"words": words, "pass": name, "dx_ms": 1e3 * t.seconds["dx"],
                           "vs_torch": t.ratio(best) if best else None, "layout": best})
    return result


def run(quick):
    peer("torch")  # before the threads are set
    with threads(1):
        measured = rows(quick)
    figures = {name: geomean([row["vs_torch"] for row in measured if row["pass"] == kind])
               for name, kind in (("pair_mlp_vs_torch_1t", "forward"),
                                  ("pair_mlp_backward_vs_torch_1t", "forward and backward"))}
    return {"figures": figures, "rows": measured, "notes": machine_notes()}
