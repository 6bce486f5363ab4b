"""Every public function of dx-numerics that computes, with its calls (dx_numerics.testing.calls)."""
import dx_numerics as dx
import numpy as np
from dx_numerics.testing.calls import call, out

LARGE = 100_003
NAMES32 = ("exp32", "tanh32", "erf32", "sigmoid32", "rsqrt32")
NAMES64 = ("exp64", "log64", "log1p64", "softplus64")
# Control of the process, and tools that look at results: nothing that a kernel's bits depend on.
NO_KERNELS = {"AllowanceReport", "Check", "SelfCheckReport", "allowance", "available_paths", "canonical_bytes",
              "degree", "digest", "digest_named", "get_degree", "get_include", "get_path", "ieee_mode",
              "kernel_path", "selfcheck", "set_degree", "set_path", "ulp_distance"}
REGISTRY = {}


def kernel(name, large=LARGE):
    """Registers a maker under the name of its function."""
    def register(maker):
        REGISTRY[name] = maker, large
        return maker
    return register


def register_function(name, dtype):
    function = getattr(dx, name)

    @kernel(name)
    def maker(n, draw):
        x = draw.real(n, dtype=dtype)
        return [call(function, x), call(function, x, out(n, dtype=dtype)),
                call(function, draw.real(3, n, dtype=dtype).T[:, 1])]


for _name in NAMES32:
    register_function(_name, np.float32)
for _name in NAMES64:
    register_function(_name, np.float64)


@kernel("widen_float16")
def widen_float16(n, draw):
    x, finite = (draw.whole(0, high, n, dtype=np.uint16) for high in (2**16, 0x7C00))
    return [call(dx.widen_float16, x), call(dx.widen_float16, finite.view(np.float16))]


@kernel("widen_bfloat16")
def widen_bfloat16(n, draw):
    return [call(dx.widen_bfloat16, draw.whole(0, 2**16, n, dtype=np.uint16))]


@kernel("narrow_float16")
def narrow_float16(n, draw):
    return [call(dx.narrow_float16, draw.real(n)), call(dx.narrow_float16, draw.real(n, 3)[:, ::2])]


@kernel("narrow_bfloat16")
def narrow_bfloat16(n, draw):
    return [call(dx.narrow_bfloat16, draw.real(n))]


@kernel("dot16")
def dot16(n, draw):
    a, b = draw.real(n, 3), draw.real(2, n)
    return [call(dx.dot16, a.reshape(-1)[:n], b[0]), call(dx.dot16, a[:, 1], b[1, ::-1])]


@kernel("dot16_rows", large=300)
def dot16_rows(n, draw):
    return [call(dx.dot16_rows, draw.real(5, n), draw.real(5, n), out(5)),
            call(dx.dot16_rows, draw.real(7, n).T, draw.real(n, 14)[:, ::2], out(n))]


def register_sum(name):
    function = getattr(dx, name)

    @kernel(name)
    def maker(n, draw):
        x = draw.real(n, 3)
        return [call(function, x.reshape(-1)[:n]), call(function, x[:, 1]), call(function, x[::-1, 2])]


for _name in ("sum16", "mean16", "squared_norm16"):
    register_sum(_name)


def seed_of(draw):
    return int(draw.words(1)[0])


@kernel("random_at")
def random_at(n, draw):
    return [call(dx.random_at, seed_of(draw), n), call(dx.random_at, 2**64 - 1, 2**64 - 1 - n)]


@kernel("substream")
def substream(n, draw):
    return [call(dx.substream, seed_of(draw), "ü" * n), call(dx.substream, n, "")]


@kernel("permutation")
def permutation(n, draw):
    return [call(dx.permutation, seed_of(draw), n)]


@kernel("epoch_permutation")
def epoch_permutation(n, draw):
    return [call(dx.epoch_permutation, seed_of(draw) >> 32, n, n)]


@kernel("random_u64")
def random_u64(n, draw):
    return [call(dx.random_u64, seed_of(draw), out(n, dtype=np.uint64), 5)]


@kernel("uniform32")
def uniform32(n, draw):
    return [call(dx.uniform32, seed_of(draw), out(n)), call(dx.uniform32, seed_of(draw), out(n), -0.3, 0.1, 7)]


@kernel("uniform64")
def uniform64(n, draw):
    return [call(dx.uniform64, seed_of(draw), out(n, dtype=np.float64))]


@kernel("normal32")
def normal32(n, draw):
    return [call(dx.normal32, seed_of(draw), out(n), 0.25, 0.02, 3)]


def walk(seed, n):
    """Values drawn one after another, and the state after them."""
    stream = dx.SplitMix64(seed)
    drawn = [(stream.next_u64(), stream.below(n + 1), stream.uniform32(), stream.uniform64()) for _ in range(5)]
    return drawn, stream.state


@kernel("SplitMix64")
def splitmix64(n, draw):
    return [call(walk, seed_of(draw), n)]


def public():
    """Names of the public functions and classes."""
    return {name for name, value in vars(dx).items() if not name.startswith("_") and callable(value)}
