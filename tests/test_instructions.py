"""What stands in the machine code: nothing above the baseline outside the path objects, fused only where a dot is."""
import os
import platform
import shutil
import subprocess
import sys

import natives
import pytest
from devtools.workspace import COMPILED

X86 = platform.machine() in ("x86_64", "AMD64")
NO_DOT = {"dx-kernels/activations", "dx-kernels/decode", "dx-kernels/posteriors", "dx-kernels/run_loss",
          "dx-kernels/table", "dx-numerics/functions", "dx-numerics/table"}
needs_objdump = pytest.mark.skipif(not shutil.which("objdump"), reason="objdump (binutils) is not installed")


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    return natives.all_objects(tmp_path_factory.mktemp("objects"))


@needs_objdump
@pytest.mark.skipif(not X86, reason="the baseline list is x86-64's")
def test_pkg_08_portable_objects_hold_nothing_above_the_baseline(objects):
    seen = 0
    for (path, name), file in objects.items():
        if path == "portable":
            found = natives.ABOVE_SSE2.search(natives.disassembly(file))
            assert not found, f"{name}: {found[0]!r}"
            seen += 1
    assert seen >= 5


@needs_objdump
@pytest.mark.skipif(not X86, reason="the baseline list is x86-64's")
def test_the_search_finds_what_it_looks_for(objects):
    """The same search does find vector instructions in the objects of the other paths, and fused ones in dots."""
    assert natives.ABOVE_SSE2.search(natives.disassembly(objects["avx2", "dx-numerics/functions"]))
    assert natives.FUSED.search(natives.disassembly(objects["avx2", "dx-numerics/reduce"]))
    assert natives.FUSED.search(natives.disassembly(objects["avx512", "dx-numerics/reduce"]))


@needs_objdump
def test_fused_multiply_adds_stand_only_where_dots_are(objects):
    for (path, name), file in objects.items():
        if name in NO_DOT or (X86 and path == "portable"):
            found = natives.FUSED.search(natives.disassembly(file))
            assert not found, f"{name} on {path}: {found[0]!r}"


@pytest.mark.parametrize("package", COMPILED)
def test_every_kernel_source_is_built(package):
    """A .c file that no list of setup.py names would be dead code."""
    from devtools.workspace import folder
    there = {p.name for p in (folder(package) / "csrc").glob("*.c")}
    assert len(there) > 5 and there - natives.built_sources(package) == set()


@pytest.mark.skipif(not (X86 and shutil.which("qemu-x86_64")), reason="needs x86-64 and qemu-user (qemu-x86_64)")
def test_pkg_08_import_and_kernels_run_on_a_cpu_without_avx():
    code = ("import dx_kernels as k, numpy as np; assert k.available_paths() == ('portable',), k.available_paths(); "
            "x = np.ones((3, 20), np.float32); w = x[0].copy(); y = np.empty_like(x); "
            "k.layer_norm_forward(x, w, w, y); assert (y == 1).all()")
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}  # numpy's BLAS must choose for itself
    command = ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
