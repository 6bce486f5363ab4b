"""`dev.py demo` and `dev.py screenshots`: build, install, and run tools/demo.py or tools/screenshots.py in .venv."""
from . import build
from .workspace import ROOT, VENV, python_of, run


def demo():
    build.ensure_installed(VENV, [])
    return run([python_of(VENV), ROOT / "tools" / "demo.py"], check=False)


def screenshots(folder):
    build.ensure_installed(VENV, [])
    return run([python_of(VENV), ROOT / "tools" / "screenshots.py", folder], check=False)
