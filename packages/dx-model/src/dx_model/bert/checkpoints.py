"""Checkpoints in the layout of Hugging Face's BertModel, with or without a prefix and heads (docs/encoder.md)."""
import json
import re
from pathlib import Path

import numpy as np

from .. import strict_json
from ..container import ModelFileError
from .config import BertConfig, config_from_checkpoint, tensor_table
from .parameters import Parameters

NAMES = {"embeddings.word": "embeddings.word_embeddings.weight",
         "embeddings.position": "embeddings.position_embeddings.weight",
         "embeddings.token_type": "embeddings.token_type_embeddings.weight",
         "embeddings.norm": "embeddings.LayerNorm", "pooler": "pooler.dense"}
BLOCK = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
         "proj": "attention.output.dense", "ln1": "attention.output.LayerNorm", "fc1": "intermediate.dense",
         "fc2": "output.dense", "ln2": "output.LayerNorm"}
OLD = {"gamma": "weight", "beta": "bias"}  # of layer norms in checkpoints converted from TensorFlow
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # ranges of numbers, no weights
HEADS = re.compile(r"(cls|classifier|qa_outputs)\.")  # what heads of other tasks are called


def checkpoint_name(name: str) -> str:
    """The name of a tensor of ours in a checkpoint, without its prefix."""
    block = re.fullmatch(r"blocks\.(\d+)\.(\w+)\.(weight|bias)", name)
    if block:
        return f"encoder.layer.{block[1]}.{BLOCK[block[2]]}.{block[3]}"
    if name in NAMES:
        return NAMES[name]
    part, _, kind = name.rpartition(".")
    return f"{NAMES[part]}.{kind}"


def from_checkpoint(tensors: dict, config: dict, *, prefix: str | None = None) -> tuple[Parameters, list[str]]:
    """The parameters of a checkpoint, and the names of its tensors that were left out (heads of other tasks).

    Parameters
    ----------
    tensors : name → array (float32, or float16, which is widened)
    config : what its config.json holds
    prefix : what its encoder's names begin with; None: "bert." or nothing, whichever there is

    Raises ValueError: a tensor that is missing, unknown, misshapen or not finite; another architecture
    """
    named = {}
    for name, array in tensors.items():
        stem, _, kind = name.rpartition(".")
        named[f"{stem}.{OLD[kind]}" if kind in OLD and "LayerNorm" in stem else name] = array
    if prefix is None:
        prefix = "bert." if any(name.startswith("bert.embeddings.") for name in named) else ""
    made = config_from_checkpoint(config, pooler=f"{prefix}pooler.dense.weight" in named)
    parameters, used = Parameters(made), set()
    for spec in tensor_table(made):
        theirs = prefix + checkpoint_name(spec.name)
        if theirs not in named:
            raise ValueError(f"tensor {theirs} is missing")
        array = np.asarray(named[theirs])
        if array.shape != spec.shape:
            raise ValueError(f"tensor {theirs} has shape {array.shape}: expected {spec.shape}, as its config says")
        if array.dtype not in (np.float16, np.float32):
            raise ValueError(f"tensor {theirs} has type {array.dtype}: expected float32 or float16")
        parameters[spec.name][...] = array
        used.add(theirs)
    left = sorted(name for name in named if name not in used and name.removeprefix(prefix) not in BUFFERS)
    unknown = [name for name in left if not HEADS.match(name)]
    if unknown:
        raise ValueError(f"tensor {unknown[0]} does not belong to this model")
    if not np.isfinite(parameters.flat).all():
        raise ValueError("a tensor holds a value that is not finite")
    return parameters, left


def read_checkpoint(folder) -> tuple[Parameters, list[str]]:
    """`from_checkpoint` of a folder with config.json and model.safetensors. ModelFileError names file and reason."""
    from ..vit.checkpoints import read_tensors

    folder = Path(folder)
    config = read_json(folder / "config.json")
    tensors = read_tensors(folder / "model.safetensors")
    try:
        return from_checkpoint(tensors, config)
    except ValueError as error:
        raise ModelFileError(f"{folder}: {error}") from None


def read_json(path) -> dict:
    """The object of a JSON file. ModelFileError: it is none; OSError."""
    try:
        value = strict_json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, strict_json.StrictJSONError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{path}: expected an object")
    return value


def to_checkpoint(parameters: Parameters) -> tuple[dict[str, np.ndarray], dict]:
    """(tensors, config) in Hugging Face's layout without a prefix: the opposite of `from_checkpoint`."""
    c: BertConfig = parameters.config
    act = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}[c.hidden_act]
    config = {k: v for k, v in json.loads(json.dumps(c.to_json())).items() if k != "pooler"}
    return ({checkpoint_name(name): view.copy() for name, view in parameters.items()},
            {**config, "hidden_act": act, "model_type": "bert", "position_embedding_type": "absolute"})
