"""Column C: at the true ViT-Tiny shapes, sum of G theta' = sum of dy (f(theta + theta') - f(theta)) for random values.

f is the definition, summed up one input element or one kernel tap at a time, without matrix products; G is the wiring's
gradient; both over the integers modulo 2^64 (layer norm: over the prime field, as it divides). A gradient with an entry
off by an odd number passes with a chance of 2^-64 a run, off by 2^t times an odd number 2^(t - 64).
"""
import numpy as np

from . import prime
from .families import FAMILIES, case
from .field import Field, Functions
from .report import cells
from .ring import Ring

SHAPES = {
    "row_dense": [(197, 192, 192), (197, 192, 576), (197, 192, 768), (197, 768, 192)],
    "patch_embed": [(3, 224, 224, 16, 196, 192), (3, 90, 75, 16, 24, 33)],
    "layer_norm": [(197, 192)],
    "classifier": [(197, 192, 10)],
}
SEEDS = {False: (11,), True: (11, 12, 13)}


def run(full=False, ring=Ring, field=Field, operations=tuple(SHAPES)):
    """family → Cell. `ring`, `field`: the operation tables whose wiring is certified."""
    found = cells(FAMILIES)
    for operation in operations:
        for shape in SHAPES[operation]:
            for seed in SEEDS[full]:
                check(case(operation, *shape), seed, ring, field, found)
    return found


def check(c, seed, ring, field, found):
    functions, stream = Functions(seed), prime.Stream(seed + 1)
    divides = c.operation == "layer_norm"
    mul, add, sub, total = ((prime.mul, prime.add, prime.sub, prime.row_sum) if divides else
                            (np.multiply, np.add, np.subtract, np.add.reduce))

    def random(shape):
        return stream.take(shape) if divides else stream.words(shape)

    v = {name: random(shape) for name, shape in c.inputs.items()}
    dy = random(c.output)
    t = field(c.config, c.parameters(v), functions) if divides else ring(c.config, c.parameters(v))
    y, gradients = c.run(t, v, dy)
    before = DEFINITIONS[c.operation](c, v, t)
    for family, (operation, name) in FAMILIES.items():
        if operation != c.operation or (divides and name == "x"):
            continue
        cell, where = found[family], f"{operation} {c.shape} seed {seed}"
        cell.expect(np.array_equal(y, before), int(y.size), f"{where}: the wiring's output is not the definition's")
        step = random(c.inputs[name])
        after = DEFINITIONS[c.operation](c, v | {name: add(v[name], step)}, t)
        left = total(mul(gradients[name], step).reshape(-1))
        right = total(mul(dy, sub(after, before)).reshape(-1))
        same = gradients[name].shape == step.shape and left == right
        cell.expect(same, int(step.size), f"{where}: gradient of {name}")
        cell.notes["shapes"] = len(SHAPES[operation])


def dense(c, v, t, site="s"):
    x = v["x"][:1] if c.operation == "classifier" else v["x"]
    weight, y = v[f"{site}.weight"], np.zeros(c.output, np.uint64) + v[f"{site}.bias"]
    for i in range(x.shape[1]):
        y += x[:, i:i + 1] * weight[:, i]
    return y


def patch_embed(c, v, t):
    channels, height, width, patch, count, _ = c.shape
    y = v["pos"].copy()
    y[0] += v["cls"]
    y[1:] += v["patch.bias"]
    p = np.arange(count)
    down, across = p // (width // patch) * patch, p % (width // patch) * patch
    for channel, kh, kw in np.ndindex(channels, patch, patch):
        inside = (down + kh < height) & (across + kw < width)
        pixels = np.zeros(count, np.uint64)
        pixels[inside] = v["image"][channel, down[inside] + kh, across[inside] + kw]
        y[1:] += pixels[:, None] * v["patch.weight"][:, channel, kh, kw]
    return y


def layer_norm(c, v, t):
    x, d = v["x"], c.shape[1]
    part = prime.inverse_of(d)
    centred = prime.sub(x, prime.mul(prime.row_sum(x), part)[:, None])
    variance = prime.mul(prime.row_sum(prime.mul(centred, centred)), part)
    root = t.functions.value("inverse_root", prime.add(variance, t.constant("eps")))
    return prime.add(prime.mul(v["s.weight"], prime.mul(centred, root[:, None])), v["s.bias"])


DEFINITIONS = {"row_dense": dense, "patch_embed": patch_embed, "layer_norm": layer_norm,
               "classifier": lambda c, v, t: dense(c, v, t, "head")}
