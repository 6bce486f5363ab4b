"""dx-kernels' C code without Python, by every compiler, optimisation and machine: the same digests as the Python
package. Which sources may hold fused operations. (dx-numerics has the same tests in its own suite.)"""
import ast
import hashlib
import platform
import shutil
import sys
from pathlib import Path

import dx_kernels as k
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "packages" / "dx-kernels"
sys.path.insert(0, str(ROOT / "packages" / "dx-numerics" / "driver"))
import build  # noqa: E402
from dx_numerics.bits import canonical_bytes  # noqa: E402
from dx_numerics.sweep import between, encodings32  # noqa: E402

f32 = np.float32
HERE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
# The sources that hold dots. Everything else is separately rounded.
FUSED_SOURCES = {"attention", "attention_backward", "char_conv", "gemm_few", "gemm_long", "gemm_tiles", "layer_norm",
                 "linear", "matmul", "maxsim", "norm", "pair_bias", "pair_mlp", "pointer", "pooling", "similarity",
                 "softmax"}


def per_path():
    """The sources that setup.py compiles once per path."""
    names = build.constant(KERNELS / "setup.py", "FAMILIES") + build.constant(KERNELS / "setup.py", "PARTS")
    return [KERNELS / "csrc" / f"{name}.c" for name in names]


def once():
    """The sources that setup.py compiles once, into _core."""
    call = ast.parse((KERNELS / "setup.py").read_text()).body[-1]
    names = [name for part in ast.walk(call) if isinstance(part, ast.comprehension) and isinstance(part.iter, ast.Tuple)
             for name in ast.literal_eval(part.iter)]
    return [KERNELS / "csrc" / f"{name}.c" for name in names]


def need(*programs):
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")


def objects(compiler, machine, flags, folder):
    include = [KERNELS / "csrc", *build.INCLUDE[1:]]  # table.h is the name of both packages' tables
    return build.objects(compiler, machine, flags, folder, per_path(), once(), include)


def driver(compiler, machine, flags, folder):
    made = list(objects(compiler, machine, flags, folder).values())
    cpu = folder / "cpu.o"
    include = [f"-I{p}" for p in build.INCLUDE]
    build.run([compiler, *build.ALWAYS, *flags, *include, "-c", build.ROOT / "csrc" / "cpu.c", "-o", cpu])
    main = folder / "main.o"
    include = [f"-I{KERNELS / 'csrc'}", *include[1:]]
    build.run([compiler, *build.ALWAYS, *flags, *include, "-c", KERNELS / "driver" / "main.c", "-o", main])
    return build.link(compiler, [main, *made, cpu], folder / "driver", ("-lm", "-pthread"))


def like(*arrays):
    return [np.empty_like(a) for a in arrays]


def activations():
    x, dy, h = between(2000, "act.x", -8, 8), between(2000, "act.dy", -1, 1), between(2000, "act.h", -1, 1)
    x[1000:] = encodings32(1000, "act.e")
    y, terms, dx = like(x, x, x)
    for name, saved in (("relu", x), ("tanh", h), ("sigmoid", h), ("gelu_tanh", x), ("gelu_erf", x)):
        more = [terms] if name == "gelu_tanh" else []
        getattr(k, f"{name}_forward")(x, y, *more)
        yield f"{name}_forward", y
        getattr(k, f"{name}_backward")(dy, saved, *more, dx)
        yield f"{name}_backward", dx


def layer_norm():
    x, dy = between(2100, "norm.x", -3, 5).reshape(21, 100), between(2100, "norm.dy", -1, 1).reshape(21, 100)
    w, b = between(100, "norm.w", -1, 1), between(100, "norm.b", -1, 1)
    y, xhat, dx, dw, db = like(x, x, x, w, b)
    inv = np.empty(21, f32)
    k.layer_norm_forward(x, w, b, y, xhat, inv, eps=1e-5)
    k.layer_norm_backward(dy, xhat, inv, w, dx, dw, db)
    yield from (("layer_norm_forward", y), ("layer_norm_dx", dx), ("layer_norm_dweight", dw), ("layer_norm_dbias", db))


def softmax():
    raw, bias, dp = (between(5 * 37, f"softmax.{name}", -size, size).reshape(5, 37)
                     for name, size in (("raw", 40), ("bias", 4), ("dp", 1)))
    p, draw, dbias = like(raw, raw, raw)
    k.softmax_forward(raw, p, scale=3.0, bias=bias, limits=np.array([0, 1, 16, 30, 37], np.int32))
    k.softmax_backward(p, dp, draw, dbias, scale=3.0)
    yield from (("softmax_forward", p), ("softmax_draw", draw), ("softmax_dbias", dbias))


def products():
    a, b, out = between(13 * 70, "gemm.a", -1, 1), between(70 * 45, "gemm.b", -1, 1), np.empty((13, 45), f32)
    k.matmul(a.reshape(13, 70), b.reshape(70, 45), out)
    yield "gemm_nn", out
    k.matmul(a.reshape(13, 70), b.reshape(45, 70), out, transpose_b=True)
    yield "gemm_nt", out
    k.matmul(a.reshape(70, 13), b.reshape(70, 45), out, transpose_a=True)
    yield "gemm_tn", out


def linear():
    x, w, r, dy = (between(m * n, f"linear.{name}", -1, 1).reshape(m, n)
                   for name, m, n in (("x", 13, 70), ("w", 45, 70), ("r", 13, 45), ("dy", 13, 45)))
    b = between(45, "linear.b", -1, 1)
    y, dx, dw, db = like(r, x, w, b)
    for name in ("plain", "relu", "gelu_tanh", "gelu_erf"):
        k.linear_forward(x, w, b, y, activation=None if name == "plain" else name, residual=r)
        yield f"linear_{name}", y
    k.linear_backward(dy, x, w, dx, dw, db)
    yield from (("linear_dx", dx), ("linear_dweight", dw), ("linear_dbias", db))
    yield "squared_norm", np.array(k.squared_norm(w.reshape(-1)))


def digests():
    """item → digest of driver/main.c's items, through the Python package on the calling thread's path."""
    return {name: hashlib.sha256(canonical_bytes(array)).hexdigest()
            for family in (activations, layer_norm, softmax, products, linear) for name, array in family()}


def check(output, paths):
    got, want = build.lines(output), digests()
    assert got == {(path, item): digest for path in paths for item, digest in want.items()}


def test_paths_and_degrees_agree():
    want = digests()
    for path in k.available_paths():
        for degree in (1, 3):
            with k.kernel_path(path), k.degree(degree):
                assert digests() == want, (path, degree)


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimise", ["-O1", "-O3"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_agree(tmp_path, compiler, optimise):
    need(compiler)
    check(build.run([driver(compiler, HERE, [optimise], tmp_path)]), k.available_paths())


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimise", ["-O1", "-O3"])
def test_aarch64_agrees(tmp_path, optimise):
    need("aarch64-linux-gnu-gcc", "qemu-aarch64")
    program = driver("aarch64-linux-gnu-gcc", "aarch64", [optimise], tmp_path)
    check(build.run(["qemu-aarch64", program]), ("portable", "neon"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler, machine, objdump", [
    ("gcc", HERE, "objdump"), ("clang", HERE, "objdump"),
    ("aarch64-linux-gnu-gcc", "aarch64", "aarch64-linux-gnu-objdump")])
def test_fused_operations_only_in_dots(tmp_path, compiler, machine, objdump):
    need(compiler, objdump)
    made, seen = objects(compiler, machine, ["-O3"], tmp_path), set()
    for (path, source), file in made.items():
        number = build.count(build.FUSED[machine], file, objdump)
        if number:
            assert path not in ("", "portable") and source in FUSED_SOURCES, f"{source} on {path}: {number} fused"
            seen.add(source)
        assert build.count(build.APPROXIMATE[machine], file, objdump) == 0, (path, source)
    assert {"gemm_tiles", "layer_norm"} <= seen  # the test still sees them
