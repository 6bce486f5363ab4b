"""Sizes of a BERT-family encoder and the one table of its tensors, from which everything else is derived."""
import dataclasses
import json
import math
from dataclasses import dataclass

from ..tensors import TensorSpec

ACTIVATIONS = {"gelu_erf": ("gelu",), "gelu_tanh": ("gelu_new", "gelu_pytorch_tanh")}  # ours: Hugging Face's names
LARGEST = {"vocab_size": 2 ** 24, "num_hidden_layers": 256}  # exact: whole numbers; 65,536 for the others


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Every size and choice that the encoder depends on; the defaults are BERT-base's.

    Attributes
    ----------
    vocab_size, max_position_embeddings, type_vocab_size : rows of the three embedding tables
    hidden_size, num_hidden_layers, num_attention_heads, intermediate_size : the encoder's sizes
    hidden_act : "gelu_erf" or "gelu_tanh"
    layer_norm_eps : added to the variance, as binary32
    pooler : whether the model has the dense layer with tanh on its first row
    """

    vocab_size: int = 30522
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_erf"
    layer_norm_eps: float = 1e-12
    pooler: bool = True

    def __post_init__(self):
        for spec in dataclasses.fields(self):
            value, most = getattr(self, spec.name), LARGEST.get(spec.name, 65536)
            if spec.type is int and (type(value) is not int or not 1 <= value <= most):
                raise ValueError(f"{spec.name} = {value!r}: expected a whole number from 1 to {most}")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size = {self.hidden_size}: expected a multiple of num_attention_heads = "
                             f"{self.num_attention_heads}")
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(f"hidden_act = {self.hidden_act!r}: expected one of {', '.join(map(repr, ACTIVATIONS))}")
        if type(self.layer_norm_eps) not in (int, float) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps = {self.layer_norm_eps!r}: expected a number between 0 and 1")
        if type(self.pooler) is not bool:
            raise ValueError(f"pooler = {self.pooler!r}: expected true or false")

    def to_json(self) -> dict:
        """A plain dictionary that `from_json` turns back into an equal config."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, data: dict) -> "BertConfig":
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


def config_from_checkpoint(data: dict, *, pooler: bool) -> BertConfig:
    """The config that a checkpoint's config.json says.

    Raises ValueError for another architecture than BERT's: what would change a result is refused, not ignored.
    """
    expected = {"model_type": ("bert",), "position_embedding_type": ("absolute",), "is_decoder": (False,),
                "add_cross_attention": (False,)}
    for name, allowed in expected.items():
        if name in data and data[name] not in allowed:
            raise ValueError(f"{name} = {data[name]!r}: expected {allowed[0]!r}")
    act = data.get("hidden_act")
    ours = [name for name, theirs in ACTIVATIONS.items() if act in theirs]
    if not ours:
        raise ValueError(f"hidden_act = {act!r}: expected one of "
                         f"{', '.join(repr(n) for names in ACTIVATIONS.values() for n in names)}")
    sizes = [spec.name for spec in dataclasses.fields(BertConfig) if spec.name not in ("hidden_act", "pooler")]
    missing = [name for name in sizes if name not in data]
    if missing:
        raise ValueError(f"config lacks {', '.join(missing)}")
    return BertConfig(**{name: data[name] for name in sizes}, hidden_act=ours[0], pooler=pooler)


def tensor_table(config: BertConfig) -> list[TensorSpec]:
    """The model's tensors in their fixed order: 5 + 16 a block + 2 with a pooler. q, k and v lie next to each other, so
    that they are one matrix for the kernels."""
    d, inner, rows = config.hidden_size, config.intermediate_size, []

    def add(name, shape, init, decay=False, group="backbone"):
        rows.append(TensorSpec(name, shape, decay, group, init))

    def linear(name, out, inputs, group="backbone"):
        add(f"{name}.weight", (out, inputs), 1.0 / math.sqrt(inputs), True, group)
        add(f"{name}.bias", (out,), "zeros", False, group)

    def norm(name):
        add(f"{name}.weight", (d,), "ones")
        add(f"{name}.bias", (d,), "zeros")

    for name, size in (("word", config.vocab_size), ("position", config.max_position_embeddings),
                       ("token_type", config.type_vocab_size)):
        add(f"embeddings.{name}", (size, d), 0.02, True)
    norm("embeddings.norm")
    for i in range(config.num_hidden_layers):
        for part in "qkv":
            add(f"blocks.{i}.{part}.weight", (d, d), 1.0 / math.sqrt(d), True)
        for part in "qkv":
            add(f"blocks.{i}.{part}.bias", (d,), "zeros")
        linear(f"blocks.{i}.proj", d, d)
        norm(f"blocks.{i}.ln1")
        linear(f"blocks.{i}.fc1", inner, d)
        linear(f"blocks.{i}.fc2", d, inner)
        norm(f"blocks.{i}.ln2")
    if config.pooler:
        linear("pooler", d, d)
    return rows
