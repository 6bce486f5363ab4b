"""Column D: the compiled float32 binary on whole numbers at the true ViT-Tiny shapes, where every operation is exact.

With K terms a sum and |values| <= m, K m² + 2 m <= 2^24, every product and partial sum is a whole number that binary32
holds, in any order of summation: the kernels must give exactly what whole-number arithmetic gives, on every path.
"""
import math

import numpy as np

from ...below import available_paths, degree, ieee_mode, kernel_path, sgd_step
from ...workspace import Workspace
from ..float32 import Kernels
from .arrays import Arrays
from .families import FAMILIES, case
from .prime import Stream
from .report import cells

SHAPES = {
    "row_dense": [(197, 192, 192), (197, 192, 576), (197, 192, 768), (197, 768, 192)],
    "patch_embed": [(3, 224, 224, 16, 196, 192), (3, 90, 75, 16, 24, 33)],
    "classifier": [(197, 192, 10)],
}
LAYER_NORM, ATTENTION = (197, 192), (197, 3, 64)


class Whole(Arrays):
    """Whole numbers (and eighths) in binary64, exact below 2^53 in any order."""

    def matmul(self, a, b, transpose_a=False, transpose_b=False):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        return np.matmul(a, np.swapaxes(b, -1, -2) if transpose_b else b)  # exact: below 2^53

    def row_sum(self, x):
        return np.add.reduce(x, axis=-1)  # exact: below 2^53

    def div(self, a, b):
        return a / b

    def root(self, n):
        if math.isqrt(n)**2 != n or math.isqrt(n) & (math.isqrt(n) - 1):  # exact: whole numbers
            raise ValueError(f"n = {n}: expected an even power of two")
        return float(math.isqrt(n))

    def over(self, x, n):
        return x  # reaches the input's gradient of a layer norm alone, which is not looked at here


def run(full=False, table=Kernels):
    """family → Cell."""
    found = cells(FAMILIES | {"SGD step": None})
    for path in available_paths():
        for threads in (1, 2) if full else (2,):
            with kernel_path(path), degree(threads), ieee_mode():
                for operation, shapes in SHAPES.items():
                    for shape in shapes:
                        check(case(operation, *shape), f"{path}, degree {threads}", table, found)
                layer_norm(path, table, found)
                attention(path, table, found)
                sgd(path, found["SGD step"])
    return found


def most(terms):
    """The largest m with terms m² + 2 m <= 2^24."""
    m = math.isqrt(2**24 // terms)
    while terms * m * m + 2 * m > 2**24:
        m -= 1
    return m


def check(c, where, table, found):
    stream = Stream(5)
    sizes = {"row_dense": c.shape, "classifier": c.shape[1:], "patch_embed": (768, *c.shape[4:])}[c.operation]
    m = most(max(sizes))
    v = {name: stream.whole(shape, m) for name, shape in c.inputs.items()}
    dy = stream.whole(c.output, m)
    wide = {name: array.astype(np.float64) for name, array in v.items()}
    expected, truth = c.run(Whole(c.config, c.parameters(wide)), wide, dy.astype(np.float64))
    gradients = {name: np.full(c.inputs[name], np.nan, np.float32) for name in c.parameters(v)}
    y, got = c.run(table(c.config, c.parameters(v), Workspace(), gradients), v, dy)
    for family, (operation, name) in FAMILIES.items():
        if operation == c.operation:
            same = np.array_equal(got[name], truth[name]) and np.array_equal(y, expected)
            found[family].expect(same, int(got[name].size), f"{operation} {c.shape} on {where}: {name}")
            found[family].notes["shapes"] = len(SHAPES[operation])


def layer_norm(where, table, found):
    c, stream = case("layer_norm", *LAYER_NORM), Stream(6)
    m = most(c.shape[0])
    xhat, dy = stream.whole(c.output, m), stream.whole(c.output, m)
    inv = np.ones(c.shape[0], np.float32)
    parameters = {name: stream.whole(c.inputs[name], m) for name in ("s.weight", "s.bias")}
    gradients = {name: np.full(c.inputs[name], np.nan, np.float32) for name in parameters}
    table(c.config, parameters, Workspace(), gradients).layer_norm_backward("s", dy, (xhat, inv))
    whole = Whole(c.config, {name: a.astype(np.float64) for name, a in parameters.items()})
    whole.layer_norm_backward("s", dy.astype(np.float64), (xhat.astype(np.float64), inv.astype(np.float64)))
    for family, (operation, name) in FAMILIES.items():
        if operation == "layer_norm" and name in parameters:
            same = np.array_equal(gradients[name], whole.gradients[name])
            found[family].expect(same, c.shape[1], f"layer_norm {c.shape} on {where}: {name}")
            found[family].notes["shapes"] = 1


def attention(where, table, found):
    """The adjoint with probabilities 0 and 1 and the rest -1 … 1: sums of at most 197 x 12,672 eighths."""
    c, stream = case("attention", *ATTENTION), Stream(7)
    n, heads, _ = c.shape
    qkv, dout = stream.whole(c.inputs["qkv"], 1), stream.whole(c.output, 1)
    probs = np.abs(stream.whole((heads, n, n), 1))
    got = table(c.config, {}, Workspace(), {}).attention_backward("s", dout, qkv, probs)
    wide = [a.astype(np.float64) for a in (dout, qkv, probs)]
    expected = Whole(c.config, {}).attention_backward("s", *wide)
    found["attention qkv"].expect(np.array_equal(got, expected), int(got.size), f"attention {c.shape} on {where}")
    found["attention qkv"].notes["shapes"] = 1


def sgd(where, cell):
    """w - 2^-3 g with w in eighths and g whole, both within 2^20."""
    stream = Stream(8)
    w, g = stream.whole((5000,), 2**20) / np.float32(8), stream.whole((5000,), 2**20)
    expected = w.astype(np.float64) - g.astype(np.float64) / 8
    sgd_step(w, g, rate=0.125)
    cell.expect(np.array_equal(w, expected), w.size, f"SGD step on {where}")
