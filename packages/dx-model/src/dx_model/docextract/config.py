"""Sizes of a docextract model and the one table of its tensors, from which everything else is derived."""
import dataclasses
import json
import math
from dataclasses import dataclass, field

import numpy as np

from ..encode import Encoding, check_cut
from ..tensors import TensorSpec

MAX_CLASSES = 60
FEATURE_VERSION = 1  # of what the feature kernels compute
LARGEST = {"num_hidden_layers": 256, "max_words": 8192}  # of a number in a config; 65,536 for the others


@dataclass(frozen=True, kw_only=True)
class DocExtractConfig:
    """Every size and choice that a docextract model depends on; two equal configs give equal tensor tables.

    Attributes
    ----------
    fields : names of the fields, in order; class k of the tag head is `fields[k]` (tags O, B-field, I-field)
    repeated : those of the fields that may have several values on a page, in the order of `fields`
    roles : names of the word roles, in order (BIO over roles, as the tags); empty: the head has its O row only
    doc_types : names of the document types; empty: no document type is predicted (the head keeps one row)
    hidden_size, num_hidden_layers, num_attention_heads, intermediate_size : the encoder's sizes
    max_chars, char_vocab, char_dim, char_channels : characters kept a word, character ids (0 is padding), embedding
        width, convolution channels (three taps)
    position_buckets : rows of each of the four position tables
    word_features, pair_features, pair_hidden : feature counts and the width of the pair MLP
    relation_size : numbers a word gives for each of the two pointer heads (items, key-value)
    max_words : rows a window holds at most
    cut, keep_file_order, columns : how a page becomes rows (dx_model.Encoding)
    layer_norm_eps : added to the variance, as binary32
    feature_version : version of the feature kernels the weights were trained with
    """

    fields: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    doc_types: tuple[str, ...] = ()
    hidden_size: int = 128
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    intermediate_size: int = 512
    max_chars: int = 16
    char_vocab: int = 256
    char_dim: int = 32
    char_channels: int = 128
    position_buckets: int = 128
    word_features: int = 56
    pair_features: int = 20
    pair_hidden: int = 32
    relation_size: int = 32
    max_words: int = 512
    cut: bool | str = True
    keep_file_order: bool = False
    columns: bool = True
    layer_norm_eps: float = 1e-5
    hidden_act: str = "gelu_tanh"
    feature_version: int = 1

    def __post_init__(self):
        for name in ("fields", "repeated", "roles", "doc_types"):
            names = getattr(self, name)
            if not isinstance(names, (list, tuple)):
                raise ValueError(f"{name} = {names!r}: expected a list of names")
            for text in names:
                if not isinstance(text, str) or not text:
                    raise ValueError(f"{name} holds {text!r}: expected non-empty strings")
            if len(set(names)) != len(names):
                raise ValueError(f"{name} = {names!r}: expected distinct names")
            object.__setattr__(self, name, tuple(names))
        if len(self.fields) > MAX_CLASSES:
            raise ValueError(f"fields has {len(self.fields)} names: expected at most {MAX_CLASSES}")
        if self.repeated != tuple(name for name in self.fields if name in self.repeated):
            raise ValueError(f"repeated = {self.repeated!r}: expected names of fields, in the order of fields")
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            least, most = 0 if spec.name == "num_hidden_layers" else 1, LARGEST.get(spec.name, 65536)
            if spec.type is int and (type(value) is not int or not least <= value <= most):
                raise ValueError(f"{spec.name} = {value!r}: expected a whole number from {least} to {most}")
            if spec.type is bool and type(value) is not bool:
                raise ValueError(f"{spec.name} = {value!r}: expected true or false")
        check_cut(self.cut)
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"hidden_size = {self.hidden_size}: expected a multiple of num_attention_heads = "
                             f"{self.num_attention_heads}")
        if self.hidden_act != "gelu_tanh":
            raise ValueError(f"hidden_act = {self.hidden_act!r}: docextract knows 'gelu_tanh' only")
        if self.feature_version != FEATURE_VERSION:
            raise ValueError(f"feature_version = {self.feature_version}: this version computes {FEATURE_VERSION}")
        if type(self.layer_norm_eps) not in (int, float) or not 0 < self.layer_norm_eps < 1:
            raise ValueError(f"layer_norm_eps = {self.layer_norm_eps!r}: expected a number between 0 and 1")

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads

    def encoding(self) -> Encoding:
        """How pages become this model's arrays."""
        return Encoding(max_chars=self.max_chars, position_buckets=self.position_buckets, cut=self.cut,
                        keep_file_order=self.keep_file_order, columns=self.columns)

    @property
    def num_tags(self) -> int:
        return 1 + 2 * len(self.fields)

    @property
    def num_role_tags(self) -> int:
        return 1 + 2 * len(self.roles)

    @property
    def num_doc_types(self) -> int:
        return max(1, len(self.doc_types))

    def repeated_mask(self) -> np.ndarray:
        """1 for each field that may have several values, else 0; uint8 (fields,)."""
        return np.array([name in self.repeated for name in self.fields], np.uint8)

    def tag_names(self) -> list[str]:
        """O, B-field, I-field, … in the order of the tag head's rows."""
        return ["O"] + [f"{prefix}-{name}" for name in self.fields for prefix in ("B", "I")]

    def to_json(self) -> dict:
        """A plain dictionary that `from_json` turns back into an equal config."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, data: dict) -> "DocExtractConfig":
        """Config from `to_json`'s dictionary; ValueError names an unknown or missing key."""
        if not isinstance(data, dict):
            raise ValueError("the config is not an object")
        known = {spec.name for spec in dataclasses.fields(cls)}
        unknown, missing = sorted(set(data) - known), sorted(known - set(data))
        if unknown:
            raise ValueError(f"config has unknown keys {', '.join(unknown)}: the file may come from a newer version")
        if missing:
            raise ValueError(f"config lacks the keys {', '.join(missing)}: it comes from another version, and no "
                             "default takes their place; write the file again with the version it was trained with")
        return cls(**data)


@dataclass
class _Table:
    rows: list[TensorSpec] = field(default_factory=list)

    def table(self, name, rows, width, std):
        self.rows.append(TensorSpec(name, (rows, width), True, "backbone", std))

    def linear(self, name, out, inputs, group="backbone", zero=False):
        std = "zeros" if zero else 1.0 / math.sqrt(inputs)
        self.rows.append(TensorSpec(f"{name}.weight", (out, inputs), True, group, std))
        self.rows.append(TensorSpec(f"{name}.bias", (out,), False, group, "zeros"))

    def norm(self, name, width):
        self.rows.append(TensorSpec(f"{name}.weight", (width,), False, "backbone", "ones"))
        self.rows.append(TensorSpec(f"{name}.bias", (width,), False, "backbone", "zeros"))


CONV_TAPS = 3
POSITION_TABLES = ("pos_x0", "pos_y0", "pos_x1", "pos_y1")


def tensor_table(config: DocExtractConfig) -> list[TensorSpec]:
    """The model's tensors in their fixed order (seed 000 "Parameters and optimizer").

    Projections that close a residual branch (proj, fc2) start at zero, so that every block starts as the identity.
    """
    d, t = config.hidden_size, _Table()
    t.table("char_emb.weight", config.char_vocab, config.char_dim, 0.02)
    fan_in = config.char_dim * CONV_TAPS
    t.rows.append(TensorSpec("char_conv.weight", (config.char_channels, config.char_dim, CONV_TAPS), True, "backbone",
                             1.0 / math.sqrt(fan_in)))
    t.rows.append(TensorSpec("char_conv.bias", (config.char_channels,), False, "backbone", "zeros"))
    t.linear("char_proj", d, config.char_channels)
    for name in POSITION_TABLES:
        t.table(f"{name}.weight", config.position_buckets, d, 0.02)
    t.linear("feat_proj", d, config.word_features)
    t.norm("emb_ln", d)
    for i in range(config.num_hidden_layers):
        t.norm(f"blocks.{i}.ln1", d)
        t.linear(f"blocks.{i}.qkv", 3 * d, d)
        t.linear(f"blocks.{i}.proj", d, d, zero=True)
        t.norm(f"blocks.{i}.ln2", d)
        t.linear(f"blocks.{i}.fc1", config.intermediate_size, d)
        t.linear(f"blocks.{i}.fc2", d, config.intermediate_size, zero=True)
    t.linear("pair1", config.pair_hidden, config.pair_features)
    t.linear("pair2", config.num_attention_heads, config.pair_hidden)
    t.norm("final_ln", d)
    t.linear("tag_head", config.num_tags, d, "head")
    t.linear("role_head", config.num_role_tags, d, "head")
    t.linear("doc_head", config.num_doc_types, d, "head")
    t.linear("rel_q", 2 * config.relation_size, d, "head")
    t.linear("rel_k", 2 * config.relation_size, d, "head")
    return t.rows
