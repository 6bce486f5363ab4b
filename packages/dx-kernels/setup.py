"""Builds the extension modules. Metadata is in pyproject.toml."""
# --- shared build rules: the same text in every compiled package (tests/test_build_flags.py) ---
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib

ABI3 = [("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")]
DEBUG = os.environ.get("DX_CYTHON_DEBUG") == "1"
# memcpy of no bytes from NULL is let through: it does nothing, and C2y says so.
SANITIZE = (["-fsanitize=address,undefined", "-fno-sanitize=nonnull-attribute", "-fno-omit-frame-pointer"]
            if os.environ.get("DX_SANITIZE") == "1" else [])
DIRECTIVES = {
    "language_level": 3, "embedsignature": True, "cdivision": True, "freethreading_compatible": True,
    "boundscheck": DEBUG, "wraparound": False, "initializedcheck": DEBUG, "nonecheck": DEBUG,
}
# Ours come after the user's CFLAGS, so these hold whatever the environment says.
C_FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-fast-math", "-fno-math-errno", "-fno-trapping-math",
           "-fno-lto", "-g0", "-Wall", "-Wextra", "-fvisibility=hidden",
           "-fno-asynchronous-unwind-tables", "-ffile-prefix-map=" + os.getcwd() + "=."] + SANITIZE
# What Cython writes checks arguments and passes pointers on: small matters more than fast there.
GLUE_FLAGS = ["-std=gnu11", "-Os", "-ffp-contract=off", "-fno-fast-math", "-fno-lto", "-g0", "-fvisibility=hidden",
              "-fno-asynchronous-unwind-tables", "-Wno-unused-function",
              "-ffile-prefix-map=" + os.getcwd() + "=."] + SANITIZE
LINK_FLAGS = ["-Wl,-s", "-Wl,--build-id=none"] if sys.platform == "linux" and not SANITIZE else SANITIZE[:1]
PATH_FLAGS = {
    "x86_64": {
        "portable": ["-march=x86-64", "-mtune=generic"],
        "avx2": ["-march=x86-64", "-mtune=generic", "-mavx2", "-mfma"],
        "avx512": ["-march=x86-64", "-mtune=generic", "-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma",
                   "-mprefer-vector-width=512"],
    },
    "aarch64": {"portable": ["-march=armv8-a"], "neon": ["-march=armv8-a"]},
}
PATH_NUMBERS = {"portable": 0, "avx2": 1, "avx512": 2, "neon": 3}
MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


class BuildPaths(build_clib):
    """Compiles the same sources once per kernel path, each into its own folder of objects."""

    def build_libraries(self, libraries):
        base = self.build_temp
        for library in libraries:
            self.build_temp = os.path.join(base, library[0])
            super().build_libraries([library])
        self.build_temp = base


def path_libraries(name, sources, headers, include_dirs):
    """build_clib entries: one static library per kernel path of this machine."""
    paths = PATH_FLAGS.get(MACHINE, {"portable": []})
    return [(f"{name}_{path}", {"sources": sources, "obj_deps": {"": headers}, "include_dirs": include_dirs,
                                "cflags": C_FLAGS + flags + [f"-DDX_PATH={PATH_NUMBERS[path]}"]})
            for path, flags in paths.items()]


def interface(installed):
    """SHA-256 of what another package compiles against: the headers and .pxd files of an installed package folder."""
    h = hashlib.sha256()
    for path in sorted([*installed.glob("*.pxd"), *installed.glob("include/*/*.h")]):
        h.update(f"{path.relative_to(installed).as_posix()}\n".encode() + path.read_bytes())
    return h.hexdigest()


def modules(package, names, **settings):
    """Extension modules package.name from src/package/name.pyx, and the module that holds Cython's own helpers."""
    shared = f"src/{package}/_cython.c"
    subprocess.run([sys.executable, "-m", "cython", "--generate-shared", shared], check=True)
    common = {"define_macros": ABI3, "py_limited_api": True, "extra_compile_args": GLUE_FLAGS,
              "extra_link_args": LINK_FLAGS}
    headers = settings.pop("depends", [])
    core = settings.pop("core")
    acquires = {"extra_compile_args": GLUE_FLAGS + ["-include", "dx_numerics/buffers.h"],
                "include_dirs": settings["include_dirs"]}
    extensions = [Extension(f"{package}._cython", [shared], **{**common, **acquires})]
    for name in names:
        own = core if name == "_core" else {}
        macros = {"define_macros": ABI3 + own.get("macros", [])}
        extensions.append(Extension(f"{package}.{name}", [f"src/{package}/{name}.pyx"] + own.get("sources", []),
                                    libraries=own.get("libraries", []), depends=headers,
                                    **{**common, **settings, **macros}))
    return cythonize(extensions, compiler_directives=DIRECTIVES, include_path=["src"],
                     shared_utility_qualified_name=f"{package}._cython", force=DEBUG)


# --- end of shared build rules ---
from importlib.util import find_spec  # noqa: E402

FAMILIES = [  # one a line, so that additions do not collide
    "activations",
    "adamw",
    "attention",
    "bfloat16",
    "binary64",
    "binary_cross_entropy",
    "char_conv",
    "contrastive",
    "crf",
    "cross_entropy",
    "decode",
    "embedding",
    "encoder",
    "layer_norm",
    "linear",
    "matmul",
    "maxsim",
    "norm",
    "pair_bias",
    "pair_mlp",
    "pairs",
    "patch",
    "pointer",
    "pooling",
    "post_encoder",
    "posteriors",
    "reading",
    "regression",
    "run_loss",
    "similarity",
    "softmax",
    "spans",
    "text",
    "words",
]
BELOW = Path(find_spec("dx_numerics").submodule_search_locations[0])  # not imported: only its files are needed
HEADERS = [str(p) for p in sorted([*Path("csrc").glob("*.h"), *BELOW.glob("*.pxd"), *BELOW.glob("include/*/*.h")])]
INCLUDE = ["csrc", str(BELOW / "include")]
# extensions depend on them too: _core is linked anew when one of them changes
PARTS = ["attention_backward", "gemm_few", "gemm_long", "gemm_tiles", "maxsim_lse", "table"]  # more files of families
SOURCES = [f"csrc/{name}.c" for name in FAMILIES + PARTS]
LIBRARIES = path_libraries("dx_kernels", SOURCES, HEADERS, INCLUDE)

setup(
    cmdclass={"build_clib": BuildPaths},
    libraries=LIBRARIES,
    ext_modules=modules(
        "dx_kernels", ["_core"] + FAMILIES, include_dirs=INCLUDE, depends=HEADERS + SOURCES,
        core={"sources": [f"csrc/{name}.c" for name in ("scratch", "tables", "unicode14")],
              "libraries": [name for name, _ in LIBRARIES],
              "macros": [("DX_BUILT_AGAINST", f'"{interface(BELOW)}"')]}),
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
