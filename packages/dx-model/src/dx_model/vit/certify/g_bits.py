"""Column G: what ties the exact certificates to the compiled binary.

The operations of `ops`, the very lines that A, C and E certify, are run on emulated binary32: every product, sum and
function rounded one at a time, in the order of docs/numerics.md. The compiled kernels must give the same bits: outputs
and gradients, every path, several degrees, single operations, a block, the whole step, and the model that ships.
For the sums the a-priori bound of dot16 is checked, with the count of roundings that it stands on.
"""
import math

import numpy as np

from .. import wiring
from ...below import available_paths, degree, ieee_mode, kernel_path, linear_forward
from ...workspace import Workspace
from ..config import ViTConfig
from ..float32 import Kernels
from ..model import ViT
from ..parameters import Gradients, Parameters
from .emulated import Emulated
from .families import FAMILIES, case
from .prime import Stream
from .report import cells
from .sizes import SMALL, TINY, Sizes, parameter_shapes

SHAPES = {
    "row_dense": [(1, 1, 1), (3, 4, 5), (5, 17, 33), (17, 31, 15), (33, 16, 16)],
    "patch_embed": [(1, 4, 4, 2, 4, 2), (2, 5, 7, 3, 4, 5), (1, 4, 5, 2, 6, 17), (3, 8, 8, 4, 3, 16)],
    "layer_norm": [(1, 1), (3, 17), (17, 5), (4, 192)],
    "classifier": [(1, 1, 1), (5, 33, 7)],
    "attention": [(1, 1, 1), (5, 2, 3), (7, 3, 8), (19, 2, 16)],
    "gelu_tanh": [(1,), (1000,)],
    "gelu_erf": [(1,), (1000,)],
    "cross_entropy": [(2, 0), (10, 3)],
}
FULL = {"row_dense": [(197, 192, 192)], "layer_norm": [(197, 192)], "attention": [(197, 3, 64)]}
BLOCK, STEP, DOT = "whole block", "whole step, image → parameters", "dot16"
LENGTHS = (*range(1, 70), 192, 197, 768, 6304)


def run(full=False, table=Kernels):
    """family → Cell."""
    found = cells(FAMILIES | {BLOCK: None, STEP: None, DOT: None})
    ways = [(path, threads) for path in available_paths() for threads in ((1, 2, 3) if full else (1, 2))]
    for operation, shapes in SHAPES.items():
        for shape in shapes + (FULL.get(operation, []) if full else []):
            operation_bits(case(operation, *shape), ways, table, found)
    for act in ("gelu_tanh", "gelu_erf"):
        step_bits(Sizes(**vars(SMALL) | {"hidden_act": act, "num_attention_heads": 3, "hidden_size": 12,
                                         "intermediate_size": 20}), ways, table, found)
        model_bits(Sizes(**vars(SMALL) | {"hidden_act": act}), ways, table, found[STEP])
    model_bits(TINY, ways if full else ways[-1:], table, found[STEP])
    dot_order(ways, found[DOT])
    dot_bound(300 if full else 20, found[DOT])
    return found


def normal_values(stream, shape, scale=1.0):
    """float32 values with a spread of magnitudes: sums of whole numbers, over 2^10."""
    parts = stream.whole(shape, 2**9) + stream.whole(shape, 2**9) + stream.whole(shape, 2**9)
    return parts * np.float32(scale / 2**10)


def same_bits(a, b):
    a, b = np.ascontiguousarray(a, np.float32), np.ascontiguousarray(b, np.float32)
    return a.shape == b.shape and bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


@ieee_mode()
def operation_bits(c, ways, table, found):
    stream = Stream(20)
    v = {name: normal_values(stream, shape) for name, shape in c.inputs.items()}
    dy = normal_values(stream, c.output)
    if c.operation == "cross_entropy":
        v["label"], dy = c.shape[1], np.float32(1)
    expected, truth = c.run(Emulated(c.config, c.parameters(v)), v, dy)
    for path, threads in ways:
        with kernel_path(path), degree(threads):
            gradients = {name: np.full(c.inputs[name], np.nan, np.float32) for name in c.parameters(v)}
            t = table(c.config, c.parameters(v), Workspace(), gradients)
            y, got = c.run(t, v, dy)
            same = y is None or same_bits(y, expected)
            for family, (operation, name) in FAMILIES.items():
                if operation == c.operation:
                    where = f"{operation} {c.shape} on {path}, degree {threads}"
                    found[family].expect(same, 1 if y is None else y.size, f"{where}: output")
                    found[family].expect(same_bits(got[name], truth[name]), got[name].size, f"{where}: {name}")


@ieee_mode()
def step_bits(c, ways, table, found):
    stream = Stream(21)
    values = {name: normal_values(stream, shape, 0.5) for name, shape in parameter_shapes(c).items()}
    image, x = normal_values(stream, (c.num_channels, *c.image_size)), normal_values(stream, (c.rows, c.hidden_size))
    dy = normal_values(stream, x.shape)

    def block(t):
        y, saved = wiring.block_forward(t, "blocks.0", x)
        return [y, wiring.block_backward(t, "blocks.0", dy, saved)]

    def whole(t):
        logits, saved = wiring.forward(t, image)
        dx = wiring.backward(t, t.cross_entropy_gradient(logits, 1), saved)
        made = [logits, dx, t.patch_image_gradient(dx, image.shape)]
        t.sgd(np.float32(0.125))
        return made + [t.parameters[name] for name in values]

    emulated = Emulated(c, dict(values))
    expected = {BLOCK: block(emulated), STEP: whole(emulated)}
    for path, threads in ways:
        with kernel_path(path), degree(threads):
            gradients = {name: np.full(a.shape, np.nan, np.float32) for name, a in values.items()}
            t = table(c, {name: a.copy() for name, a in values.items()}, Workspace(), gradients)
            for row, function in ((BLOCK, block), (STEP, whole)):
                for i, (got, want) in enumerate(zip(function(t), expected[row], strict=True)):
                    where = f"{row}, {c.hidden_act}, on {path}, degree {threads}: array {i}"
                    found[row].expect(same_bits(got, want), want.size, where)


@ieee_mode()
def model_bits(c, ways, table, cell):
    """The model that ships, whose blocks are one call of the encoder kernel, against the wiring on single kernels."""
    stream = Stream(24)
    config = ViTConfig(**{name: value for name, value in vars(c).items() if name != "rows"}, num_patches=c.rows - 1)
    parameters = Parameters(config)
    for _, array in parameters.items():
        array[...] = normal_values(stream, array.shape, 0.25)
    image, dlogits = normal_values(stream, config.image_shape), normal_values(stream, (1, c.num_classes))
    names = list(parameter_shapes(c))
    for path, threads in ways:
        with kernel_path(path), degree(threads):
            model, made, dimage = ViT(parameters), Gradients(config), np.full(image.shape, np.nan, np.float32)
            saved = model.forward_saved(image, Workspace())
            logits = saved.outputs.copy()
            model.backward(saved, dlogits[0], made, dimage=dimage)
            wired = Gradients(config)
            t = table(c, parameters, Workspace(), wired)
            expected, kept = wiring.forward(t, image)
            expected = expected[0].copy()
            dx = wiring.backward(t, dlogits, kept)
            where = f"the model that ships, {c.hidden_act}, d = {c.hidden_size}, on {path}, degree {threads}"
            cell.expect(same_bits(logits, expected), expected.size, f"{where}: logits")
            inference = model.forward(image[None])[0]
            cell.expect(same_bits(inference, expected), expected.size, f"{where}: logits of inference")
            cell.expect(same_bits(dimage, t.patch_image_gradient(dx, image.shape)), dimage.size, f"{where}: image")
            total = Gradients(config)
            total.flat[...] = normal_values(stream, total.flat.shape)
            summed = {name: total[name] + wired[name] for name in names}
            model.backward(saved, dlogits[0], Gradients(config), total=total)
            for name in names:
                cell.expect(same_bits(made[name], wired[name]), wired[name].size, f"{where}: {name}")
                cell.expect(same_bits(total[name], summed[name]), wired[name].size, f"{where}: {name}, added to a sum")


# --- dot16 -----------------------------------------------------------------------------------------------------------


def kernel_dot(x, y):
    """dot16 of every row of x with the same row of y, by the compiled linear layer."""
    out = np.empty((1, 1), np.float32)
    made = []
    for a, b in zip(x, y, strict=True):
        linear_forward(a[None], b[None], None, out)
        made.append(out[0, 0])
    return np.array(made, np.float32)


def rows_for(stream, n, count):
    """Rows with signs and magnitudes of every kind: plain, all positive, 2^-20 … 2^20, and subnormal products."""
    x, y = normal_values(stream, (count, n)), normal_values(stream, (count, n))
    spread = np.ldexp(np.float32(1), (stream.words((count, n)) % np.uint64(41)).astype(int) - 20)
    x[1::4], y[1::4] = np.abs(x[1::4]), np.abs(y[1::4])
    x[2::4] *= spread[2::4]
    x[3::4] *= np.float32(2.0**-75)
    y[3::4] *= np.float32(2.0**-68)
    return x, y


@ieee_mode()
def dot_order(ways, cell):
    """The kernels' bits are those of the emulated order; every index counts exactly once."""
    stream, emulated = Stream(22), Emulated(SMALL, {})
    for n in LENGTHS:
        x, y = rows_for(stream, n, 8)
        expected = emulated.row_dot(x, y)
        for path, threads in ways:
            if threads == 1:
                with kernel_path(path), degree(threads):
                    cell.expect(same_bits(kernel_dot(x, y), expected), len(x), f"order of dot16, n = {n}, {path}")
        if n <= 399:
            one = np.eye(n, dtype=np.float32)
            product = np.empty_like(one)
            linear_forward(one, one, None, product)
            cell.expect(np.array_equal(product, one), n * n, f"n = {n}: an index counts not exactly once")


def roundings(n):
    """The most roundings that a term of dot16 of n terms meets, counted along its order: lane i mod 16, the tree."""
    lanes = [0] * 16
    for i in range(-(-n // 16) * 16):
        lanes[i % 16] += 1
    width = 8
    while width:
        lanes = [max(lanes[i], lanes[i + width]) + 1 for i in range(width)]
        width //= 2
    return lanes[0]


@ieee_mode()
def dot_bound(count, cell):
    """|dot16 - exact| <= gamma sum |x y| + n 2^-150 (1 + gamma), gamma = k u / (1 - k u), k = ceil(n / 16) + 4."""
    stream, worst = Stream(23), {}
    for n in range(1, 400):
        cell.expect(roundings(n) == -(-n // 16) + 4, 1, f"roundings of dot16 of {n} terms")
    for n in (16, 64, 192, 197, 768, 6304):
        x, y = rows_for(stream, n, count)
        u, k = 2.0**-24, roundings(n)
        gamma = k * u / (1 - k * u)
        for a, b, got in zip(x, y, kernel_dot(x, y), strict=True):
            products = a.astype(np.float64) * b.astype(np.float64)  # exact, so fsum rounds once
            bound = gamma * math.fsum(np.abs(products)) + n * 2.0**-150 * (1 + gamma)
            ratio = abs(float(got) - math.fsum(products)) / bound
            worst[n] = max(worst.get(n, 0.0), ratio)
            cell.expect(ratio <= 1, 1, f"dot16 of {n} terms: {ratio:.3f} of its bound")
    cell.notes["worst share of the bound"] = {str(n): round(r, 4) for n, r in worst.items()}
