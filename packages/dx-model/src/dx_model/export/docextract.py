"""docextract as a graph: the arrays of one encoded window to the logits of its heads."""
import json

import numpy as np

from ..canonical_json import canonical
from ..docextract.config import POSITION_TABLES
from ..docextract.model import DocExtract
from ..encode import EncodedPage
from .abi import ABI, FAMILIES, Semantics, Tensor
from .graph import Graph
from .onnx_file import Exported, finished

INPUTS = (Tensor("characters", "int64", ("distinct", "max_chars")), Tensor("inverse", "int64", ("words",)),
          Tensor("positions", "int64", ("words", "edges")), Tensor("features", "float32", ("words", "word_features")),
          Tensor("pairs", "float32", ("pair_features", "words", "words")))


def page_inputs(model: DocExtract, page: EncodedPage) -> dict[str, np.ndarray]:
    """The graph's inputs of an encoded window of one word or more: pages become arrays in dx, the graph begins
    there."""
    n = len(page)
    if not n:
        raise ValueError("the window has no words: expected one at least")
    pairs = np.empty((model.config.pair_features, n, n), np.float32)
    model.pair_features(page, pairs)
    return {"characters": page.characters.astype(np.int64), "inverse": page.table_ids[0].astype(np.int64),
            "positions": np.ascontiguousarray(page.table_ids[1:].T, np.int64), "features": page.features,
            "pairs": pairs}


def export_docextract(model: DocExtract) -> Exported:
    """A docextract model as ONNX, its configuration inside. The outputs are logits; decoding, thresholds and
    calibration stay in dx."""
    p, c, g = model.parameters.to_container(), model.config, Graph()
    x = g.op("Gather", _characters(g, p), "inverse", axis=0)
    x = g.op("Add", x, _linear(g, "features", "feat_proj", p))
    for column, name in enumerate(POSITION_TABLES):
        at = g.op("Gather", "positions", g.number(column, "int64"), axis=1)
        x = g.op("Add", x, g.op("Gather", g.constant(f"{name}.weight", p[f"{name}.weight"]), at, axis=0))
    x = _norm(g, x, "emb_ln", p, c)
    bias = _pair_bias(g, p)
    for i in range(c.num_hidden_layers):
        x = _block(g, x, f"blocks.{i}", p, c, bias)
    x = _norm(g, x, "final_ln", p, c)
    for name in ("tag", "role"):
        _linear(g, x, f"{name}_head", p, out=name)
    mean = g.op("ReduceMean", x, g.axes(0), keepdims=1)
    g.op("Reshape", _linear(g, mean, "doc_head", p), g.axes(-1), out="doc")
    _pointers(g, x, p, c.relation_size)
    sizes = {"max_chars": c.max_chars, "edges": 4, "word_features": c.word_features, "pair_features": c.pair_features,
             "tags": c.num_tags, "roles": c.num_role_tags, "doc_types": c.num_doc_types}
    outputs = tuple(Tensor(name, "float32", axes) for name, axes in FAMILIES["docextract"].items())
    semantics = Semantics("logits", "all", "none", None, None, "lowest_index", tuple(c.tag_names()))
    return finished(g, ABI("docextract", INPUTS, outputs, sizes, semantics), "docextract",
                    canonical(json.loads(json.dumps(c.to_json()))).decode())


def _linear(g, x, name, p, out=None):
    return g.linear(x, name, p[f"{name}.weight"], p[f"{name}.bias"], out=out)


def _norm(g, x, name, p, c):
    return g.layer_norm(x, name, p[f"{name}.weight"], p[f"{name}.bias"], c.layer_norm_eps)


def _characters(g, p):
    """(distinct, d): three-tap convolution, relu, maximum over the characters that are there, projection."""
    there = g.op("Unsqueeze", g.op("Not", g.op("Equal", "characters", g.number(0, "int64"))), g.axes(1))
    emb = g.op("Gather", g.constant("char_emb.weight", p["char_emb.weight"]), "characters", axis=0)
    emb = g.op("Transpose", emb, perm=[0, 2, 1])
    conv = g.op("Conv", emb, g.constant("char_conv.weight", p["char_conv.weight"]),
                g.constant("char_conv.bias", p["char_conv.bias"]), kernel_shape=[3], pads=[1, 1])
    kept = g.op("Where", there, g.op("Relu", conv), g.number(0.0))
    return _linear(g, g.op("ReduceMax", kept, g.axes(2), keepdims=0), "char_proj", p)


def _pair_bias(g, p):
    """(1, heads, words, words)."""
    pairs = g.op("Transpose", "pairs", perm=[1, 2, 0])
    bias = _linear(g, g.op("Relu", _linear(g, pairs, "pair1", p)), "pair2", p)
    return g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.axes(0))


def _block(g, x, name, p, c, bias):
    d, heads, size = c.hidden_size, c.num_attention_heads, c.head_size
    w, b = p[f"{name}.qkv.weight"], p[f"{name}.qkv.bias"]
    h = _norm(g, x, f"{name}.ln1", p, c)
    parts = []
    for k, part in enumerate("qkv"):
        y = g.linear(h, f"{name}.{part}", w[k * d:(k + 1) * d], b[k * d:(k + 1) * d])
        y = g.op("Transpose", g.op("Reshape", y, g.axes(-1, heads, size)), perm=[1, 0, 2])
        parts.append(g.op("Unsqueeze", y, g.axes(0)))
    mixed = g.op("Transpose", g.masked_attention(*parts, size, add=bias), perm=[0, 2, 1, 3])
    x = g.op("Add", x, _linear(g, g.op("Reshape", mixed, g.axes(-1, d)), f"{name}.proj", p))
    inner = g.gelu(_linear(g, _norm(g, x, f"{name}.ln2", p, c), f"{name}.fc1", p), "gelu_tanh")
    return g.op("Add", x, _linear(g, inner, f"{name}.fc2", p))


def _pointers(g, x, p, r):
    q, k = (_linear(g, x, name, p) for name in ("rel_q", "rel_k"))
    scale = g.number(float(np.sqrt(np.float32(r))))
    for part, name in enumerate(("item", "key_value")):
        one, other = (g.op("Slice", y, g.axes(part * r), g.axes((part + 1) * r), g.axes(1)) for y in (q, k))
        g.op("Div", g.op("MatMul", one, g.op("Transpose", other, perm=[1, 0])), scale, out=name)
