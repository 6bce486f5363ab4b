"""Wheels bottom-up in isolation, and environments made from them. Only what changed is built again."""
import hashlib
import json
import os
import shutil
import sys
import tempfile
import venv
from pathlib import Path

from .workspace import (DIST, PACKAGES, ROOT, VENV, Failed, clean_environment, existing, folder, module, python_of, run,
                        say)

SOURCE_SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".c", ".h", ".toml", ".md", ".in", ".typed", ".json",
                   ".html", ".css", ".js", ""}
SETTINGS = ("DX_CYTHON_DEBUG", "DX_SANITIZE", "CC", "CFLAGS")  # what from the environment changes a build


def sources(package):
    """The files that a build of the package reads: git's ignored ones and the tests are not among them."""
    top = folder(package)
    found = []
    for path in sorted(top.rglob("*")):
        parts = path.relative_to(top).parts
        generated = path.suffix == ".c" and parts[0] == "src"
        skip = parts[0] in ("build", "dist", "tests") or any(p.endswith((".egg-info", "__pycache__")) for p in parts)
        if path.is_file() and not skip and not generated and path.suffix in SOURCE_SUFFIXES:
            found.append(path)
    return found


def content_hash(package, below=""):
    """SHA-256 of the package's sources, the build settings and the hash of the package below."""
    h = hashlib.sha256(f"{below}\n{sys.version_info[:2]}\n".encode())
    for name in SETTINGS:
        h.update(f"{name}={os.environ.get(name, '')}\n".encode())
    for path in sources(package):
        h.update(f"{path.relative_to(folder(package)).as_posix()}\n".encode() + path.read_bytes() + b"\n")
    return h.hexdigest()


def staged(package, into):
    """A copy of the package's sources in a fresh folder: builds never write into the tree."""
    target = Path(into) / package
    for path in sources(package):
        copy = target / path.relative_to(folder(package))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    tests = folder(package) / "tests"
    if tests.is_dir():
        shutil.copytree(tests, target / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return target


def find_links(*folders):
    """An environment in which pip, also inside an isolated build, finds the siblings' wheels in these folders."""
    old = os.environ.get("PIP_FIND_LINKS", "")
    links = " ".join([*(Path(f).resolve().as_uri() for f in folders), *old.split()])
    return clean_environment(PIP_FIND_LINKS=links, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")


def make_venv(where):
    """A new virtual environment with pip, from the Python that runs dev.py."""
    say(f"making {where}")
    venv.EnvBuilder(with_pip=True, clear=True, symlinks=os.name != "nt").create(where)


def pip(venv_folder, *arguments, env=None):
    run([python_of(venv_folder), "-m", "pip", *arguments], env=env, quiet=True)


def build_tool():
    """The environment that runs `pip wheel`: .venv, made when missing."""
    if not python_of(VENV).exists():
        make_venv(VENV)
    return VENV


def build_one(package, out, links, tool, kind="wheel"):
    """Builds a wheel or sdist of the package in isolation into `out`; its path."""
    with tempfile.TemporaryDirectory(prefix="dx-build-") as temp:
        source = staged(package, temp)
        made = Path(temp) / "made"
        if kind == "wheel":
            pip(tool, "wheel", "-q", "--no-deps", "-w", made, source, env=find_links(*links))
        else:
            run([python_of(tool), "-m", "build", "--sdist", "-o", made, source], env=find_links(*links), quiet=True)
        files = [p for p in made.iterdir() if p.name.startswith(module(package) + "-")]
        if len(files) != 1:
            raise Failed(f"building {package} gave {len(files)} files: {', '.join(p.name for p in files)}")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(files[0], out / files[0].name))


def build_all(out=DIST, packages=PACKAGES):
    """Builds the wheels of these packages (and those below) bottom-up into `out`, if they changed; package → wheel."""
    out.mkdir(parents=True, exist_ok=True)
    state_file = out / "state.json"
    state = json.loads(state_file.read_text(encoding="utf-8")) if state_file.exists() else {}
    wheels, below = {}, ""
    for package in existing():
        if package not in packages:
            break
        below = content_hash(package, below)
        have = state.get(package, {})
        if have.get("hash") != below or not (out / have.get("wheel", "-")).is_file():
            for old in out.glob(f"{module(package)}-*.whl"):
                old.unlink()
            say(f"building {package}")
            wheel = build_one(package, out, [out], build_tool())
            digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
            state[package] = {"hash": below, "wheel": wheel.name, "sha256": digest}
            state_file.write_text(json.dumps(state, indent=1), encoding="utf-8")
        wheels[package] = out / state[package]["wheel"]
    return wheels


def ensure_installed(where, tools, out=DIST, packages=PACKAGES):
    """An environment with the current wheels and these tools; quick when it is already so. Returns the wheels."""
    wheels = build_all(out, packages)
    if not python_of(where).exists():
        make_venv(where)
    stamp = where / "dx-installed.json"
    have = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
    state = json.loads((out / "state.json").read_text(encoding="utf-8"))
    want = {p: state[p]["sha256"] for p in PACKAGES if p in wheels}
    missing = [t for t in tools if t not in have.get("tools", [])]
    if missing:
        say(f"installing {', '.join(missing)}")
        pip(where, "install", "-q", *missing)
    if have.get("wheels") != want:
        say("installing " + ", ".join(w.name for w in wheels.values()))
        env = find_links(out)
        pip(where, "install", "-q", *wheels.values(), env=env)
        changed = [w for p, w in wheels.items() if have.get("wheels", {}).get(p) != want[p]]
        pip(where, "install", "-q", "--no-deps", "--force-reinstall", *changed, env=env)
    stamp.write_text(json.dumps({"wheels": want, "tools": sorted({*have.get("tools", []), *tools})}), encoding="utf-8")
    return wheels


def relative(path):
    """A path as messages show it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
