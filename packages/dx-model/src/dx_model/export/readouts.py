"""Readouts as graphs: pools, projection, length 1, and the declared outputs."""
from ..bert.model import Bert
from ..readout.attention_pooling import AttentionPool
from ..readout.errors import require
from ..readout.manifest import Manifest
from ..readout.pooling import check_parameters
from .abi import FAMILY_OF, readout_abi
from .encoder import contextual_rows, visible
from .graph import Graph
from .onnx_file import Exported, finished


def export_readout(model: Bert, manifest: Manifest, head=None, *, parameters=None, calibrator: str | None = None
                   ) -> Exported:
    """An encoder with its readout as ONNX, the manifest inside.

    Parameters
    ----------
    head : the head of the manifest's output kind (dx_model.readout.heads); None for embeddings and token vectors
    parameters : tensors of the pools and of the projection ("projection.weight", "projection.bias")
    calibrator : digest of the calibrator that is applied after the graph

    Raises ReadoutError: an output kind, layer or pool that is not exported; a head that is not the manifest's.
    """
    kind = manifest["output.kind"]
    require(kind in FAMILY_OF, "output.kind", kind, f"one that can be exported: {', '.join(FAMILY_OF)}")
    require(manifest["contextual_state.layers"] == [-1], "contextual_state.layers", manifest["contextual_state.layers"],
            "[-1], the last one")
    require(manifest["contextual_state.width"] == model.config.hidden_size, "contextual_state.width",
            manifest["contextual_state.width"], f"{model.config.hidden_size}, the encoder's")
    _check_head(manifest, kind, head)
    g = Graph()
    seen = visible(g)
    rows = contextual_rows(g, model, seen)
    everything = manifest["rows.include_special"] and manifest["rows.include_prompt"]
    mask = seen if everything else g.op("And", seen, g.cast("row_mask", "bool"))
    parameters = dict(parameters or {})
    projection = {n: parameters.pop(n) for n in ("projection.weight", "projection.bias") if n in parameters}
    width = model.config.hidden_size
    if manifest["readout.pooling"]:
        pooling = manifest.pooling()
        require(pooling.empty.policy == "reject", "readout.empty", pooling.empty.policy, "reject: a graph has no other")
        tensors = check_parameters(parameters, pooling.parameter_shapes(width))
        x, width = _pooled(g, rows, mask, pooling, tensors, width), pooling.width(width)
    else:
        check_parameters(parameters, {})
        x = rows
    x, width = _projected(g, x, manifest["readout.projection"], projection, width)
    if manifest["readout.normalize"]["kind"] == "l2":
        x = _unit(g, x, manifest["readout.normalize"]["epsilon"])
    sizes = _outputs(g, FAMILY_OF[kind], x, width, head, seen, mask)
    return finished(g, readout_abi(manifest, sizes, calibrator), "readout", manifest.to_json().decode())


def _check_head(manifest, kind, head):
    if kind in ("embedding", "token_vectors"):
        require(head is None, "head", getattr(head, "kind", head), f"None: {kind} has no head")
        return
    wanted = "classification" if kind == "pair_score" else kind
    require(getattr(head, "kind", None) == wanted, "head", getattr(head, "kind", head), f"a head of the kind {wanted}")
    labels = manifest["output.labels"]
    own = getattr(head, "labels", None)
    require(labels is None or own is None or list(own.names) == labels, "output.labels", labels,
            f"the head's: {None if own is None else list(own.names)}")


def _pooled(g, rows, mask, pooling, tensors, width):
    column = g.op("Unsqueeze", mask, g.axes(2))
    weight = g.cast(column, "float32")
    parts = [_mode(g, mode, rows, mask, column, weight, tensors, width) for mode in pooling.modes]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=-1)


def _mean(g, rows, column, weight, divisor=None):
    """Sum of weight * row over the rows of the mask, over the sum of the weights or a divisor."""
    total = g.op("ReduceSum", g.op("Where", column, g.op("Mul", rows, weight), g.number(0.0)), g.axes(1), keepdims=0)
    divisor = g.op("ReduceSum", weight, g.axes(1), keepdims=0) if divisor is None else divisor
    return g.op("Div", total, divisor)


def _mode(g, mode, rows, mask, column, weight, tensors, width):
    name = mode.name
    if isinstance(mode, AttentionPool):
        return _attention(g, mode, rows, column, tensors, width)
    if name == "mean":
        return _mean(g, rows, column, weight)
    if name == "mean_sqrt_length":
        return _mean(g, rows, column, weight, g.op("Sqrt", g.op("ReduceSum", weight, g.axes(1), keepdims=0)))
    if name == "position_weighted_mean":
        return _mean(g, rows, column, g.op("Mul", g.op("CumSum", weight, g.number(1, "int64")), weight))
    if name == "max":
        lowest = g.op("Where", column, rows, g.number(float("-inf")))
        return g.op("ReduceMax", lowest, g.axes(1), keepdims=0)
    require(name in ("first", "last", "bert_pooler"), "readout.pooling", name,
            "a pool that can be exported: first, last, bert_pooler, mean, mean_sqrt_length, position_weighted_mean, "
            "max, attention, multi_hop_attention")
    at = g.op("ArgMax", g.cast(mask, "int64"), axis=1, keepdims=1, select_last_index=int(name == "last"))
    x = g.op("GatherND", rows, at, batch_dims=1)
    if name != "bert_pooler":
        return x
    return g.op("Tanh", g.linear(x, "pooler", tensors["pooler.weight"], tensors["pooler.bias"]))


def _attention(g, mode, rows, column, tensors, width):
    name = mode.name
    t = g.op("Tanh", g.linear(rows, name, tensors[f"{name}.weight"], tensors.get(f"{name}.bias")))
    scores = g.op("Where", column, g.linear(t, f"{name}.v", tensors[f"{name}.v"]), g.number(float("-inf")))
    alpha = g.op("Transpose", g.op("Softmax", scores, axis=1), perm=[0, 2, 1])  # (batch, hops, sequence)
    kept = g.op("Where", column, rows, g.number(0.0))
    return g.op("Reshape", g.op("MatMul", alpha, kept), g.axes(0, mode.hops * width))


def _projected(g, x, declared, tensors, width):
    if declared is None:
        check_parameters(tensors, {})
        return x, width
    shapes = {"projection.weight": (declared["out_features"], width)}
    if declared["bias"]:
        shapes["projection.bias"] = (declared["out_features"],)
    tensors = check_parameters(tensors, shapes)
    x = g.linear(x, "projection", tensors["projection.weight"], tensors.get("projection.bias"))
    if declared["activation"] == "tanh":
        x = g.op("Tanh", x)
    elif declared["activation"] == "gelu_erf":
        x = g.gelu(x, "gelu_erf")
    return x, declared["out_features"]


def _unit(g, x, epsilon):
    length = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", x, x), g.axes(-1), keepdims=1))
    return g.op("Div", x, g.op("Max", length, g.number(float(epsilon))))


def _outputs(g, family, x, width, head, seen, mask):
    """Writes the family's outputs; returns the constant axes' sizes."""
    if family == "embeddings":
        g.op("Identity", x, out="embeddings")
        return {"embedding_dim": width}
    if family == "token_vectors":
        g.op("Where", g.op("Unsqueeze", mask, g.axes(2)), x, g.number(0.0), out="token_vectors")
        g.cast(mask, "int64", out="row_mask_out")
        return {"projection_dim": width}
    weight, bias = head.linear.weight, head.linear.bias
    require(weight.shape[1] == width, "head.weight.shape", weight.shape, f"(…, {width}), the readout's width")
    if family in ("sequence_logits", "regression"):
        g.linear(x, "head", weight, bias, out=family)
        return {"classes" if family == "sequence_logits" else "outputs": len(weight)}
    logits = g.op("Where", g.op("Unsqueeze", seen, g.axes(2)), g.linear(x, "head", weight, bias), g.number(0.0))
    if family == "token_logits":
        g.op("Identity", logits, out="token_logits")
        return {"classes": len(weight)}
    for channel, name in enumerate(("start_logits", "end_logits")):
        g.op("Gather", logits, g.number(channel, "int64"), axis=2, out=name)
    return {}
