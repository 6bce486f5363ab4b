"""Both compiled packages build by the same rules: the flags that keep the bits, no flag of the build machine."""
import subprocess

import pytest
from devtools.workspace import COMPILED, folder

START, END = "# --- shared build rules", "# --- end of shared build rules ---"
NEEDED = ["-ffp-contract=off", "-fno-fast-math", "-fno-lto", "-Wl,--build-id=none", "-ffile-prefix-map=", "-std=gnu11"]
BANNED = ["-march=native", "-mtune=native", "-ffast-math", "-Ofast", "-funsafe-math", "-fassociative-math",
          "-ffp-contract=fast", "-ffp-contract=on", "-freciprocal-math", "-fopenmp", "-mrecip"]
DIRECTIVES = {'"boundscheck": DEBUG', '"wraparound": False', '"initializedcheck": DEBUG', '"nonecheck": DEBUG',
              '"cdivision": True', '"embedsignature": True', '"language_level": 3'}


def text(package):
    return (folder(package) / "setup.py").read_text(encoding="utf-8")


def shared(package):
    t = text(package)
    return t[t.index(START):t.index(END)]


def test_the_shared_block_is_the_same_text():
    assert len({shared(package) for package in COMPILED}) == 1


@pytest.mark.parametrize("package", COMPILED)
def test_flags_and_directives(package):
    assert [flag for flag in NEEDED if flag not in text(package)] == []
    assert [flag for flag in BANNED if flag in text(package)] == []
    assert [d for d in DIRECTIVES if d not in text(package)] == []
    assert "cimport numpy" not in text(package)


def test_sources_refuse_fast_math(tmp_path):
    """config.h is an error under -ffast-math, whatever a user's CFLAGS say."""
    import dx_numerics
    file = tmp_path / "a.c"
    file.write_text("#include <dx_numerics/config.h>\nint x;\n", encoding="utf-8")
    command = ["cc", "-std=gnu11", "-DDX_PATH=0", f"-I{dx_numerics.get_include()}", "-c", str(file), "-o",
               str(tmp_path / "a.o")]
    plain = subprocess.run([*command, "-ffp-contract=off"], capture_output=True, text=True)
    assert plain.returncode == 0, plain.stderr
    fast = subprocess.run([*command, "-ffast-math"], capture_output=True, text=True)
    assert fast.returncode != 0 and "error" in fast.stderr


def test_our_flags_come_after_the_users():
    """C_FLAGS are extra_compile_args / cflags, which setuptools puts behind CFLAGS."""
    block = shared("dx-kernels")
    assert '"cflags": C_FLAGS + flags' in block and '"extra_compile_args": GLUE_FLAGS' in block
