"""A BERT-family encoder as a graph: padded ids to contextual rows."""
from ..bert.model import Bert
from ..bert.parameters import Parameters
from .graph import Graph


def visible(g: Graph) -> str:
    """attention_mask as (batch, sequence) bool."""
    return g.cast("attention_mask", "bool")


def contextual_rows(g: Graph, model: Bert, seen: str) -> str:
    """(batch, sequence, hidden_size) rows from the inputs input_ids, attention_mask, token_type_ids.

    Positions are ranks of the visible rows, computed in the graph, and hidden rows are no keys: padding may stand on
    either side. Hidden rows themselves are arbitrary; readouts leave them out.
    """
    p, c = model.parameters, model.config
    one = g.number(1, "int64")
    mask = g.cast(seen, "int64")
    rank = g.op("Max", g.op("Sub", g.op("CumSum", mask, g.number(1, "int64")), one), g.number(0, "int64"))
    x = None
    for name, ids in (("word", "input_ids"), ("token_type", "token_type_ids"), ("position", rank)):
        part = g.op("Gather", g.constant(f"embeddings.{name}", p[f"embeddings.{name}"]), ids, axis=0)
        x = part if x is None else g.op("Add", x, part)
    x = g.layer_norm(x, "embeddings.norm", p["embeddings.norm.weight"], p["embeddings.norm.bias"], c.layer_norm_eps)
    keep = g.op("Unsqueeze", seen, g.axes(1, 2))
    for i in range(c.num_hidden_layers):
        x = _block(g, x, f"blocks.{i}", p, c, keep)
    return x


def _block(g: Graph, x: str, name: str, p: Parameters, c, keep: str) -> str:
    heads, size = c.num_attention_heads, c.hidden_size // c.num_attention_heads
    shape = g.axes(0, 0, heads, size)
    q, k, v = (g.op("Transpose", g.op("Reshape", _linear(g, x, f"{name}.{part}", p), shape), perm=[0, 2, 1, 3])
               for part in "qkv")
    mixed = g.op("Transpose", g.masked_attention(q, k, v, size, keep=keep), perm=[0, 2, 1, 3])
    mixed = g.op("Reshape", mixed, g.axes(0, 0, c.hidden_size))
    a = _norm(g, g.op("Add", _linear(g, mixed, f"{name}.proj", p), x), f"{name}.ln1", p, c)
    inner = g.gelu(_linear(g, a, f"{name}.fc1", p), c.hidden_act)
    return _norm(g, g.op("Add", _linear(g, inner, f"{name}.fc2", p), a), f"{name}.ln2", p, c)


def _linear(g, x, name, p):
    return g.linear(x, name, p[f"{name}.weight"], p[f"{name}.bias"])


def _norm(g, x, name, p, c):
    return g.layer_norm(x, name, p[f"{name}.weight"], p[f"{name}.bias"], c.layer_norm_eps)
