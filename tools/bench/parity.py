"""docextract's activations, losses and gradients against PyTorch's committed ones (fixtures/docextract_backward): both
float32 runs against PyTorch in float64.

figures  worst_ratio_to_torch_error: our largest error / (torch's largest error + 2^-23 RMS / 2), 2 or less is the
         promise; worst_share, torch_worst_share: of the allowance stored for every element; tensors_compared; the same
         with vit_: a vision transformer of depth 2 in both forms of GELU (fixtures/vit_backward); with vit_tiny_:
         ViT-Tiny at its true shape, computed anew where torch is
rows     layer, tensor, our and torch's largest share of the allowance, ratio (docextract)
"""
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from . import peer, progress

# docextract: the ratio and the share of the specification's implementation. Vision transformers: within the allowance.
PROMISES = {"worst_ratio_to_torch_error": 2.0, "worst_share": 0.14, "vit_worst_share": 1.0, "vit_tiny_worst_share": 1.0}
TESTS = Path(__file__).resolve().parents[2] / "packages" / "dx-model" / "tests"


def layer_of(name):
    """The layer a tensor belongs to: its name without the kind and without weight or bias."""
    parts = name.split("/")[1].split(".")
    return ".".join(parts[:-1]) if parts[-1] in ("weight", "bias") else name


def share(value, reference, allowance):
    atol, rtol = allowance
    return float((np.abs(value - reference) / (atol + rtol * np.abs(reference) + 1e-300)).max(initial=0.0))


def vit_shares(ours, f):
    """(our, torch's largest share of the allowance, tensors) of a vision transformer."""
    return ours.worst(f, ours.run(f))[0], ours.worst(f, f.f32)[0], len(f.f64)


def vit_figures(quick):
    """Figures of the vision transformers; ViT-Tiny's are None without torch or when quick."""
    ours, figures = importlib.import_module("vit_fixture"), {}
    found = {"vit": [vit_shares(ours, ours.load(act)) for act in ("gelu_tanh", "gelu_erf")], "vit_tiny": []}
    if not quick and peer("torch"):
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "parity"))
        oracle = importlib.import_module("vit_backward")
        for values in oracle.cases([{"hidden_act": "gelu_tanh"}]):
            names = ("config", "parameters", "images", "labels", "f32", "f64", "allowance")
            found["vit_tiny"].append(vit_shares(ours, SimpleNamespace(**dict(zip(names, values, strict=True)))))
            progress(f"ViT-Tiny: {found['vit_tiny'][-1]}")
    for kind, rows in found.items():
        for at, name in enumerate(("worst_share", "torch_worst_share", "tensors_compared")):
            values = [row[at] for row in rows]
            figures[f"{kind}_{name}"] = (sum(values) if at == 2 else max(values)) if values else None
    return figures


def run(quick):
    sys.path.insert(0, str(TESTS))
    ours = importlib.import_module("parity_fixture")
    fixture = ours.load()
    got = ours.run(fixture)
    rows = []
    for name, value in got.items():
        ref, torch = fixture.f64[name].reshape(value.shape), fixture.f32[name].astype(np.float64).reshape(value.shape)
        rms, torch_error = float(np.sqrt(np.mean(ref * ref))), float(np.abs(torch - ref).max())
        bound = torch_error + 2.0 ** -24 * rms
        rows.append({"layer": layer_of(name), "tensor": name, "share": share(value, ref, fixture.allowance[name]),
                     "torch_share": share(torch, ref, fixture.allowance[name]),
                     "ratio": float(np.abs(value - ref).max()) / bound if bound else 0.0})
    figures = {"worst_ratio_to_torch_error": max(row["ratio"] for row in rows),
               "worst_share": max(row["share"] for row in rows),
               "torch_worst_share": max(row["torch_share"] for row in rows), "tensors_compared": len(rows)}
    figures |= vit_figures(quick)
    answer = {"figures": figures, "rows": rows, "notes": [f"PyTorch {fixture.torch}; the promised ratio is at most 2"]}
    above = [f"{name} = {figures[name]:.3g}, promised {most:g}" for name, most in PROMISES.items()
             if figures[name] is not None and figures[name] > most]
    if above:
        answer["failed"] = "; ".join(above)
    return answer
