"""Pools: from the selected rows of every example to one vector, forward and backward.

A mode pools the listed rows of x (B * S, D): forward(x, selected, parameters, weights) gives (y, saved) with y
(kept, width), backward(dy, saved) gives (dx, gradients of its parameters). `Pooling` joins modes, formats and the
policy for examples without rows. Rows are gathered in order, so padding on either side and holes change no bit;
gradients of parameters are made per example and added in example order.
"""
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..below import (
    embedding_forward,
    ieee_mode,
    linear_backward,
    linear_forward,
    pool_max_backward,
    pool_max_forward,
    pool_sum_backward,
    pool_sum_forward,
    tanh_backward,
    tanh_forward,
)
from .errors import ReadoutError, require
from .selection import EmptyRows, Selection, narrow, select_rows, widen

F32 = np.float32


def add_examples(parts):
    """The sum of a list of equal arrays in order, plain additions, starting as a copy of the first."""
    total = parts[0].copy()
    for part in parts[1:]:
        total = total + part
    return total


class Boundary:
    """First or last selected row of an example: a gather, its gradient a scatter."""

    def __init__(self, side):
        self.name, self.side = side, side

    def width(self, d):
        return d

    def shapes(self, d):
        return {}

    def rows(self, selected):
        """(kept,) rows of x."""
        return selected.rows[selected.starts[:-1] if self.side == "first" else selected.starts[1:] - 1]

    def forward(self, x, selected, parameters, weights):
        rows = np.ascontiguousarray(self.rows(selected))
        y = np.empty((len(rows), x.shape[1]), F32)
        embedding_forward(x, rows, y)
        return y, (rows, x.shape)

    def backward(self, dy, saved):
        rows, shape = saved
        dx = np.zeros(shape, F32)
        dx[rows] = dy
        return dx, {}


class BertPooler(Boundary):
    """tanh(weight h + bias) of the first selected row: not the raw row."""

    def __init__(self):
        super().__init__("first")
        self.name = "bert_pooler"

    def shapes(self, d):
        return {"pooler.weight": (d, d), "pooler.bias": (d,)}

    def forward(self, x, selected, parameters, weights):
        h, gathered = super().forward(x, selected, parameters, weights)
        y = np.empty_like(h)
        linear_forward(h, parameters["pooler.weight"], parameters["pooler.bias"], y)
        tanh_forward(y.reshape(-1), y.reshape(-1))
        return y, (gathered, h, y, parameters["pooler.weight"])

    def backward(self, dy, saved):
        gathered, h, y, weight = saved
        dz, dh = np.empty_like(y), np.empty_like(h)
        tanh_backward(np.ascontiguousarray(dy).reshape(-1), y.reshape(-1), dz.reshape(-1))
        linear_backward(dz, None, weight, dh)
        parts = []
        for b in range(len(h)):
            parts.append((np.empty_like(weight), np.empty(len(weight), F32)))
            linear_backward(dz[b:b + 1], h[b:b + 1], weight, None, *parts[b])
        gradients = {"pooler.weight": add_examples([p[0] for p in parts]),
                     "pooler.bias": add_examples([p[1] for p in parts])} if parts else {}
        return super().backward(dh, gathered)[0], gradients


class Mean:
    """Sum of the selected rows over their number n, or over sqrt(n): the name says which, they are two readouts."""

    def __init__(self, name):
        self.name = name

    def width(self, d):
        return d

    def shapes(self, d):
        return {}

    def forward(self, x, selected, parameters, weights):
        counts = selected.counts.astype(F32)
        divisors = counts if self.name == "mean" else np.sqrt(counts)
        y = np.empty((len(counts), x.shape[1]), F32)
        pool_sum_forward(x, selected.rows, selected.starts, y, divisors=divisors)
        return y, (selected, divisors, x.shape)

    def backward(self, dy, saved):
        selected, divisors, shape = saved
        dx = np.empty(shape, F32)
        pool_sum_backward(dy, selected.rows, selected.starts, dx, divisors=divisors)
        return dx, {}


class WeightedMean:
    """Sum of w * row over sum of w. The weights are configuration: positions 1..n of the selected rows, or given ones.

    Given weights are finite and not negative; an example whose weights sum to 0 is refused.
    """

    def __init__(self, name):
        self.name = name

    def width(self, d):
        return d

    def shapes(self, d):
        return {}

    def weights(self, selected: Selection, weights):
        """(w (listed,), their sums (kept,)), float32."""
        if self.name == "position_weighted_mean":
            counts = selected.counts
            return (selected.ranks() + 1).astype(F32), (counts * (counts + 1) // 2).astype(F32)
        w, mass = self.given(selected, weights), np.empty((len(selected.kept), 1), F32)
        pool_sum_forward(w.reshape(-1, 1), None, selected.starts, mass)
        bad = np.flatnonzero((mass == 0) | np.isinf(mass))
        if len(bad):
            raise ReadoutError(f"weights of example {selected.kept[bad[0]]}", float(mass[bad[0], 0]),
                               "a sum above 0 and finite")
        return w, mass.reshape(-1)

    @staticmethod
    def given(selected, weights):
        """(listed,) float32 of the given weights (B, S), checked where a row is selected."""
        require(weights is not None, "weights", None, "weights (B, S) of the weighted mean")
        weights = widen(weights, "weights")
        require(weights.shape == selected.shape, "weights.shape", weights.shape, str(selected.shape))
        w = np.ascontiguousarray(weights.reshape(-1)[selected.rows])
        bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
        if len(bad):
            at = divmod(int(selected.rows[bad[0]]), selected.shape[1])
            raise ReadoutError(f"weights[{at[0]}, {at[1]}]", float(w[bad[0]]), "a finite number >= 0")
        return w

    def forward(self, x, selected, parameters, weights):
        w, mass = self.weights(selected, weights)
        y = np.empty((len(mass), x.shape[1]), F32)
        pool_sum_forward(x, selected.rows, selected.starts, y, weights=w, divisors=mass)
        return y, (selected, w, mass, x.shape)

    def backward(self, dy, saved):
        selected, w, mass, shape = saved
        dx = np.empty(shape, F32)
        pool_sum_backward(dy, selected.rows, selected.starts, dx, weights=w, divisors=mass)
        return dx, {}


class Maximum:
    """The largest of the selected rows, channel by channel; of equal ones the first, and the gradient goes there."""

    name = "max"

    def width(self, d):
        return d

    def shapes(self, d):
        return {}

    def forward(self, x, selected, parameters, weights):
        y = np.empty((len(selected.kept), x.shape[1]), F32)
        argmax = np.empty(y.shape, np.int32)
        pool_max_forward(x, selected.rows, selected.starts, y, argmax)
        return y, (argmax, x.shape, selected.shape[1])

    def backward(self, dy, saved):
        argmax, shape, _ = saved
        dx = np.empty(shape, F32)
        pool_max_backward(np.ascontiguousarray(dy), argmax, dx)
        return dx, {}

    @staticmethod
    def argmax(saved):
        """(kept, D) physical row s within its example."""
        return saved[0] % saved[2]


MODES = {"first": lambda: Boundary("first"), "last": lambda: Boundary("last"), "bert_pooler": BertPooler,
         "mean": lambda: Mean("mean"), "mean_sqrt_length": lambda: Mean("mean_sqrt_length"), "max": Maximum,
         "weighted_mean": lambda: WeightedMean("weighted_mean"),
         "position_weighted_mean": lambda: WeightedMean("position_weighted_mean")}


class Pooled(NamedTuple):
    """Result of Pooling.forward.

    Attributes
    ----------
    vectors : (B, width) in the pooling's output format
    selected : Selection that was pooled
    saved : tuple, what backward and the evidence (argmax, attention weights) of each mode need
    """

    vectors: np.ndarray
    selected: Selection
    saved: tuple


@dataclass(frozen=True, eq=False)
class PoolingGradients:
    """hidden (B, S, D) float32, rows that were not selected exactly +0; parameters: name → float32 gradient."""

    hidden: np.ndarray
    parameters: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Pooling:
    """One or several pools of the same rows; several are concatenated in order.

    Attributes
    ----------
    modes : names ("first", "last", "bert_pooler", "mean", "mean_sqrt_length", "max", "weighted_mean",
        "position_weighted_mean") or mode objects (dx_model.readout.AttentionPool)
    empty : EmptyRows policy
    output_dtype : "float32", "float16" or "bfloat16" (as uint16 bits): of the vectors; sums are binary32 in any case

    Examples
    --------
    >>> import numpy as np
    >>> hidden = np.float32([[[1, 2], [3, 6], [9, 9]]])
    >>> Pooling(("mean", "max")).forward(hidden, np.array([[True, True, False]])).vectors.tolist()
    [[2.0, 4.0, 3.0, 6.0]]
    """

    modes: tuple
    empty: EmptyRows = field(default_factory=EmptyRows)
    output_dtype: str = "float32"

    def __post_init__(self):
        given = (self.modes,) if isinstance(self.modes, str) else tuple(self.modes)
        require(len(given) > 0, "readout.modes", given, "at least one mode")
        for mode in given:
            require(not isinstance(mode, str) or mode in MODES, "readout.modes", mode, ", ".join(MODES))
        object.__setattr__(self, "modes", tuple(MODES[m]() if isinstance(m, str) else m for m in given))
        names = [name for mode in self.modes for name in mode.shapes(1)]
        require(len(names) == len(set(names)), "readout.modes", names, "modes whose parameters have different names")
        narrow(np.zeros(0, F32), self.output_dtype)

    def width(self, d: int) -> int:
        """Width of a vector from rows of d: the modes' widths added, derived and never stored."""
        total = 0
        for mode in self.modes:
            total += mode.width(d)
        return total

    def parameter_shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """name → shape of every trained tensor, in order."""
        shapes = {name: shape for mode in self.modes for name, shape in mode.shapes(d).items()}
        return shapes | ({"empty.vector": (self.width(d),)} if self.empty.policy == "learned" else {})

    @ieee_mode()
    def forward(self, hidden, mask, parameters=None, *, attention=None, special=None, weights=None,
                dtype=None) -> Pooled:
        """Pools hidden over the rows of mask.

        Parameters
        ----------
        hidden : (B, S, D) float32 or float16, or uint16 with dtype="bfloat16"; widened exactly before any sum
        mask : (B, S) bool, the readout's rows
        parameters : name → float32 array of parameter_shapes(D)
        attention : (B, S) bool or None; given, a mask that selects padding is refused
        special : (B, S) bool, the rows that stand in under the policy "special_row"
        weights : (B, S) of "weighted_mean"

        Raises
        ------
        ReadoutError
            A shape, dtype or parameter that does not fit; an example without rows unless the policy says what it is;
            weights that are negative, not finite or sum to 0; a vector with NaN or an infinity.
        """
        x = widen(hidden, dtype=dtype)
        require(x.ndim == 3, "hidden.shape", x.shape, "(B, S, D)")
        mask = np.asarray(mask)
        if mask.dtype != np.bool_:
            raise ReadoutError("mask.dtype", mask.dtype.name, "bool")
        if mask.shape != x.shape[:2]:
            raise ReadoutError("mask.shape", mask.shape, str(x.shape[:2]))
        parameters = check_parameters(parameters, self.parameter_shapes(x.shape[2]))
        selected = self.empty.select(attention, mask, special)
        rows = x.reshape(-1, x.shape[2])
        parts, saved = zip(*[mode.forward(rows, selected, parameters, weights) for mode in self.modes], strict=True)
        vectors = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        if not np.isfinite(vectors).all():
            bad = selected.kept[np.flatnonzero(~np.isfinite(vectors).all(1))]
            raise ReadoutError("vectors", {"examples": bad.tolist()}, "finite numbers from the selected rows")
        if len(selected.empty):
            kept, vectors = vectors, np.zeros((len(x), vectors.shape[1]), F32)
            vectors[selected.kept] = kept
            if self.empty.policy == "learned":
                vectors[selected.empty] = parameters["empty.vector"]
        return Pooled(narrow(vectors, self.output_dtype), selected, (x.shape, saved))

    @ieee_mode()
    def backward(self, pooled: Pooled, dvectors) -> PoolingGradients:
        """Gradients of forward for dvectors (B, width) float32. The output format's rounding is passed over."""
        shape, saved = pooled.saved
        dvectors = np.asarray(dvectors)
        want = (shape[0], self.width(shape[2]))
        require(dvectors.dtype == np.float32 and dvectors.shape == want, "dvectors",
                f"{dvectors.dtype.name} {dvectors.shape}", f"float32 {want}")
        total, gradients, at = None, {}, 0
        shapes = self.parameter_shapes(shape[2])
        for mode, kept in zip(self.modes, saved, strict=True):
            width = mode.width(shape[2])
            dx, own = mode.backward(np.ascontiguousarray(dvectors[pooled.selected.kept, at:at + width]), kept)
            total = dx if total is None else total + dx
            gradients |= own
            at += width
        if "empty.vector" in shapes and len(pooled.selected.empty):
            gradients["empty.vector"] = add_examples([dvectors[b] for b in pooled.selected.empty])
        gradients = {name: gradients.get(name, np.zeros(s, F32)) for name, s in shapes.items()}
        return PoolingGradients(total.reshape(shape), gradients)

    def argmax(self, pooled: Pooled) -> np.ndarray:
        """(kept, D) physical row s that won each channel of the mode "max"."""
        for mode, kept in zip(self.modes, pooled.saved[1], strict=True):
            if mode.name == "max":
                return mode.argmax(kept)
        raise ReadoutError("readout.modes", [mode.name for mode in self.modes], "max among them")


def check_parameters(parameters, shapes):
    """The float32 arrays named by shapes, or a ReadoutError that names what is missing, unknown or of another shape."""
    parameters = {} if parameters is None else parameters
    for name in parameters:
        require(name in shapes, f"parameters.{name}", "given", "a name of " + (", ".join(shapes) or "no parameter"))
    checked = {}
    for name, shape in shapes.items():
        require(name in parameters, f"parameters.{name}", None, f"float32 {shape}")
        array = np.asarray(parameters[name])
        require(array.dtype == np.float32 and array.shape == shape, f"parameters.{name}",
                f"{array.dtype.name} {array.shape}", f"float32 {shape}")
        checked[name] = np.ascontiguousarray(array)
    return checked


def pool(hidden, mask, mode: str, **options) -> np.ndarray:
    """(B, width) float32: Pooling(mode).forward(…).vectors."""
    return Pooling((mode,)).forward(hidden, mask, **options).vectors


__all__ = ["MODES", "Pooled", "Pooling", "PoolingGradients", "add_examples", "check_parameters", "pool", "select_rows"]
