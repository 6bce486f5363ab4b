"""Objects of the C kernels as setup.py compiles them, and what stands in them (objdump)."""
import contextlib
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

from devtools.workspace import COMPILED, folder

FUSED = re.compile(r"\tv?fn?m(?:add|sub|addsub|subadd)\d+[sp][sd]|\tfml[as]\b|\tfn?madd\b|\tfn?msub\b")
ABOVE_SSE2 = re.compile(r"\tv[a-z0-9]+\s|%[yz]mm|\t(?:pmulld|blendvps|roundps|dpps|ptest|pshufb|popcnt|lzcnt|tzcnt|"
                        r"andn|shlx|shrx|sarx|bextr|pext|pdep|rorx|mulx|movbe)\b")


def settings(package):
    """The arguments with which the package's setup.py calls setup(), nothing built."""
    seen = {}
    stubs = {"setuptools": {"setup": lambda **k: seen.update(k),
                             "Extension": lambda *a, **k: {"name": a[0], "sources": a[1], **k}},
             "setuptools.command": {}, "setuptools.command.build_clib": {"build_clib": object},
             "Cython": {}, "Cython.Build": {"cythonize": lambda extensions, **k: extensions}}
    modules = {}
    for name, content in stubs.items():
        modules[name] = types.ModuleType(name)
        vars(modules[name]).update(content)
    text = (folder(package) / "setup.py").read_text(encoding="utf-8")
    with contextlib.chdir(folder(package)), mock.patch.dict(sys.modules, modules), mock.patch("subprocess.run"):
        exec(compile(text, "setup.py", "exec"), {"__name__": "setup", "__file__": "setup.py"})
    return seen


def compile_paths(package, out):
    """Compiles every family for every path of this machine; (path, package/family) → object file."""
    objects = {}
    for library, how in settings(package)["libraries"]:
        path = library.rpartition("_")[2]
        for source in how["sources"]:
            target = Path(out) / f"{library}-{Path(source).stem}.o"
            include = [f"-I{name}" for name in how["include_dirs"]]
            command = ["cc", *how["cflags"], "-fPIC", *include, "-c", source, "-o", str(target)]
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder(package))
            assert done.returncode == 0, done.stderr
            objects[path, f"{package}/{Path(source).stem}"] = target
    return objects


def built_sources(package):
    """Names of all C files that setup.py builds."""
    s = settings(package)
    listed = [n for _, how in s["libraries"] for n in how["sources"]]
    listed += [n for e in s["ext_modules"] for n in e["sources"]]
    return {os.path.basename(n) for n in listed if n.startswith("csrc/")}


def disassembly(file):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(file)], capture_output=True, text=True,
                          check=True).stdout


def all_objects(out):
    return {key: file for package in COMPILED for key, file in compile_paths(package, out).items()}
