"""Builds a driver (C code of dx without Python) with any compiler: the core of dx-numerics, once per kernel path of the
target machine, with the flags of setup.py; dx-kernels adds its own files the same way."""
import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALWAYS = ["-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra"]


def constant(setup, name):
    """The literal that setup.py assigns to `name`."""
    for node in ast.parse(setup.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)


PATH_FLAGS = constant(ROOT / "setup.py", "PATH_FLAGS")
PATH_NUMBERS = constant(ROOT / "setup.py", "PATH_NUMBERS")
NUMERICS_CORE = [ROOT / "csrc" / f"{name}.c" for name in constant(ROOT / "setup.py", "CORE")]
NUMERICS_ONCE = [ROOT / "csrc" / f"{name}.c" for name in ("cpu", "selfcheck", "tables")]
INCLUDE = [ROOT / "csrc", ROOT / "src" / "dx_numerics" / "include", ROOT / "driver"]


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-4000:]}")
    return done.stdout


def objects(compiler, machine, flags, folder, per_path=NUMERICS_CORE, once=NUMERICS_ONCE, include=INCLUDE):
    """Compiles; {(path or "", source stem): object file}."""
    made = {}
    common = [compiler, *ALWAYS, *flags, *(f"-I{p}" for p in include), "-c"]
    for path, path_flags in PATH_FLAGS[machine].items():
        for source in per_path:
            made[path, source.stem] = folder / f"{source.parents[1].name}_{source.stem}_{path}.o"
            run([*common, *path_flags, f"-DDX_PATH={PATH_NUMBERS[path]}", source, "-o", made[path, source.stem]])
    for source in once:
        made["", source.stem] = folder / f"{source.parents[1].name}_{source.stem}.o"
        run([*common, source, "-o", made["", source.stem]])
    return made


def link(compiler, objects, program, libraries=("-lm",)):
    """Links everything statically, so that an emulator needs no libraries of the target; the program's path."""
    run([compiler, "-static", *objects, "-o", program, *libraries])
    return program


def numerics_driver(compiler, machine, flags, folder):
    """The driver of dx-numerics as a program; its path."""
    made = objects(compiler, machine, flags, folder, once=[*NUMERICS_ONCE, ROOT / "driver" / "main.c"])
    return link(compiler, made.values(), folder / "driver")


# Fused operations (not the integer multiply-adds), and approximations of 1/x and 1/sqrt(x), in a disassembly.
FUSED = {"x86_64": re.compile(r"\tvfn?m(?:add|sub)\w*"),
         "aarch64": re.compile(r"\t(?:fn?madd|fn?msub|fml[as]l?2?)\b")}
APPROXIMATE = {"x86_64": re.compile(r"\tv?r(?:cp|sqrt)(?:14|28)?[ps][sd]\b"),
               "aarch64": re.compile(r"\tf(?:recp|rsqrt)[exs]\b")}


def count(pattern, program, objdump="objdump"):
    """Instructions of an object file or program that match."""
    return len(pattern.findall(run([objdump, "-d", "--no-show-raw-insn", program])))


def lines(output):
    """{(path, item): digest} of a driver's output."""
    return {(path, item): digest for path, item, digest in map(str.split, output.splitlines())}
