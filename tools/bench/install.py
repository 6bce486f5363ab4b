"""What dx costs before it does anything: bytes to download, seconds to install, seconds to import."""
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from bench import progress

PACKAGES = ("dx-numerics", "dx-kernels", "dx-model", "dx-train", "dx-labels")
INFERENCE = PACKAGES[:3]
IMPORT = ("import time, numpy, safetensors.numpy\nt = time.perf_counter()\nimport {}\n"
          "print(time.perf_counter() - t)")


def seconds_to_install(wheels, temp):
    """pip install of all five wheels into an environment that has their third-party needs already."""
    where = Path(temp) / "venv"
    venv.EnvBuilder(with_pip=True).create(where)
    python = where / "bin" / "python"
    quiet = {"check": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    needs = [f"{name}=={importlib.metadata.version(name)}" for name in ("numpy", "safetensors", "tqdm")]
    subprocess.run([python, "-m", "pip", "install", "-q", *needs], **quiet)
    start = time.perf_counter()
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--find-links", wheels[0].parent, *wheels],
                   **quiet)
    return time.perf_counter() - start


def seconds_to_import(module, rounds):
    """Median over fresh processes of the import's time after numpy and safetensors are in."""
    command = [sys.executable, "-c", IMPORT.format(module)]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(rounds)]
    return statistics.median(times)


def run(quick):
    dist = Path(os.environ.get("DX_WHEELS", Path(__file__).resolve().parents[2] / "dist"))
    wheels = [next(dist.glob(p.replace("-", "_") + "-*.whl")) for p in PACKAGES]
    sizes = {p: w.stat().st_size for p, w in zip(PACKAGES, wheels)}
    rows = [{"package": p, "wheel_bytes": sizes[p]} for p in PACKAGES]
    for row in rows:
        progress(f"import {row['package']}")
        row["import_seconds_beyond_numpy"] = seconds_to_import(row["package"].replace("-", "_"), 3 if quick else 15)
    notes = ["imports: median of fresh processes, after numpy and safetensors"]
    install = None
    try:
        with tempfile.TemporaryDirectory() as temp:
            install = seconds_to_install(wheels, temp)
        notes.append("install: the five wheels from a folder, third-party needs already there")
    except subprocess.CalledProcessError as error:
        notes.append(f"install_seconds not taken: {error}")
    figures = {"code_bytes_total": sum(sizes.values()), "inference_code_bytes": sum(sizes[p] for p in INFERENCE),
               "base_bytes": None, "install_seconds": install,
               "import_seconds_beyond_numpy": rows[2]["import_seconds_beyond_numpy"]}
    notes += ["base_bytes: there is no base model yet", "import_seconds_beyond_numpy is dx_model's"]
    return {"figures": figures, "rows": rows, "notes": notes}
