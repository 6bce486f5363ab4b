"""Peak memory of a forward and of a forward with backward, above what is resident after loading, in fresh processes."""
import json
import os
import subprocess
import sys
from pathlib import Path

WORDS = 512
CHILD = """
import json, sys
from bench import _model_sides as sides, threads

def status(key):
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

side_name, part, words = sys.argv[1], sys.argv[2], int(sys.argv[3])
parameters, window, wanted = sides.weights(), sides.encoded(words), sides.targets(words)
small, small_wanted = sides.encoded(8), sides.targets(8)
if side_name == "dx":
    side = sides.Dx(parameters)
else:
    side = sides.Torch(parameters, fast=side_name == "torch_sdpa")
    window, wanted, small, small_wanted = (side.page(window), side.targets(wanted), side.page(small),
                                           side.targets(small_wanted))
call = (lambda w, t: side.forward(w)) if part == "forward" else side.step
with threads(1):
    call(small, small_wanted)  # whatever is made once: code, pools, packed weights
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    for _ in range(3):
        call(window, wanted)
print(json.dumps(status("VmHWM") - before))
"""


def peak_kib(side, part, words):
    """KiB of peak RSS above that after loading; None where the system cannot tell."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, side, part, str(words)], env=env,
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def ratio(quick):
    """(the larger ratio of dx to torch, rows)."""
    words, rows = 128 if quick else WORDS, []
    for part in ("forward", "forward_backward"):
        kib = {side: peak_kib(side, part, words) for side in ("dx", "torch", "torch_sdpa")}
        known = all(kib.values())
        rows.append({"part": f"memory {part}", "words": words, "threads": 1,
                     **{f"{side}_mib": kib[side] / 1024 if kib[side] else None for side in kib},
                     "vs_torch": kib["dx"] / min(kib["torch"], kib["torch_sdpa"]) if known else None})
    ratios = [row["vs_torch"] for row in rows]
    return (max(ratios) if None not in ratios else None), rows
