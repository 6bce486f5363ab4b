"""`dev.py contracts [--write]`: what each package offers to the one above, pinned in tests/contracts/<package>.json.

One fact a line (devtools/probe.py says which). The check lists every REMOVED, CHANGED and UNPINNED fact at once;
--write makes the installed packages' facts the pinned ones. A golden digest belongs to a numerics version: when bits
move on purpose, NUMERICS_VERSION rises in the same change.
"""
import ast
import json

from . import build
from .workspace import PACKAGES, ROOT, VENV, existing, folder, module, output, python_of, say

FOLDER = ROOT / "tests" / "contracts"
GOLDEN = ROOT / "tests" / "golden"
PROBE = ROOT / "tools" / "devtools" / "probe.py"


def actual(package, python):
    """The facts of the installed package, as that Python sees it with nothing else on its path."""
    golden = GOLDEN / f"{module(package)}.py"
    command = [python, "-I", PROBE, package, *([golden] if golden.exists() else [])]
    return json.loads(output(command, cwd="/"))


def pinned(package):
    path = FOLDER / f"{package}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def compare(old, new):
    """Lines BROKEN / REMOVED / CHANGED / UNPINNED, every one."""
    lines = [f"BROKEN    {key.removeprefix('broken ')}: {new[key]}" for key in sorted(new) if key.startswith("broken ")]
    new = {key: value for key, value in new.items() if not key.startswith("broken ")}
    lines += [f"REMOVED   {key}" for key in sorted(old.keys() - new.keys())]
    lines += [f"CHANGED   {key}\n            pinned {json.dumps(old[key])}\n            now    {json.dumps(new[key])}"
              for key in sorted(old.keys() & new.keys()) if old[key] != new[key]]
    return lines + [f"UNPINNED  {key}" for key in sorted(new.keys() - old.keys())]


def taken(package):
    """The names that a package's below.py takes from the package below."""
    tree = ast.parse((folder(package) / "src" / module(package) / "below.py").read_text(encoding="utf-8"))
    below = module(PACKAGES[PACKAGES.index(package) - 1])
    return sorted(f"name {below}.{a.name}" for n in ast.walk(tree)
                  if isinstance(n, ast.ImportFrom) and n.module == below for a in n.names)


def text(facts):
    """The pinned form: one fact a line, sorted."""
    lines = [f"{json.dumps(key)}: {json.dumps(facts[key], sort_keys=True)}" for key in sorted(facts)
             if not key.startswith("broken ")]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def contracts(write, no_build=False):
    """The command; exit code 1 when something differs."""
    if not no_build:
        build.ensure_installed(VENV, [])
    different = 0
    for package in existing():
        new = actual(package, python_of(VENV))
        lines = compare(pinned(package), new)
        different += len(lines)
        if write:
            FOLDER.mkdir(parents=True, exist_ok=True)
            (FOLDER / f"{package}.json").write_text(text(new), encoding="utf-8")
        for line in lines:
            print(f"{package}: {line}")
    if write:
        say(f"{different} differences, now pinned")
    return 1 if different and not write else 0
