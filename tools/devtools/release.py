"""`dev.py version X`: the one version, written to every place that holds it."""
import re

from .workspace import ROOT, Failed, existing, folder, module, version


def places():
    """Every (file, pattern) that holds the version; group 2 of each match is the version."""
    found = [(ROOT / "pyproject.toml", r'(\[tool\.dx\]\nversion = ")([^"]+)(")')]
    for package in existing():
        found.append((folder(package) / "pyproject.toml", r'(\nversion = ")([^"]+)(")'))
        found.append((folder(package) / "pyproject.toml", r'("dx-[a-z]+(?:\[[a-z,]+\])? == )([^"]+)(")'))
        found.append((folder(package) / "src" / module(package) / "__init__.py", r'(\n__version__ = ")([^"]+)(")'))
    return found


def disagreeing():
    """Places whose version is not the one of the root pyproject.toml, as texts; a place without one counts too."""
    wrong = []
    for file, pattern in places():
        found = [m[1] for m in re.findall(pattern, file.read_text(encoding="utf-8"))]
        pin_of_lowest = "dx-[a-z]+" in pattern and "dx-numerics" in file.parts
        if not found and not pin_of_lowest:
            wrong.append(f"{file.relative_to(ROOT)}: no version")
        wrong += [f"{file.relative_to(ROOT)}: {v}, not {version()}" for v in found if v != version()]
    return wrong


def set_version(new):
    """Writes the version everywhere; returns the exit code."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", new):
        raise Failed(f"version {new!r}: expected X.Y.Z, or X.Y.Z with a1, b1, rc1")
    for file, pattern in places():
        text = file.read_text(encoding="utf-8")
        file.write_text(re.sub(pattern, lambda m: m[1] + new + m[3], text), encoding="utf-8")
    print(new)
    return 0
