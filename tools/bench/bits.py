"""Are the bits the same? Every public function of dx-numerics and dx-kernels on every kernel path and degree against
the portable path at degree 1, packed operands against plain ones, and fresh processes in other environments.

figures  compared (calls whose results were compared), differences (0, or the bench fails), idle_step_slowdown (a step
         of AdamW after 5,000 without gradient / one of the first, worst path: below 2, or the bench fails)
rows     environment, calls, differences, where (the functions that differ)
"""
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dx_kernels
import numpy as np

from . import progress

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / "packages" / package / "tests") for package in ("dx-numerics", "dx-kernels", "dx-model")]
CHILD = Path(__file__).with_name("_bits_sweep.py")
DEGREES = (1, 2, 3, 4, 7)
QUICK = {"sizes": (0, 1, 17), "kinds": ("plain", "wild")}
IDLE_STEPS = 5000


def registries():
    """The registries of both packages in one, and the module with their machinery."""
    sys.path[:0] = [folder for folder in FOLDERS if folder not in sys.path]
    import numerics_calls
    import page_calls
    from dx_numerics.testing import calls

    return calls, {**numerics_calls.REGISTRY, **page_calls.REGISTRY}


def row(environment, calls, wrong):
    """One row; wrong: labels of what differs."""
    where = ", ".join(sorted({label.split()[0] for label in wrong})[:8])
    return {"environment": environment, "calls": calls, "differences": len(wrong), "where": where}


# --- in this process: paths, degrees, packed operands ---------------------------------------------------------------

def paths_and_degrees(quick):
    """A row for each path and degree."""
    calls, registry = registries()
    with dx_kernels.kernel_path("portable"), dx_kernels.degree(1):
        every = list(calls.sweep(registry, **(QUICK if quick else {})))
        want = [calls.Run(made).digest() for _, made in every]
    for path in dx_kernels.available_paths():
        for degree in (1, 3) if quick else DEGREES:
            progress(f"{path}, degree {degree}")
            with dx_kernels.kernel_path(path), dx_kernels.degree(degree):
                wrong = [label for (label, made), digest in zip(every, want, strict=True)
                         if calls.Run(made).digest() != digest]
            yield row(f"path {path}, degree {degree}", len(every), wrong)


def packed_operands(quick):
    """A row: products and linear layers with a PackedMatrix against the same with plain arrays."""
    calls, _ = registries()
    import kernel_calls

    count, wrong = 0, []
    for path, n, kind in itertools.product(dx_kernels.available_paths(), calls.SIZES[:5] if quick else calls.SIZES,
                                           calls.KINDS):
        with dx_kernels.kernel_path(path), dx_kernels.degree(2):
            for name, maker in kernel_calls.PACKED_PAIRS.items():
                for plain, packed in maker(n, calls.Draw(f"{name} {n}", kind)):
                    count += 1
                    if calls.Run(plain).digest() != calls.Run(packed).digest():
                        wrong.append(f"{name} n={n} {kind} on {path}")
    return row("packed operands against plain ones", count, wrong)


# --- idle optimizer rows --------------------------------------------------------------------------------------------

def idle_slowdown():
    """Time of an AdamW step after many without gradient / of an early one, the worst path; 27 where moments linger
    below the normal range, which processors compute slowly. (1 - beta^step by multiplication is in it: some us.)"""
    n, worst = 50_000, 0.0
    for path in dx_kernels.available_paths():
        w, m, v = np.ones(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.float32)
        seconds = []
        with dx_kernels.kernel_path(path), dx_kernels.degree(1):
            g = np.full(n, 1e-15, np.float32)
            for step in range(1, IDLE_STEPS + 1):
                start = time.perf_counter()
                dx_kernels.adamw_step(w, g, m, v, step=step, rate=1e-3)
                seconds.append(time.perf_counter() - start)
                if step == 1:
                    g[:] = 0
        worst = max(worst, min(seconds[-200:]) / min(seconds[1:201]))
    return worst


# --- other processes ------------------------------------------------------------------------------------------------

def sweep_in(python, quick, cache, mode="ieee", **settings):
    """What a fresh process of the interpreter prints (_bits_sweep.py); None, the reason on stderr, if it fails."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DX_", "PYTHON", "NPY_", "LC_"))}
    # The sources' numbers are read once, in the usual mode: other rounding would change the reading of 0.1.
    env |= {"PYTHONPYCACHEPREFIX": str(cache), **settings}
    command = [str(python), "-W", "ignore", str(CHILD), mode, "quick" if quick else "full", *FOLDERS]
    done = subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        progress(f"{python} {mode} {settings}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def numpy_features():
    """CPU features that numpy would use here beyond its baseline, as NPY_DISABLE_CPU_FEATURES takes them."""
    core = getattr(np, "_core", None) or np.core
    umath = core._multiarray_umath
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


def locales():
    """Some locales of this machine, odd ones first."""
    found = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    odd = [name for name in found if name.startswith(("tr_TR", "de_DE", "ar_", "ja_JP"))][:2]
    return ["C", *odd, *[name for name in found if name.lower() in ("c.utf8", "c.utf-8")][:1]]


def environments(quick):
    """(name, floating-point mode, settings) of each process of this interpreter."""
    for path in dx_kernels.available_paths():
        for degree in (3,) if quick else DEGREES:
            settings = {"DX_KERNEL_PATH": path, "DX_DEGREE": str(degree)}
            yield " ".join(f"{k}={v}" for k, v in settings.items()), "ieee", settings
    for seed in ("1",) if quick else ("0", "1", "20", "4294967295"):
        yield f"PYTHONHASHSEED={seed}", "ieee", {"PYTHONHASHSEED": seed}
    for name in locales()[:1 if quick else None]:
        yield f"LC_ALL={name}", "ieee", {"LC_ALL": name}
    features = numpy_features()
    if features:
        yield f"NPY_DISABLE_CPU_FEATURES={features}", "ieee", {"NPY_DISABLE_CPU_FEATURES": features}
    for mode in ("up", "flush") if quick else ("up", "down", "zero", "flush"):
        text = "subnormals flushed to zero" if mode == "flush" else f"rounding {mode}"
        yield f"{text} when dx is imported", mode, {}


def interpreters():
    """version → executable of each CPython 3.11 to 3.13 that starts: on PATH, or installed by pyenv."""
    found = {f"3.{sys.version_info.minor}": sys.executable}
    candidates = [(f"3.{minor}", [shutil.which(f"python3.{minor}")]) for minor in (11, 12, 13)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        top = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=True).stdout.strip()
        candidates += [(version, sorted(Path(top, "versions").glob(f"{version}.*/bin/python"))) for version, _ in
                       candidates]
    for version, programs in candidates:
        for program in programs:
            if version not in found and program:
                done = subprocess.run([program, "-c", "import sys; print('3.%d' % sys.version_info[1])"],
                                      capture_output=True, text=True, check=False)
                if done.returncode == 0 and done.stdout.strip() == version:
                    found[version] = str(program)
    return found


def other_venvs(notes):
    """(name, interpreter) of environments with other versions of CPython and numpy, made in .venv-bits-…."""
    wheels = [str(w) for w in sorted(Path(os.environ.get("DX_WHEELS", ROOT / "dist")).glob("dx_*.whl"))
              if w.name.startswith(("dx_numerics", "dx_kernels", "dx_model"))]
    there = interpreters()
    notes += [f"CPython {version} is not here" for version in ("3.11", "3.12", "3.13") if version not in there]
    if len(wheels) != 3:
        notes.append("no wheels in dist: other versions of CPython and numpy were not tried")
        return
    for version, program in sorted(there.items()):
        for numpy in ("numpy==1.26.0", "numpy") if version != "3.13" else ("numpy==2.1.0", "numpy"):
            where = ROOT / f".venv-bits-{version}-{numpy.replace('==', '-')}"
            pip = [str(where / "bin" / "python"), "-m", "pip", "install", "-q"]
            try:
                if not (where / "bin" / "python").exists():
                    progress(f"making {where.name}")
                    subprocess.run([program, "-m", "venv", "--clear", where], check=True, capture_output=True)
                    subprocess.run([*pip, numpy, "safetensors"], check=True, capture_output=True)
                subprocess.run([*pip, "--no-deps", "--force-reinstall", *wheels], check=True, capture_output=True)
            except (OSError, subprocess.CalledProcessError) as error:
                notes.append(f"CPython {version} with {numpy} was not tried: {getattr(error, 'stderr', b'') or error}")
                shutil.rmtree(where, ignore_errors=True)
                continue
            yield where / "bin" / "python"


def processes(quick, notes):
    """A row for each other process, compared with a plain one of this interpreter, function by function."""
    with tempfile.TemporaryDirectory() as cache:
        want = sweep_in(sys.executable, quick, cache)
        if want is None:
            yield row("a fresh process", 0, ["the process failed"])
            return
        if "dx_model.docextract" not in want["digests"]:
            notes.append("dx_model is not installed: the processes compared kernels only")

        def compared(name, got):
            if got is None:
                return row(name, 0, ["the process failed"])
            keys = {*want["digests"], *got["digests"]}
            return row(name, got["calls"], [k for k in keys if want["digests"].get(k) != got["digests"].get(k)])

        for name, mode, settings in environments(quick):
            progress(name)
            yield compared(name, sweep_in(sys.executable, quick, cache, mode, **settings))
        if quick:
            notes.append("quick: other versions of CPython and numpy were not tried")
            return
        for python in other_venvs(notes):
            got = sweep_in(python, quick, Path(cache) / python.parts[-3])
            yield compared(f"CPython {got['python']}, numpy {got['numpy']}" if got else str(python.parts[-3]), got)


def run(quick):
    notes = []
    rows = [*paths_and_degrees(quick), packed_operands(quick), *processes(quick, notes)]
    progress("idle AdamW steps")
    slowdown = idle_slowdown()
    differences = sum(r["differences"] for r in rows)
    answer = {"figures": {"compared": sum(r["calls"] for r in rows), "differences": differences,
                          "idle_step_slowdown": slowdown}, "rows": rows, "notes": notes}
    if differences:
        answer["failed"] = "bits differ: " + "; ".join(r["environment"] for r in rows if r["differences"])
    elif slowdown >= 2:
        answer["failed"] = f"an AdamW step after {IDLE_STEPS} without gradient takes {slowdown:.1f} times as long"
    return answer
