"""Column E: the whole step, in the prime field, against forward-mode duals.

Truth is one forward pass of the wiring on dual numbers: every parameter and the image move along one random direction,
and the loss -log softmax(logits)[label] moves by what the primitives' own rules of differentiation say. The step under
certification runs the wiring's forward, adjoint and update w - rate G in the field. Then
sum of (w - w_new) w' + rate sum of dimage image' = rate loss', exactly, or the step is rejected.
"""
import functools
from dataclasses import dataclass

import numpy as np

from .. import wiring
from . import prime
from .duals import Dual, Duals
from .families import FAMILIES
from .field import Field, Functions
from .report import cells
from .sizes import SMALL, TINY, Sizes, parameter_shapes, tensors_of

LABEL = 2
WHOLE = "whole step, image → parameters"
# theorem → ends of the names of the tensors it is about
TENSORS = {
    "rowDense_weight_sgd_certified": ("qkv.weight", "proj.weight", "fc1.weight", "fc2.weight"),
    "rowDense_bias_sgd_certified": ("qkv.bias", "proj.bias", "fc1.bias", "fc2.bias"),
    "layerNormVec_gamma_sgd_certified": ("ln1.weight", "ln2.weight", "norm.weight"),
    "layerNormVec_beta_sgd_certified": ("ln1.bias", "ln2.bias", "norm.bias"),
    "posEmbed_sgd_certified": ("pos",),
    "clsToken_sgd_certified": ("cls",),
    "patchEmbed_weight_sgd_certified": ("patch.weight",),
    "patchEmbed_bias_sgd_certified": ("patch.bias",),
    "IR.weight_grad_bridge (classifier)": ("head.weight",),
    "IR.bias_grad_bridge (classifier)": ("head.bias",),
    "patch embedding image": ("image",),
}


def run(full=False):
    """family → Cell."""
    found = cells(FAMILIES | {WHOLE: None})
    for act in ("gelu_tanh", "gelu_erf"):
        small = Sizes(**vars(SMALL) | {"hidden_act": act})
        for seed in (1, 2, 3) if full else (1,):
            for family, ends in TENSORS.items():
                holds = identity(small, setting(small, seed, ends))
                where = f"small step, {act}, seed {seed}: {', '.join(ends)}"
                found[family].expect(holds, sizes_of(small, ends)[0], where)
    for act, seeds in (("gelu_tanh", (1, 2, 3) if full else (1,)), ("gelu_erf", (4,) if full else ())):
        tiny = Sizes(**vars(TINY) | {"hidden_act": act})
        count, tensors = sizes_of(tiny)
        for seed in seeds:
            holds = identity(tiny, setting(tiny, seed))
            found[WHOLE].expect(holds, count, f"ViT-Tiny, {act}, seed {seed}: the loss moves otherwise")
            found[WHOLE].notes["steps"] = found[WHOLE].notes.get("steps", 0) + 1
        found[WHOLE].notes |= {"tensors": tensors, "parameters": count}
    return found


@dataclass
class Setting:
    """One random point and direction, and the loss's true tangent there."""

    functions: Functions
    values: dict
    moved: dict
    image: np.ndarray
    image_moved: np.ndarray
    rate: np.uint64
    loss_moved: np.uint64


def setting(c, seed, ends=None) -> Setting:
    """ends: only tensors whose names end so move; None: all, and the image."""
    functions, stream = Functions(seed), prime.Stream(seed + 100)
    shapes = parameter_shapes(c) | {"image": (c.num_channels, *c.image_size)}
    values = {name: stream.take(shape) for name, shape in shapes.items()}
    moved = {name: stream.take(shape) if ends is None or name.endswith(ends) else np.zeros(shape, np.uint64)
             for name, shape in shapes.items()}
    image, image_moved = values.pop("image"), moved.pop("image")
    loss_moved = true_tangent(c, values, moved, image, image_moved, functions)
    return Setting(functions, values, moved, image, image_moved, stream.take((1,))[0], loss_moved)


small_setting = functools.lru_cache(maxsize=8)(setting)


def identity(c, s: Setting, field=Field, wired=wiring) -> bool:
    """Does the step of sizes c hold in this setting? field, wired: the table and the wiring under certification; the
    truth in the setting is the packages' own."""
    t = field(c, dict(s.values), s.functions)
    logits, saved = wired.forward(t, s.image)
    dx = wired.backward(t, t.cross_entropy_gradient(logits, LABEL), saved)
    total = inner(prime.mul(s.rate, t.patch_image_gradient(dx, s.image.shape)), s.image_moved)
    t.sgd(s.rate)
    if sorted(t.gradients) != sorted(s.values) or any(t.parameters[n].shape != a.shape for n, a in s.values.items()):
        return False
    for name, array in s.values.items():
        total = prime.add(total, inner(prime.sub(array, t.parameters[name]), s.moved[name]))
    return bool(total == prime.mul(s.rate, s.loss_moved))


def sizes_of(c, ends=None):
    """(parameters, tensors as the page counts them) whose names end so; None: all."""
    count = tensors = 0
    for name, shape in (parameter_shapes(c) | {"image": (c.num_channels, *c.image_size)}).items():
        if name.endswith(ends) if ends is not None else name != "image":
            count += np.empty(shape, bool).size
            tensors += tensors_of(name)
    return count, tensors


def true_tangent(c, values, moved, image, image_moved, functions):
    """The loss's tangent: (sum of exp(z) z') / (sum of exp(z)) - z'[label] of the dual forward's logits z, z'."""
    duals = Duals(c, {name: Dual(values[name], moved[name]) for name in values}, functions)
    logits, _ = wiring.forward(duals, Dual(image, image_moved))
    e = functions.value("exp", logits.value)
    mean = prime.mul(prime.row_sum(prime.mul(e, logits.tangent)), prime.inverse(prime.row_sum(e)))
    return prime.sub(mean[0], logits.tangent[0, LABEL])


def inner(a, b):
    return prime.row_sum(prime.mul(a, b).reshape(-1))
