"""Objects of the C kernels as setup.py compiles them, and what stands in them (objdump)."""
import re
import subprocess
from pathlib import Path

from devtools.workspace import COMPILED, folder

START, END = "# --- shared build rules", "# --- end of shared build rules ---"
FUSED = re.compile(r"\tv?fn?m(?:add|sub|addsub|subadd)\d+[sp][sd]|\tfml[as]\b|\tfn?madd\b|\tfn?msub\b")
ABOVE_SSE2 = re.compile(r"\tv[a-z0-9]+\s|%[yz]mm|\t(?:pmulld|blendvps|roundps|dpps|ptest|pshufb|popcnt|lzcnt|tzcnt|"
                        r"andn|shlx|shrx|sarx|bextr|pext|pdep|rorx|mulx|movbe)\b")


def build_rules(package):
    """The names that the shared block of a setup.py defines, without the build tools it imports."""
    text = (folder(package) / "setup.py").read_text(encoding="utf-8")
    block = text[text.index(START):text.index(END)]
    lines = [line for line in block.splitlines() if not line.startswith(("from Cython", "from setuptools"))]
    names = {"build_clib": object}
    exec(compile("\n".join(lines), "setup.py", "exec"), names)
    return names


def family_sources(package):
    """The C files that are compiled once per path, read from setup.py's path_libraries call."""
    text = (folder(package) / "setup.py").read_text(encoding="utf-8")
    families = re.search(r"^FAMILIES = \[(.*?)\]", text, re.S | re.M)
    names = re.findall(r'"(\w+)"', families[1]) if families else []
    call = re.search(r"LIBRARIES = path_libraries\((.*?)\bHEADERS", text, re.S)[1]
    names += [n for n in re.findall(r'"(\w+)"', call) if n != package.replace("-", "_")]
    return [folder(package) / "csrc" / f"{name}.c" for name in dict.fromkeys(names)]


def compile_paths(package, include, out):
    """Compiles every family for every path of this machine; (path, family) → object file."""
    rules = build_rules(package)
    objects = {}
    for path, flags in rules["PATH_FLAGS"][rules["MACHINE"]].items():
        for source in family_sources(package):
            target = Path(out) / f"{package}-{path}-{source.stem}.o"
            command = ["cc", *rules["C_FLAGS"], *flags, f"-DDX_PATH={rules['PATH_NUMBERS'][path]}", "-fPIC",
                       f"-I{folder(package) / 'csrc'}", f"-I{include}", "-c", str(source), "-o", str(target)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            objects[path, f"{package}/{source.stem}"] = target
    return objects


def disassembly(file):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(file)], capture_output=True, text=True,
                          check=True).stdout


def all_objects(out):
    import dx_numerics
    found = {}
    for package in COMPILED:
        found.update(compile_paths(package, dx_numerics.get_include(), out))
    return found
