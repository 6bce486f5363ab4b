"""What all heads share: local losses, linear maps with gradients, dropout as part of the head."""
from dataclasses import dataclass

import numpy as np

from ...below import linear_backward, linear_forward
from ..errors import require

f32 = np.float32
IGNORED = -1  # a target that is not counted


@dataclass(frozen=True)
class LocalLoss:
    """One head's loss of what it was given: numerator / denominator; what a batch makes of it is the caller's."""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        """The mean, 0.0 where nothing was counted."""
        return self.numerator / self.denominator if self.denominator else 0.0

    def __add__(self, other: "LocalLoss") -> "LocalLoss":
        return LocalLoss(self.numerator + other.numerator, self.denominator + other.denominator)


class Linear:
    """y = x @ weight.T + bias on rows; weight (out, in), bias (out,) float32, held by reference."""

    def __init__(self, weight, bias, name="head"):
        for part, array, ndim in (("weight", weight, 2), ("bias", bias, 1)):
            require(isinstance(array, np.ndarray) and array.dtype == f32 and array.ndim == ndim
                    and array.flags.c_contiguous, f"{name}.{part}", getattr(array, "dtype", type(array).__name__),
                    f"a C-contiguous float32 array of {ndim} dimensions")
        require(bias.shape == weight.shape[:1], f"{name}.bias.shape", bias.shape, f"({len(weight)},)")
        self.weight, self.bias, self.name = weight, bias, name

    @property
    def inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    def rows(self, x, what="readout") -> np.ndarray:
        x = np.ascontiguousarray(x, f32)
        require(x.ndim == 2 and x.shape[1] == self.inputs, f"{what}.shape", x.shape, f"(rows, {self.inputs})")
        return x

    def forward(self, x) -> np.ndarray:
        x = self.rows(x)
        y = np.empty((len(x), self.outputs), f32)
        linear_forward(x, self.weight, self.bias, y)
        return y

    def backward(self, dy, x):
        """(dx, {"weight": …, "bias": …}); dweight is a dot16 and dbias a sum16 over the rows in order."""
        x, dy = self.rows(x), np.ascontiguousarray(dy, f32)
        dx, dweight, dbias = np.empty_like(x), np.empty_like(self.weight), np.empty_like(self.bias)
        linear_backward(dy, x, self.weight, dx, dweight, dbias)
        return dx, {"weight": dweight, "bias": dbias}


@dataclass(frozen=True)
class Dropout:
    """Dropout of a head's input: its rate is part of the trained head, its factors come from the caller's counter.

    Training needs factors (0 or 1 / (1 - rate), of the input's shape) unless the rate is 0; evaluation takes none: the
    same weights with dropout on are another function.
    """

    rate: float = 0.0

    def __post_init__(self):
        require(isinstance(self.rate, float) and 0 <= self.rate < 1, "head.dropout", self.rate, "a float in [0, 1)")

    def apply(self, x, training: bool, factors):
        if not training:
            require(factors is None, "factors", "given", "None: evaluation drops nothing")
            return x
        if self.rate == 0:
            require(factors is None, "factors", "given", "None: the head's dropout rate is 0")
            return x
        require(factors is not None, "factors", None, f"dropout factors: the head was made with rate {self.rate}")
        factors = np.asarray(factors, f32)
        require(factors.shape == x.shape, "factors.shape", factors.shape, str(x.shape))
        return x * factors

    @staticmethod
    def backward(dx, factors):
        return dx if factors is None else dx * np.asarray(factors, f32)


def int32(name, values, shape) -> np.ndarray:
    """Whole numbers of this shape as int32; anything else is refused (a float label is a mistake)."""
    array = np.asarray(values)
    require(array.dtype.kind in "iu" or array.size == 0, f"{name}.dtype", array.dtype.name, "whole numbers")
    require(array.shape == tuple(shape), f"{name}.shape", array.shape, str(tuple(shape)))
    return np.ascontiguousarray(array, np.int32)


def mask8(name, values, shape) -> np.ndarray:
    """A bool mask of this shape as bytes."""
    array = np.asarray(values)
    require(array.dtype == np.bool_, f"{name}.dtype", array.dtype.name, "bool")
    require(array.shape == tuple(shape), f"{name}.shape", array.shape, str(tuple(shape)))
    return np.ascontiguousarray(array, np.uint8)
