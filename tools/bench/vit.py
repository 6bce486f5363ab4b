"""ViT-Tiny (224 x 224, patches of 16, depth 12, width 192, three heads; 5,526,346 parameters) against PyTorch eager
with the same weights, batch 1 and 8.

forward: logits of a batch of images. step: forward, cross-entropy, backward of every parameter, W - lr G; for dx with
the sum over examples and the repacking of the weights. torch runs in the faster of two forms of attention.

figures  forward_vs_torch_1t, _2t, step_vs_torch_1t, _2t: geometric means over the batches
rows     part, batch, threads, dx_ms, vs_torch, and vs_torch_softmax, vs_torch_sdpa of the two forms
"""
from . import geomean, interleave, machine_notes, peer, progress, threads
from ._vit_sides import Dx, Torch, examples

PEERS = ("torch",)
FORMS = {"torch_softmax": False, "torch_sdpa": True}


def row(part, batch, count, sides, quick):
    """One comparison in interleaved rounds."""
    t = interleave({name: getattr(side, part) for name, side in sides.items()}, quick, seconds=4.0 * batch)
    ratios = {f"vs_{name}": t.ratio(name) for name in FORMS if name in sides}
    made = {"part": part, "batch": batch, "threads": count, "dx_ms": 1e3 * t.seconds["dx"],
            "vs_torch": min(ratios.values()) if ratios else None, **ratios}
    progress(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in made.items()))
    return made


def run(quick):
    torch, rows = peer("torch"), []
    for count in (1, 2):
        with threads(count):
            for batch in (1, 8):
                images = examples(batch)
                sides = {"dx": Dx(images)}
                if torch is not None:
                    sides |= {name: Torch(torch, images, fast) for name, fast in FORMS.items()}
                rows += [row(part, batch, count, sides, quick) for part in ("forward", "step")]
                sides["dx"].close()
    figures = {f"{part}_vs_torch_{count}t": geomean([r["vs_torch"] for r in rows
                                                     if (r["part"], r["threads"]) == (part, count)])
               for part in ("forward", "step") for count in (1, 2)}
    return {"figures": figures, "rows": rows, "notes": machine_notes()}
