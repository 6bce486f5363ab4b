"""Projected pools, and the duplex vector: the first row's route beside the ordinary rows' route."""
from dataclasses import dataclass

import numpy as np

from ..below import embedding_forward, ieee_mode, linear_backward, linear_forward
from .errors import require
from .pooling import F32, MODES, Pooling, add_examples
from .selection import Selection


class ProjectedRows:
    """A mode of Pooling: every selected row is projected (weight h + bias), then a mode without parameters reduces.

    name : prefix of the parameters name.weight (out_features, D) and name.bias (out_features,)
    """

    def __init__(self, mode: str, out_features: int, *, bias: bool = True, name: str = "projection"):
        require(mode in MODES and not MODES[mode]().shapes(1) and mode != "weighted_mean", "readout.modes", mode,
                "a mode without parameters or weights")
        require(isinstance(out_features, int) and out_features >= 1, f"{name}.out_features", out_features,
                "a whole number >= 1")
        self.inner, self.out_features, self.bias, self.name = MODES[mode](), out_features, bias, name

    def width(self, d):
        return self.out_features

    def shapes(self, d):
        shapes = {f"{self.name}.weight": (self.out_features, d)}
        return shapes | ({f"{self.name}.bias": (self.out_features,)} if self.bias else {})

    def forward(self, x, selected, parameters, weights):
        h = np.empty((len(selected.rows), x.shape[1]), F32)
        rows = np.empty((len(h), self.out_features), F32)
        weight = parameters[f"{self.name}.weight"]
        embedding_forward(x, selected.rows, h)
        linear_forward(h, weight, parameters.get(f"{self.name}.bias"), rows)
        own = Selection((1, len(rows)), np.arange(len(rows), dtype=np.int32), selected.starts, selected.kept,
                        selected.empty)
        y, inner = self.inner.forward(rows, own, {}, None)
        return y, (x.shape, selected, h, weight, inner)

    def backward(self, dy, saved):
        shape, selected, h, weight, inner = saved
        drows, _ = self.inner.backward(dy, inner)
        dx, dh, parts = np.zeros(shape, F32), np.empty_like(h), []
        linear_backward(drows, None, weight, dh)
        dx[selected.rows] = dh
        for a, b in zip(selected.starts[:-1].tolist(), selected.starts[1:].tolist(), strict=True):
            parts.append((np.empty_like(weight), np.empty(self.out_features, F32)))
            linear_backward(drows[a:b], h[a:b], weight, None, *parts[-1])
        names = [f"{self.name}.weight"] + [f"{self.name}.bias"] * self.bias
        return dx, {name: add_examples([p[i] for p in parts]) for i, name in enumerate(names) if parts}


@dataclass(frozen=True)
class Duplex:
    """z = [P_cls h_cls ; Agg(P_tok H_tok)]: two routes of one vector, both trained and both exported.

    Attributes
    ----------
    cls_features, token_features : outputs of the two projections
    aggregate : "max" or "mean" of the projected ordinary rows
    """

    cls_features: int
    token_features: int
    aggregate: str = "max"

    def __post_init__(self):
        require(self.aggregate in ("max", "mean"), "readout.aggregate", self.aggregate, "max or mean")
        self.routes()

    def routes(self) -> tuple[Pooling, Pooling]:
        """The pool of the first row and that of the ordinary rows."""
        return (Pooling((ProjectedRows("first", self.cls_features, name="cls"),)),
                Pooling((ProjectedRows(self.aggregate, self.token_features, name="tokens"),)))

    def parameter_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """name → shape: of both routes, so a file with one of them is refused."""
        cls, tokens = self.routes()
        return cls.parameter_shapes(d) | tokens.parameter_shapes(d)

    def forward(self, hidden, cls_mask, content_mask, parameters):
        """(vectors (B, cls_features + token_features) float32, saved).

        Parameters
        ----------
        hidden : (B, S, D) as Pooling.forward
        cls_mask : (B, S) bool, the sequence row of each example; content_mask : (B, S) bool, its ordinary rows
        parameters : those of parameter_shapes(D), all of them

        Raises
        ------
        ReadoutError
            A missing tensor of either route; an example without a sequence row or without ordinary rows.
        """
        saved = []
        for name in parameters:
            require(name.split(".")[0] in ("cls", "tokens"), f"parameters.{name}", "given", "a tensor of a route")
        for pooling, route, mask in zip(self.routes(), ("cls", "tokens"), (cls_mask, content_mask), strict=True):
            own = {n: v for n, v in parameters.items() if n.startswith(route + ".")}
            saved.append(pooling.forward(hidden, mask, own))
        return np.concatenate([s.vectors for s in saved], axis=1), tuple(saved)

    @ieee_mode()
    def backward(self, saved, dvectors):
        """(dhidden (B, S, D), gradients of all parameters) for dvectors (B, width) float32."""
        parts = np.split(dvectors, [self.cls_features], axis=1)
        found = [pooling.backward(s, np.ascontiguousarray(d))
                 for pooling, s, d in zip(self.routes(), saved, parts, strict=True)]
        return found[0].hidden + found[1].hidden, found[0].parameters | found[1].parameters
