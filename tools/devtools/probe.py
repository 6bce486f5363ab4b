"""Prints as JSON what an installed package offers: run with that environment's Python, `probe.py PACKAGE [GOLDEN]`.

Facts, each under one flat key, so that two answers compare line by line:
    module NAME                  the module is public
    name MODULE.NAME             typed signature, declared shapes and exceptions; or whose name it is (re-exports)
    c MODULE.NAME                C signature of a function exported to Cython
    file NAME                    SHA-256 of an installed header or .pxd
    command NAME                 entry point of a console command
    exit COMMAND ARGUMENTS       its exit code
    broken MODULE                a public module that cannot be imported, and why: never pinned
    golden NAME                  digest of a computed result (GOLDEN: a Python file with digests() -> {name: hex})
"""
import ctypes
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

PROBES = ([], ["--help"], ["--version"], ["--no-such-option"])  # what every console command is asked
SECTION = re.compile(r"^(Shapes|Raises|Order|Edges|Writes|Aliasing|Source|Returns)\b", re.M)


def section(doc, name):
    """The text of one section of a docstring in the house form, white space folded; '' without one."""
    parts = SECTION.split(inspect.cleandoc(doc or ""))
    texts = [body for head, body in zip(parts[1::2], parts[2::2]) if head == name]
    return " ".join(" ".join(texts).split("\n\n")[0].split())


def signature(name, function):
    """The typed signature that Cython embeds as the docstring's first line, else what inspect finds."""
    first = (function.__doc__ or "").split("\n", 1)[0]
    if first.startswith(name + "("):
        return first
    try:
        # a module as a default prints the file it came from, which is a folder of this machine
        return name + re.sub(r"(<module '[^']*') from '[^']*'>", r"\1>", str(inspect.signature(function)))
    except (TypeError, ValueError):
        return name + "(?)"


def callable_fact(name, function):
    doc = function.__doc__ or ""
    fact = {"signature": signature(name, function)}
    shapes, raises = section(doc, "Shapes"), section(doc, "Raises")
    if shapes:
        fact["shapes"] = shapes
    if raises:
        fact["raises"] = sorted(set(re.findall(r"\b[A-Z]\w*(?:Error|Exception|Exit)\b", raises)))
    return fact


def class_fact(kind):
    members = {n: signature(n, m) if callable(m) else type(m).__name__
               for n, m in sorted(vars(kind).items()) if not n.startswith("_")}
    return {"class": [b.__name__ for b in kind.__bases__], "members": members, "signature": signature("__init__", kind)}


def shown(value):
    """repr, but the same in every process and folder: modules by name, sets in order."""
    if isinstance(value, tuple) and any(inspect.ismodule(v) for v in value):
        return repr(tuple(v.__name__ if inspect.ismodule(v) else v for v in value))
    return f"frozenset({sorted(value, key=repr)!r})" if isinstance(value, frozenset) else repr(value)


def fact(module, name, value):
    """What is pinned about one public name; None for another project's name that the module merely uses."""
    home = getattr(value, "__module__", None)
    if callable(value) and isinstance(home, str) and home != module:
        top = home.split(".")[0]
        if top != module.split(".")[0]:
            return {"from": top} if top.startswith("dx_") else None
        if not home.rpartition(".")[2].startswith("_"):
            return {"from": home}
    if inspect.isclass(value):
        return class_fact(value)
    if callable(value):
        return callable_fact(name, value)
    if isinstance(value, float):
        return {"value": float(value).hex()}
    if isinstance(value, str | int | bool | tuple | frozenset | None):
        return {"value": shown(value)}
    return {"type": type(value).__name__}


def public_modules(package, broken):
    """The package and its modules without an underscore, `below` left out: it is the package's own affair.

    broken receives name → error of the modules that cannot be imported.
    """
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        parts = info.name.split(".")[1:]
        if parts[-1] != "below" and not any(p.startswith("_") for p in parts):
            try:
                yield importlib.import_module(info.name)
            except Exception as error:
                broken[f"broken {info.name}"] = f"{type(error).__name__}: {error}"


def c_functions(package):
    """C signatures (capsule names) of what the extension modules export."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        module = sys.modules.get(info.name)
        if module is None or info.name.endswith("._cython"):  # not imported, or Cython's own helpers
            continue
        for name, capsule in getattr(module, "__pyx_capi__", {}).items():
            yield f"c {info.name}.{name}", name_of(capsule).decode()


def probe(distribution, golden):
    package = importlib.import_module(distribution.replace("-", "_"))
    facts = {}
    for module in public_modules(package, facts):
        facts[f"module {module.__name__}"] = True
        for name in dir(module):  # with what a module loads when asked for
            value = getattr(module, name)
            known = None if name.startswith("_") or inspect.ismodule(value) else fact(module.__name__, name, value)
            if known is not None:
                facts[f"name {module.__name__}.{name}"] = known
    facts.update(c_functions(package))
    folder = Path(package.__file__).parent
    for path in sorted([*folder.rglob("*.pxd"), *folder.rglob("*.h")]):
        facts[f"file {path.relative_to(folder).as_posix()}"] = hashlib.sha256(path.read_bytes()).hexdigest()
    for entry in importlib.metadata.distribution(distribution).entry_points:
        if entry.group == "console_scripts":
            facts[f"command {entry.name}"] = entry.value
            program = Path(sys.executable).parent / entry.name
            for arguments in PROBES:
                done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
                facts[" ".join(["exit", entry.name, *arguments])] = done.returncode
    if golden:
        for name, digest in runpy.run_path(golden)["digests"]().items():
            facts[f"golden {name}"] = digest
    return facts


if __name__ == "__main__":
    json.dump(probe(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""), sys.stdout, sort_keys=True)
