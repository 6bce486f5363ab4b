"""A whole training step of docextract, default sizes, batch 8, row counts of the SROIE receipts, against torch eager.

A step is forward, backward, sum over the batch, clipping, AdamW (dx: and repacking). Both sides take the tag loss in
the figures; a row gives tag and run loss, where torch's run loss is a simpler one (each field by itself). torch runs in
the fastest of four forms (softmax or scaled_dot_product_attention, two layouts of the pair MLP), its words packed, its
pair features made once beforehand, while dx makes them in every step.

figures  step_vs_torch_1t, step_vs_torch_2t, memory_vs_torch (peak RSS above that after import and load, processes of
         their own, 1 thread), pages_per_second (dx, 1 thread)
rows     threads, losses, dx_ms a step, vs_torch, torch_form
"""
import os
import subprocess
import sys
from pathlib import Path

from . import interleave, machine_notes, peer, progress, threads
from ._train_sides import BATCH, Ours, Theirs, batches, examples

PEERS = ("torch",)
FORMS = {f"{attention}, pairs as {layout}": (attention == "sdpa", layout == "rows")
         for attention in ("softmax", "sdpa") for layout in ("rows", "columns")}
MEMORY = """
import sys
from bench import threads
from bench._train_sides import Ours, Theirs, batches, examples
side, sdpa, by_rows, count = sys.argv[1], sys.argv[2] == "True", sys.argv[3] == "True", int(sys.argv[4])
groups = examples(batches(count))
if side == "dx":
    model = Ours(groups, {"tag": 1.0})
else:
    import torch
    model = Theirs(torch, groups, {"tag": 1.0}, Ours(groups, {"tag": 1.0}).model, sdpa, by_rows)
def kib(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))
with threads(1):
    before = kib("VmRSS")
    for _ in range(2):
        model.run()
    print(kib("VmHWM") - before)
"""


def peak(side, form, count):
    """MiB of peak RSS above that after import and load, in a process of its own; None when it fails."""
    done = subprocess.run([sys.executable, "-c", MEMORY, side, *map(str, form), str(count)], text=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])})
    if done.returncode:
        progress(done.stderr)
        return None
    return int(done.stdout) / 1024


def fastest(torch, groups, terms, quick):
    """The fastest form of torch on one thread."""
    source = Ours(groups, terms).model
    forms = {name: Theirs(torch, groups, terms, source, *form) for name, form in FORMS.items()}
    with threads(1):
        times = interleave({name: side.run for name, side in forms.items()}, quick, rounds=2 if quick else 5)
    return min(times.seconds, key=times.seconds.get)


def measure(torch, groups, terms, count, form, quick):
    """Times of interleaved rounds with dx and a form of torch."""
    ours = Ours(groups, terms)
    sides = {"dx": ours.run}
    if torch is not None:
        sides["torch"] = Theirs(torch, groups, terms, ours.model, *FORMS[form]).run
    with threads(count):
        return interleave(sides, quick, rounds=3 if quick else 11)


def run(quick):
    torch, result, figures = peer("torch"), [], {}
    groups = examples(batches(1 if quick else 4))
    steps, forms = len(groups), {}
    for count in (1, 2):
        for terms in ({"tag": 1.0}, {"tag": 1.0, "run": 1.0}):
            losses = "+".join(terms)
            progress(f"training step, {count} threads, losses {losses}")
            if torch and losses not in forms:
                forms[losses] = fastest(torch, groups, terms, quick)
            t = measure(torch, groups, terms, count, forms.get(losses), quick)
            ratio = t.ratio("torch") if torch else None
            result.append({"threads": count, "losses": losses, "dx_ms": 1e3 * t.seconds["dx"] / steps,
                           "torch_ms": 1e3 * t.seconds["torch"] / steps if torch else None, "vs_torch": ratio,
                           "torch_form": forms.get(losses)})
            if losses == "tag":
                figures[f"step_vs_torch_{count}t"] = ratio
                if count == 1:
                    figures["pages_per_second"] = BATCH * steps / t.seconds["dx"]
    progress("memory")
    ours = peak("dx", (False, False), steps)
    theirs = peak("torch", FORMS[forms["tag"]], steps) if torch else None
    figures["memory_vs_torch"] = ours / theirs if ours and theirs else None
    notes = [*machine_notes(), f"peak memory of training above that after load, MiB: dx {ours}, torch {theirs}"]
    return {"figures": figures, "rows": result, "notes": notes}
