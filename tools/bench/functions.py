"""The functions of dx_numerics: worst errors as the headers state them (the exhaustive test checks them), and speed per
kernel path against torch and numpy, one thread, arrays that stay in the cache.

figures  exp32_worst_ulp, tanh32_worst_ulp, erf32_worst_ulp; exp32_vs_torch_1t, tanh32_vs_torch_1t (best path)
rows     function, path, ns (per element), vs_torch, vs_numpy (their time / ours; None where they have no such function)
"""
import re
from pathlib import Path

import dx_numerics
import numpy as np

from . import interleave, machine_notes, peer, progress, threads

PEERS = ("torch",)
ELEMENTS = 65_536
NUMPY = {"exp": np.exp, "tanh": np.tanh, "log": np.log, "log1p": np.log1p}
STATED = re.compile(r"^ \* ulp (\w+): worst ([\d.]+) at ", re.M)


def worst_ulps():
    """function → worst error in ulp, from the installed headers."""
    folder = Path(dx_numerics.get_include()) / "dx_numerics"
    return {name: float(worst) for header in ("math32.h", "math64.h")
            for name, worst in STATED.findall((folder / header).read_text(encoding="utf-8"))}


def of_numpy(name, x, out):
    """numpy's call for the function of this name (exp, sigmoid, …), or None."""
    function = NUMPY.get(name)
    return (lambda: function(x, out=out)) if function else None


def of_torch(torch, name, x, out):
    """torch's call for the function of this name, or None."""
    if torch is None:
        return None
    x, out = torch.from_numpy(x), torch.from_numpy(out)
    if name == "softplus":
        return lambda: torch.nn.functional.softplus(x)
    function = getattr(torch, name)
    return lambda: function(x, out=out)


def measure(function, path, torch, quick):
    """One row: dx's function on this path beside its peers."""
    name, dtype = function[:-2], np.float32 if function.endswith("32") else np.float64
    x = np.random.default_rng(11).standard_normal(ELEMENTS).astype(dtype) * 3
    if name in ("log", "log1p", "rsqrt"):
        x = np.abs(x)
    outs = [np.empty_like(x) for _ in range(3)]
    ours = getattr(dx_numerics, function)
    sides = {"dx": lambda: ours(x, outs[0]), "torch": of_torch(torch, name, x, outs[1]),
             "numpy": of_numpy(name, x, outs[2])}
    with dx_numerics.kernel_path(path):
        t = interleave({side: call for side, call in sides.items() if call}, quick)
    row = {"function": function, "path": path, "ns": 1e9 * t.seconds["dx"] / ELEMENTS}
    return row | {f"vs_{side}": t.ratio(side) if sides[side] else None for side in ("torch", "numpy")}


def run(quick):
    torch, worst, rows = peer("torch"), worst_ulps(), []
    best = dx_numerics.get_path()
    with threads(1):
        for function in worst:
            for path in dx_numerics.available_paths():
                progress(f"{function} on {path}")
                rows.append(measure(function, path, torch, quick))
    figures = {f"{name}_worst_ulp": worst[name] for name in ("exp32", "tanh32", "erf32")}
    for name in ("exp32", "tanh32"):
        figures[f"{name}_vs_torch_1t"] = next(r["vs_torch"] for r in rows if (r["function"], r["path"]) == (name, best))
    notes = [*machine_notes(), f"{ELEMENTS} elements, standard normal times 3 (absolute values for log, log1p, rsqrt)"]
    if torch is None:
        notes.append("torch is not installed: its ratios are missing")
    return {"figures": figures, "rows": rows, "notes": notes}
