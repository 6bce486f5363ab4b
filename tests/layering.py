"""Which package may import what (design: only the one below, through below.py), read from the sources."""
import ast
import re

from devtools.workspace import PACKAGES, folder, module

# Third-party modules that a package requires (its pyproject.toml); extras may be imported inside functions only.
THIRD_PARTY = {"dx-numerics": {"numpy"}, "dx-kernels": {"numpy"}, "dx-model": {"numpy", "safetensors"},
               "dx-train": {"numpy", "tqdm"}, "dx-labels": {"numpy"}}
EXTRAS = {"dx-numerics": set(), "dx-kernels": set(), "dx-model": {"tokenizers", "onnx", "onnxruntime"},
          "dx-train": {"ray", "matplotlib"}, "dx-labels": {"pypdfium2"}}
CIMPORTS = {"libc.stdint", "libc.string", "libc.stdlib", "cpython.buffer", "cpython", "cython", "libc"}


def imported(source):
    """(line, module, names, inside a function?) for every import statement of this Python source."""
    tree = ast.parse(source)
    inner = {id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
             for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, [], id(node) in inner
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.lineno, node.module, [a.name for a in node.names], id(node) in inner
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "import_module", "__import__") and node.args and isinstance(node.args[0], ast.Constant):
            yield node.lineno, node.args[0].value, [], id(node) in inner


def python_violations(package, name, source, standard):
    """What a Python file of the package may not import; `standard` holds the names of the standard library."""
    position = PACKAGES.index(package)
    below = module(PACKAGES[position - 1]) if position else None
    for line, full, names, inside in imported(source):
        top = full.split(".")[0]
        if top == module(package) or top in standard or top in THIRD_PARTY[package]:
            continue
        if top in EXTRAS[package]:
            if not inside:
                yield line, f"{full}: an extra, imported inside functions only"
        elif top == below:
            if name != "below.py":
                yield line, f"{full}: taken outside below.py"
            elif full != below or not names or "*" in names:
                yield line, f"{full}: below.py takes names, from the package itself"
        else:
            yield line, f"{full}: not a package below, not required"


def cython_violations(package, source):
    """What a Cython file of the package may not import or cimport."""
    position = PACKAGES.index(package)
    below = module(PACKAGES[position - 1]) if position else None
    for i, text in enumerate(source.splitlines(), 1):
        found = re.match(r"\s*(?:from\s+(\S+)\s+)?(c?import)\s+(\S+)", text)
        if not found:
            continue
        full, kind = found[1] or found[3].rstrip(","), found[2]
        top = full.split(".")[0]
        if full.startswith(".") or top == module(package):
            continue
        if kind == "cimport":
            if full not in CIMPORTS and full != f"{below}._core":
                yield i, f"cimport {full}: only {below}._core or Cython's own"
        elif top == below:
            yield i, f"import {full}: taken outside below.py"
        elif top.startswith("dx_"):
            yield i, f"import {full}: not the package below"


def files(package, suffix):
    source = folder(package) / "src" / module(package)
    return [(p.relative_to(source).as_posix(), p) for p in sorted(source.rglob(f"*{suffix}"))]
