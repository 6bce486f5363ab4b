"""The C core without Python: the same digests from every compiler, optimisation and machine; which instructions it may
hold; which symbols it needs."""
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import dx_numerics as dx
import pytest
from dx_numerics import _core, sweep

SOURCE = Path(__file__).resolve().parents[1]
if not (SOURCE / "driver" / "build.py").is_file():
    pytest.skip("needs the package's sources", allow_module_level=True)
sys.path.insert(0, str(SOURCE / "driver"))
import build  # noqa: E402

HERE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
# The sources whose objects may hold fused multiply-adds: the dots.
FUSED_SOURCES = {"reduce"}


def need(*programs):
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")
    if HERE not in build.PATH_FLAGS:
        pytest.skip(f"no kernel paths are defined for {HERE}")


def check(output, paths):
    got, want = build.lines(output), sweep.digests()
    assert {path for path, _ in got} == set(paths)
    for path in paths:
        assert {item: got[path, item] for item in want} == want, f"{path} differs from the Python package"


def test_driver_equals_the_python_package(tmp_path):
    need("gcc")
    check(build.run([build.numerics_driver("gcc", HERE, ["-O2"], tmp_path)]), dx.available_paths())


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimise", ["-O1", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_agree(tmp_path, compiler, optimise):
    need(compiler)
    check(build.run([build.numerics_driver(compiler, HERE, [optimise], tmp_path)]), dx.available_paths())


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimise", ["-O1", "-O3"])
def test_aarch64_agrees(tmp_path, optimise):
    """The cross-compiled core under an emulator: portable and neon give the digests of this machine."""
    need("aarch64-linux-gnu-gcc", "qemu-aarch64")
    program = build.numerics_driver("aarch64-linux-gnu-gcc", "aarch64", [optimise], tmp_path)
    check(build.run(["qemu-aarch64", program]), ("portable", "neon"))


@pytest.mark.parametrize("compiler, machine, objdump", [
    ("gcc", HERE, "objdump"), ("clang", HERE, "objdump"),
    ("aarch64-linux-gnu-gcc", "aarch64", "aarch64-linux-gnu-objdump")])
def test_fused_operations_only_in_dots(tmp_path, compiler, machine, objdump):
    need(compiler, objdump)
    made = build.objects(compiler, machine, ["-O3"], tmp_path)
    fused = {key: build.count(build.FUSED[machine], file, objdump) for key, file in made.items()}
    for (path, source), number in fused.items():
        if path in ("", "portable") or source not in FUSED_SOURCES:
            assert number == 0, f"{source} on {path or 'every path'} has {number} fused multiply-adds"
        else:
            assert number > 0, f"{source} on {path} has no fused multiply-add: does the test still see them?"
    for (path, source), file in made.items():
        assert build.count(build.APPROXIMATE[machine], file, objdump) == 0, (path, source)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF symbols")
def test_no_libm_function():
    """The installed module takes nothing from libm (sqrt is an instruction, or at most a call)."""
    need("nm", "gcc")
    libm = Path(build.run(["gcc", "-print-file-name=libm.so.6"]).strip())
    if not libm.is_file():
        pytest.skip("needs libm.so.6")
    known = {line.split()[-1].split("@")[0] for line in build.run(["nm", "-D", "--defined-only", libm]).splitlines()}
    assert {"exp", "tanhf", "fmaf"} <= known
    for module in Path(_core.__file__).parent.glob("*.so"):
        undefined = {line.split()[-1].split("@")[0] for line in
                     build.run(["nm", "-D", "--undefined-only", module]).splitlines()}
        assert undefined & known <= {"sqrt", "sqrtf"}, module.name


def test_build_helper_reports_the_compilers_words(tmp_path):
    need("gcc")
    bad = tmp_path / "bad.c"
    bad.write_text("int main(void) { return undeclared_thing; }\n")
    with pytest.raises(RuntimeError, match="undeclared_thing"):
        build.run(["gcc", bad, "-o", tmp_path / "bad"])
    with pytest.raises((RuntimeError, subprocess.SubprocessError, KeyError)):
        build.constant(SOURCE / "setup.py", "NO_SUCH_NAME")
