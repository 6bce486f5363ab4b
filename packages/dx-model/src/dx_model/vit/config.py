"""Sizes of a vision transformer and the one table of its tensors, from which everything else is derived."""
import dataclasses
import json
import math
from dataclasses import dataclass

from ..tensors import TensorSpec

ACTIVATIONS = ("gelu_tanh", "gelu_erf")
LARGEST = {"num_hidden_layers": 256, "num_patches": 1048576}  # of a number in a config; 65,536 for the others


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """Every size and choice that a vision transformer depends on; the defaults are ViT-Tiny over ten classes.

    Attributes
    ----------
    image_size : (height, width) in pixels; one number: a square
    num_channels, patch_size : channels of an image, pixels of a patch's side (at most the width)
    num_patches : patches an image has; 0: those that lie wholly in it, floor(height / patch_size) * floor(width /
        patch_size). Other numbers read as docs/vit.md says: padded below, or not at all
    num_classes : numbers the classifier gives
    hidden_size, num_hidden_layers, num_attention_heads, intermediate_size : the encoder's sizes
    hidden_act : "gelu_tanh" or "gelu_erf"
    layer_norm_eps : added to the variance, as binary32
    """

    image_size: tuple[int, int] = (224, 224)
    num_channels: int = 3
    patch_size: int = 16
    num_patches: int = 0
    num_classes: int = 10
    hidden_size: int = 192
    num_hidden_layers: int = 12
    num_attention_heads: int = 3
    intermediate_size: int = 768
    hidden_act: str = "gelu_tanh"
    layer_norm_eps: float = 1e-5

    def __post_init__(self):
        size = self.image_size
        size = (size, size) if type(size) is int else size
        if not isinstance(size, (list, tuple)) or len(size) != 2 or any(
                type(n) is not int or not 1 <= n <= 65536 for n in size):
            raise ValueError(f"image_size = {self.image_size!r}: expected (height, width), whole numbers from 1 to "
                             "65536")
        object.__setattr__(self, "image_size", tuple(size))
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            least, most = int(spec.name not in ("num_hidden_layers", "num_patches")), LARGEST.get(spec.name, 65536)
            if spec.type is int and (type(value) is not int or not least <= value <= most):
                raise ValueError(f"{spec.name} = {value!r}: expected a whole number from {least} to {most}")
        height, width = self.image_size
        if self.patch_size > width:
            raise ValueError(f"patch_size = {self.patch_size} with images {width} pixels wide: expected at most the "
                             "width, the grid of patches would have no column")
        if self.num_patches == 0:
            count = (height // self.patch_size) * (width // self.patch_size)
            if count == 0:
                raise ValueError(f"image_size = {self.image_size}: holds no whole patch of {self.patch_size}; say "
                                 "num_patches to have it padded")
            object.__setattr__(self, "num_patches", count)
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size = {self.hidden_size}: expected a multiple of num_attention_heads = "
                             f"{self.num_attention_heads}")
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(f"hidden_act = {self.hidden_act!r}: expected one of {', '.join(map(repr, ACTIVATIONS))}")
        if type(self.layer_norm_eps) not in (int, float) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps = {self.layer_norm_eps!r}: expected a number between 0 and 1")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of one image."""
        return self.num_channels, *self.image_size

    def to_json(self) -> dict:
        """A plain dictionary that `from_json` turns back into an equal config."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, data: dict) -> "ViTConfig":
        """Config from `to_json`'s dictionary; ValueError names an unknown or missing key."""
        if not isinstance(data, dict):
            raise ValueError("the config is not an object")
        known = {spec.name for spec in dataclasses.fields(cls)}
        unknown, missing = sorted(set(data) - known), sorted(known - set(data))
        if unknown:
            raise ValueError(f"config has unknown keys {', '.join(unknown)}: the file may come from a newer version")
        if missing:
            raise ValueError(f"config lacks the keys {', '.join(missing)}")
        return cls(**data)


def tensor_table(config: ViTConfig) -> list[TensorSpec]:
    """The model's tensors in their fixed order: 4 + 16 a block + 4. q, k and v lie next to each other, weights and
    biases, so that they are one matrix for the kernels.

    Projections that close a residual branch (proj, fc2) start at zero, so that every block starts as the identity.
    """
    c, d, inner, rows = config, config.hidden_size, config.intermediate_size, []

    def add(name, shape, init, decay=False, group="backbone"):
        rows.append(TensorSpec(name, shape, decay, group, init))

    def linear(name, out, inputs, zero=False, group="backbone"):
        add(f"{name}.weight", (out, inputs), "zeros" if zero else 1.0 / math.sqrt(inputs), True, group)
        add(f"{name}.bias", (out,), "zeros", False, group)

    def norm(name):
        add(f"{name}.weight", (d,), "ones")
        add(f"{name}.bias", (d,), "zeros")

    taps = c.num_channels * c.patch_size * c.patch_size
    add("patch.weight", (d, c.num_channels, c.patch_size, c.patch_size), 1.0 / math.sqrt(taps), True)
    add("patch.bias", (d,), "zeros")
    add("cls", (d,), 0.02)
    add("pos", (c.num_patches + 1, d), 0.02)
    for i in range(c.num_hidden_layers):
        norm(f"blocks.{i}.ln1")
        for part in "qkv":
            add(f"blocks.{i}.{part}.weight", (d, d), 1.0 / math.sqrt(d), True)
        for part in "qkv":
            add(f"blocks.{i}.{part}.bias", (d,), "zeros")
        linear(f"blocks.{i}.proj", d, d, zero=True)
        norm(f"blocks.{i}.ln2")
        linear(f"blocks.{i}.fc1", inner, d)
        linear(f"blocks.{i}.fc2", d, inner, zero=True)
    norm("norm")
    linear("head", c.num_classes, d, group="head")
    return rows
