"""Small vision transformers for the tests: sizes, parameter shapes, random parameters."""
from types import SimpleNamespace

import numpy as np


def config(**changes):
    sizes = dict(num_channels=2, image_size=(9, 8), patch_size=4, hidden_size=12, num_hidden_layers=2,
                 num_attention_heads=3, intermediate_size=20, num_classes=5, hidden_act="gelu_tanh",
                 layer_norm_eps=1e-5, rows=5)
    return SimpleNamespace(**sizes | changes)


def shapes(c):
    """name → shape, in the parameters' order; q, k and v in one."""
    d, m = c.hidden_size, c.intermediate_size
    found = {"patch.weight": (d, c.num_channels, c.patch_size, c.patch_size), "patch.bias": (d,), "cls": (d,),
             "pos": (c.rows, d)}
    for i in range(c.num_hidden_layers):
        for name, shape in (("ln1", (d,)), ("qkv", (3 * d, d)), ("proj", (d, d)), ("ln2", (d,)), ("fc1", (m, d)),
                            ("fc2", (d, m))):
            found[f"blocks.{i}.{name}.weight"], found[f"blocks.{i}.{name}.bias"] = shape, shape[:1]
    for name, shape in (("norm", (d,)), ("head", (c.num_classes, d))):
        found[f"{name}.weight"], found[f"{name}.bias"] = shape, shape[:1]
    return found


def parameters(c, rng, scale=0.4):
    """Random parameters, none zero or one."""
    return {name: (rng.standard_normal(shape) * scale).astype(np.float32) for name, shape in shapes(c).items()}


def image(c, rng):
    return rng.standard_normal((c.num_channels, *c.image_size)).astype(np.float32)


def zeros(c):
    return {name: np.zeros(shape, np.float32) for name, shape in shapes(c).items()}
