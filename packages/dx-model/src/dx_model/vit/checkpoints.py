"""Checkpoints of vision transformers in the layouts of timm and of Hugging Face (docs/vit.md "Name map")."""
import re
from pathlib import Path

import numpy as np

from ..container import ModelFileError
from .config import ViTConfig
from .parameters import Parameters

TIMM, HUGGING_FACE = "timm", "huggingface"
# our name → theirs; {i} is the block. timm has q, k and v in one tensor, in this order.
NAMES = {
    TIMM: {
        "patch": "patch_embed.proj", "cls": "cls_token", "pos": "pos_embed", "ln1": "blocks.{i}.norm1",
        "q": "blocks.{i}.attn.qkv", "k": "blocks.{i}.attn.qkv", "v": "blocks.{i}.attn.qkv",
        "proj": "blocks.{i}.attn.proj", "ln2": "blocks.{i}.norm2", "fc1": "blocks.{i}.mlp.fc1",
        "fc2": "blocks.{i}.mlp.fc2", "norm": "norm", "head": "head"},
    HUGGING_FACE: {
        "patch": "vit.embeddings.patch_embeddings.projection", "cls": "vit.embeddings.cls_token",
        "pos": "vit.embeddings.position_embeddings", "ln1": "vit.encoder.layer.{i}.layernorm_before",
        "q": "vit.encoder.layer.{i}.attention.attention.query", "k": "vit.encoder.layer.{i}.attention.attention.key",
        "v": "vit.encoder.layer.{i}.attention.attention.value", "proj": "vit.encoder.layer.{i}.attention.output.dense",
        "ln2": "vit.encoder.layer.{i}.layernorm_after", "fc1": "vit.encoder.layer.{i}.intermediate.dense",
        "fc2": "vit.encoder.layer.{i}.output.dense", "norm": "vit.layernorm", "head": "classifier"}}
EPS = {TIMM: 1e-6, HUGGING_FACE: 1e-12}  # what the two use unless told otherwise


def checkpoint_name(layout: str, name: str) -> str:
    """The name that a tensor of ours, or the one it is part of, has in a layout."""
    block = re.fullmatch(r"blocks\.(\d+)\.(\w+)\.(weight|bias)", name)
    if block:
        return f"{NAMES[layout][block[2]].replace('{i}', block[1])}.{block[3]}"
    part, _, kind = name.partition(".")
    return f"{NAMES[layout][part]}.{kind}" if kind else NAMES[layout][part]


def read_tensors(path) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file of anyone. ModelFileError: it is not one, or is damaged; OSError."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(Path(path))
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a type that numpy does not have
        raise ModelFileError(f"{path}: not a safetensors file that numpy can read: {error}") from None


def from_checkpoint(tensors, *, num_attention_heads: int, hidden_act: str = "gelu_erf", layer_norm_eps=None,
                    image_size=None) -> Parameters:
    """Parameters with the tensors of a checkpoint.

    Parameters
    ----------
    tensors : name → array (float32, or float16 and float64, which are converted), or a safetensors file
    num_attention_heads, hidden_act : what the shapes do not tell
    layer_norm_eps : None: 1e-6 for timm's names, 1e-12 for Hugging Face's, their defaults
    image_size : (height, width); None: the square that the position table stands for

    Raises ValueError (ModelFileError for a file): names of neither layout, a tensor that is missing, left over, or has
    another shape than the rest asks for.
    """
    path = None
    if not isinstance(tensors, dict):
        path, tensors = tensors, read_tensors(tensors)
    try:
        return _convert(dict(tensors), num_attention_heads, hidden_act, layer_norm_eps, image_size)
    except ValueError as error:
        if path is None:
            raise
        raise ModelFileError(f"{path}: {error}") from None


def _convert(tensors, heads, act, eps, image_size):
    layouts = [layout for layout in NAMES if NAMES[layout]["cls"] in tensors]
    if len(layouts) != 1:
        raise ValueError(f"the tensors have neither timm's nor Hugging Face's names: expected one of "
                         f"{' and '.join(NAMES[layout]['cls'] for layout in NAMES)}")
    layout = layouts[0]
    config = _config(tensors, layout, heads, act, EPS[layout] if eps is None else eps, image_size)
    parameters, used = Parameters(config), set()
    for spec in parameters.specs:
        theirs = checkpoint_name(layout, spec.name)
        shared = layout == TIMM and re.search(r"\.([qkv])\.(weight|bias)$", spec.name)
        array = _tensor(tensors, theirs)
        used.add(theirs)
        shape = (3 * spec.shape[0], *spec.shape[1:]) if shared else spec.shape
        if array.shape != shape and array.shape != (1, *shape) and array.shape != (1, 1, *shape):
            raise ValueError(f"tensor {theirs} has shape {array.shape}: expected {shape}")
        array = array.reshape(shape)
        if shared:
            at = "qkv".index(shared[1]) * spec.shape[0]
            array = array[at:at + spec.shape[0]]
        parameters[spec.name][...] = array
    for name in sorted(tensors):
        if name not in used:
            raise ValueError(f"tensor {name} does not belong to this model")
    if not np.isfinite(parameters.flat).all():
        raise ValueError("a tensor holds a value that is not finite")
    return parameters


def _tensor(tensors, name):
    if name not in tensors:
        raise ValueError(f"tensor {name} is missing")
    array = np.asarray(tensors[name])
    if array.dtype not in (np.float16, np.float32, np.float64):
        raise ValueError(f"tensor {name} has type {array.dtype}: expected float32, float16 or float64")
    return array


def _config(tensors, layout, heads, act, eps, image_size):
    """The config that the shapes tell."""
    kernel = _tensor(tensors, checkpoint_name(layout, "patch.weight"))
    rows = _tensor(tensors, checkpoint_name(layout, "pos")).shape[-2:]
    if kernel.ndim != 4 or kernel.shape[2] != kernel.shape[3] or len(rows) != 2 or rows[1] != len(kernel):
        raise ValueError(f"patch weights {kernel.shape} and positions {rows}: expected (d, channels, P, P) and "
                         "(patches + 1, d)")
    d, channels, patch = kernel.shape[:3]
    side = 0
    while side * side < rows[0] - 1:
        side += 1
    if image_size is None:
        if side * side != rows[0] - 1:
            raise ValueError(f"there are {rows[0] - 1} patches, which is no square: say image_size")
        image_size = (side * patch, side * patch)
    depth = 0
    while checkpoint_name(layout, f"blocks.{depth}.ln1.weight") in tensors:
        depth += 1
    inner = len(_tensor(tensors, checkpoint_name(layout, "blocks.0.fc1.bias"))) if depth else 1
    return ViTConfig(image_size=image_size, num_channels=channels, patch_size=patch, num_patches=rows[0] - 1,
                     num_classes=len(_tensor(tensors, checkpoint_name(layout, "head.bias"))), hidden_size=d,
                     num_hidden_layers=depth, num_attention_heads=heads, intermediate_size=inner, hidden_act=act,
                     layer_norm_eps=eps)


def to_checkpoint(parameters: Parameters, layout: str) -> dict[str, np.ndarray]:
    """name → array in a layout, "timm" or "huggingface": the opposite of `from_checkpoint`."""
    if layout not in NAMES:
        raise ValueError(f"layout = {layout!r}: expected one of {', '.join(map(repr, NAMES))}")
    tensors = {}
    for spec in parameters.specs:
        theirs, array = checkpoint_name(layout, spec.name), parameters[spec.name].copy()
        if theirs in tensors:  # timm's qkv: q is there, k and v follow
            array = np.concatenate([tensors[theirs], array])
        tensors[theirs] = array.reshape({"cls": (1, 1, -1), "pos": (1, *array.shape)}.get(spec.name, array.shape))
    return tensors
