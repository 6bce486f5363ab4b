"""`dev.py bench NAME`: runs tools/bench/NAME.py in its own process and completes its answer (protocol: tools/bench)."""
import ast
import datetime
import json
import os
import subprocess
import tempfile
from pathlib import Path

from . import build
from .workspace import ROOT, VENV, Failed, clean_environment, output, python_of, run, say, version

FOLDER = ROOT / "tools" / "bench"
BENCH_VENV = ROOT / ".venv-bench"
RESULTS = ROOT / "docs" / "results.md"
# Settings from outside that would slow a peer down or give it other threads than dx.
PEER_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
                 "GOTO_NUM_THREADS", "OMP_DYNAMIC", "KMP_AFFINITY", "MKL_CBWR", "MKL_DYNAMIC",
                 "NPY_DISABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")
CHILD = """
import importlib, json, sys
module = importlib.import_module("bench." + sys.argv[1])
answer = module.run(sys.argv[2] == "quick")
import dx_numerics
answer["numerics_version"] = getattr(dx_numerics, "NUMERICS_VERSION", None)
with open(sys.argv[3], "w", encoding="utf-8") as f:
    json.dump(answer, f, allow_nan=False)
"""


def names():
    """The benches there are."""
    return sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))


def declared(file, name):
    """A literal that a bench module assigns at its top level, without importing it."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]:
            return ast.literal_eval(node.value)
    return None


def has(python, peers):
    """Whether this interpreter has every one of these modules (without importing them)."""
    code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(n) is None for n in sys.argv[1:]))"
    return run([python, "-c", code, *peers], check=False, quiet=False) == 0


def interpreter(peers, no_build):
    """The environment of a bench: .venv when it has the peers, otherwise .venv-bench with the pinned ones."""
    if not no_build:
        build.ensure_installed(VENV, [])
    python = python_of(VENV)
    if not peers or has(python, peers):
        return python
    pinned = declared(FOLDER / "__init__.py", "PINNED")
    try:
        build.ensure_installed(BENCH_VENV, [pinned[name] for name in peers])
    except Failed as error:
        wanted = " ".join(pinned[name] for name in peers)
        say(f"{error}\nThe peers of this bench could not be installed ({wanted}); their figures will be null.")
        return python
    return python_of(BENCH_VENV)


def commit():
    """The commit of the tree, with -dirty when tracked files differ; None outside git."""
    try:
        dirty = "-dirty" if output(["git", "status", "--porcelain", "-uno"]).strip() else ""
        return output(["git", "rev-parse", "HEAD"]).strip() + dirty
    except (Failed, OSError):
        return None


def take(name, quick, no_build):
    """Runs the bench; the complete answer as a dict."""
    file = FOLDER / f"{name}.py"
    if name not in names():
        raise Failed(f"bench {name!r}: there is none; there are: {', '.join(names()) or 'none yet'}")
    python = interpreter(declared(file, "PEERS") or (), no_build)
    env = clean_environment(PYTHONPATH=str(ROOT / "tools"))
    for key in PEER_SETTINGS:
        env.pop(key, None)
    with tempfile.TemporaryDirectory() as temp:
        answer_file = Path(temp) / "answer.json"
        command = [str(python), "-c", CHILD, name, "quick" if quick else "full", str(answer_file)]
        done = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=2, check=False)
        if done.returncode:
            raise Failed(f"bench {name} failed with exit code {done.returncode}")
        answer = json.loads(answer_file.read_text(encoding="utf-8"))
    head = {"bench": name, "version": version(), "numerics_version": answer.pop("numerics_version"), "commit": commit(),
            "quick": quick}
    rest = {"figures": answer.pop("figures"), "rows": answer.pop("rows", []), "notes": answer.pop("notes", [])}
    return {**head, **rest, **answer}


def show(value):
    """A cell: numbers with four significant digits."""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return "null" if value is None else str(value)


def table(rows):
    """Rows (dicts) as a Markdown table; the columns are the keys in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(show(row.get(c, "")) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def markdown(answer):
    """The bench's section of docs/results.md."""
    parts = [f"## {answer['bench']}", "",
             f"Version {answer['version']}, numerics version {answer['numerics_version']}, commit {answer['commit']}, "
             f"taken {datetime.date.today().isoformat()}.", "",
             table([{"figure": k, "value": v} for k, v in answer["figures"].items()])]
    if answer["rows"]:
        parts += ["", table(answer["rows"])]
    if answer["notes"]:
        parts += [""] + [f"- {note}" for note in answer["notes"]]
    return "\n".join(parts) + "\n"


def record(answer):
    """Replaces the bench's section of docs/results.md, or adds it at the end."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# Results\n"
    sections = text.split("\n## ")
    new = markdown(answer)[len("## "):]
    for i, section in enumerate(sections[1:], 1):
        if section.split("\n", 1)[0].strip() == answer["bench"]:
            sections[i] = new
            break
    else:
        sections.append(new)
    text = "\n## ".join(s.rstrip("\n") + "\n" for s in sections)
    temp = RESULTS.with_suffix(".tmp")
    temp.write_text(text, encoding="utf-8")
    os.replace(temp, RESULTS)


def bench(name, as_json, quick, keep, no_build):
    """The command; returns the exit code."""
    answer = take(name, quick, no_build)
    if keep:
        if quick:
            raise Failed("--record with --quick: a quick run is a smoke test, its numbers are not kept")
        record(answer)
        say(f"recorded in {RESULTS.relative_to(ROOT)}")
    print(json.dumps(answer, indent=None if as_json else 1) if as_json else markdown(answer), flush=True)
    if answer.get("failed"):
        say(f"bench {name}: {answer['failed']}")
        return 1
    return 0
