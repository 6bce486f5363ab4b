"""`dev.py demo`: builds, installs, and runs tools/demo.py in .venv."""
from . import build
from .workspace import ROOT, VENV, python_of, run


def demo():
    build.ensure_installed(VENV, [])
    return run([python_of(VENV), ROOT / "tools" / "demo.py"], check=False)
