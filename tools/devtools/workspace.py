"""The tree: where things are, the one version, the order of the packages, running programs."""
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("dx-numerics", "dx-kernels", "dx-model", "dx-train", "dx-labels")  # bottom-up
COMPILED = ("dx-numerics", "dx-kernels")
TEST_TOOLS = ("pytest>=8", "hypothesis>=6", "ruff>=0.9", "pypdfium2>=4.30", "tokenizers>=0.20")
VENV = ROOT / ".venv"
DIST = ROOT / "dist"


class Failed(Exception):
    """The asked-for thing failed; the text says what. dev.py prints it and exits with 1."""


def say(text):
    """One line of progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def module(package):
    """'dx-numerics' → 'dx_numerics'."""
    return package.replace("-", "_")


def folder(package):
    return ROOT / "packages" / package


def existing():
    """The packages that have a pyproject.toml, bottom-up."""
    return [p for p in PACKAGES if (folder(p) / "pyproject.toml").is_file()]


def above(package):
    """The package and all above it, bottom-up."""
    return [p for p in existing() if PACKAGES.index(p) >= PACKAGES.index(package)]


def version():
    """The one version, from [tool.dx] in the root pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["dx"]["version"]


def python_of(venv):
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def clean_environment(**extra):
    """The environment for children: nothing that makes Python see other code or print other text."""
    drop = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTEST_ADDOPTS",
            "DX_KERNEL_PATH", "DX_DEGREE"}
    kept = {k: v for k, v in os.environ.items() if k not in drop}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **extra}


def run(command, *, cwd=ROOT, env=None, quiet=False, check=True):
    """Runs a program without stdin. quiet: its output is shown only when it fails. Returns the exit code."""
    command = [str(part) for part in command]
    done = subprocess.run(command, cwd=cwd, env=env or clean_environment(), stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE if quiet else None, stderr=subprocess.STDOUT if quiet else None,
                          text=True, errors="replace")
    if done.returncode and quiet:
        sys.stderr.write(done.stdout)
    if done.returncode and check:
        raise Failed(f"exit code {done.returncode}: {shlex.join(command)}")
    return done.returncode


def output(command, *, cwd=ROOT, env=None):
    """Standard output of a program; Failed when it fails."""
    command = [str(part) for part in command]
    done = subprocess.run(command, cwd=cwd, env=env or clean_environment(), stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise Failed(f"exit code {done.returncode}: {shlex.join(command)}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout
