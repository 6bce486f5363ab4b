"""Sizes of the vision transformers that are certified, and the shapes of their parameters."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """What the operation tables read of a model's configuration."""

    num_channels: int = 3
    image_size: tuple[int, int] = (224, 224)
    patch_size: int = 16
    rows: int = 197  # of pos: the CLS row and one for each patch
    hidden_size: int = 192
    num_hidden_layers: int = 12
    num_attention_heads: int = 3
    intermediate_size: int = 768
    num_classes: int = 10
    hidden_act: str = "gelu_tanh"
    layer_norm_eps: float = 1e-5


TINY = Sizes()  # ViT-Tiny, 224 x 224, patch 16
SMALL = Sizes(num_channels=2, image_size=(9, 8), patch_size=4, rows=7, hidden_size=6, num_hidden_layers=2,
              num_attention_heads=2, intermediate_size=10, num_classes=5)  # a partial patch row; T, d, K, M all differ


def parameter_shapes(c: Sizes) -> dict:
    """name → shape, in the model's order; q, k and v are the rows of one layer qkv."""
    d, m = c.hidden_size, c.intermediate_size
    found = {"patch.weight": (d, c.num_channels, c.patch_size, c.patch_size), "patch.bias": (d,), "cls": (d,),
             "pos": (c.rows, d)}

    def layer(site, *shape):
        found[f"{site}.weight"], found[f"{site}.bias"] = shape, shape[:1]

    for i in range(c.num_hidden_layers):
        layer(f"blocks.{i}.ln1", d)
        layer(f"blocks.{i}.qkv", 3 * d, d)
        layer(f"blocks.{i}.proj", d, d)
        layer(f"blocks.{i}.ln2", d)
        layer(f"blocks.{i}.fc1", m, d)
        layer(f"blocks.{i}.fc2", d, m)
    layer("norm", d)
    layer("head", c.num_classes, d)
    return found


def tensors_of(name: str) -> int:
    """How many of the page's tensors one of ours holds: Wq, Wk, Wv and their biases are one each here."""
    return 3 if ".qkv." in name else 1
