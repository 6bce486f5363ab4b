"""Which code reaches a bit of a model, a feature, an order or a release (numerics.md rule 16). The one place."""
from devtools.workspace import ROOT, existing, folder, module

# Everything under packages/*/src is in scope, references and upper packages included, except these files, with why.
OUTSIDE = {
    "dx_numerics/testing/calls.py": "tests",
    "dx_numerics/testing/fuzz.py": "tests",
    "dx_numerics/testing/suite.py": "tests",
    "dx_model/__main__.py": "starts the command",
    "dx_model/command.py": "prints; decides nothing",
    "dx_model/vit/certify/f_unary.py": "compares functions with libm and numpy; decides nothing",
    "dx_train/__main__.py": "starts the command",
    "dx_train/command.py": "prints; decides nothing",
    "dx_train/curve.py": "draws",
    "dx_labels/__main__.py": "starts the command",
    "dx_labels/charts.py": "draws",
    "dx_labels/command.py": "prints; decides nothing",
    "dx_labels/review/server.py": "answers a browser; its secret is random and kept nowhere",
}


def files():
    """The Python files in scope."""
    found = []
    for package in existing():
        source = folder(package) / "src"
        for path in sorted((source / module(package)).rglob("*.py")):
            if path.relative_to(source).as_posix() not in OUTSIDE:
                found.append(path)
    return found


def cython_files():
    """Cython sources: no Python-level arithmetic belongs there, so plain words are forbidden in them."""
    return sorted(p for package in existing() for p in (folder(package) / "src").rglob("*.pyx"))


def stale():
    """Entries of OUTSIDE that name no file."""
    sources = [folder(p) / "src" for p in existing()]
    return [name for name in OUTSIDE if not any((s / name).is_file() for s in sources)]


def shown(path):
    return path.relative_to(ROOT).as_posix()
