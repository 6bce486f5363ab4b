"""Regression: real targets with their units, scaling and missing values; no coordinate competes with another."""
from dataclasses import dataclass

import numpy as np

from ...below import gaussian_nll_backward, gaussian_nll_forward, regression_backward, regression_forward
from ..errors import ReadoutError, require
from ..scores import Scores, ScoreType
from .base import Dropout, Linear, LocalLoss, f32


@dataclass(frozen=True)
class TargetScale:
    """scaled = (target - shift) / scale, coordinate by coordinate in binary64, and back: part of the release.

    names, units : of the coordinates
    shift, scale : finite, scale above 0
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    shift: tuple[float, ...]
    scale: tuple[float, ...]

    def __post_init__(self):
        for part in ("units", "shift", "scale"):
            require(len(getattr(self, part)) == len(self.names), f"output.targets.{part}", len(getattr(self, part)),
                    f"{len(self.names)} values")
        for j, (shift, scale) in enumerate(zip(self.shift, self.scale, strict=True)):
            require(shift - shift == 0, f"output.targets.shift[{j}]", shift, "a finite number")
            require(scale > 0 and scale - scale == 0, f"output.targets.scale[{j}]", scale, "a finite number > 0")

    def scaled(self, targets) -> np.ndarray:
        return (np.asarray(targets, np.float64) - np.array(self.shift)) / np.array(self.scale)

    def restored(self, values) -> np.ndarray:
        """In units again: values * scale + shift."""
        return np.asarray(values, np.float64) * np.array(self.scale) + np.array(self.shift)


def plain_scale(names, units) -> TargetScale:
    """Targets as they are: shift 0, scale 1."""
    return TargetScale(tuple(names), tuple(units), (0.0,) * len(names), (1.0,) * len(names))


@dataclass(frozen=True)
class RegressionObjective:
    """kind : "squared" (MSE), "absolute" (MAE), "huber" with its delta, or "gaussian" (the head gives a mean and a log
    variance for each coordinate). delta belongs to the objective; it is no threshold of inference."""

    kind: str = "squared"
    delta: float = 1.0

    def __post_init__(self):
        require(self.kind in ("squared", "absolute", "huber", "gaussian"), "objective.kind", self.kind,
                "squared, absolute, huber or gaussian")
        require(self.delta > 0 and self.delta - self.delta == 0, "objective.delta", self.delta, "a finite number > 0")


class RegressionHead:
    """y = W r + b for R coordinates (2 R outputs for "gaussian": the means, then the log variances).

    Parameters
    ----------
    targets : TargetScale
    objective : RegressionObjective
    weight, bias : float32 (R or 2 R, D_r), (R or 2 R,)
    domain : for each coordinate (low, high) that a restored value is held to, or None
    """

    kind = "regression"

    def __init__(self, targets: TargetScale, objective: RegressionObjective, weight, bias, dropout: float = 0.0,
                 domain=None):
        self.targets, self.objective = targets, objective
        self.linear, self.dropout = Linear(weight, bias), Dropout(dropout)
        width = len(targets.names) * (2 if objective.kind == "gaussian" else 1)
        require(self.linear.outputs == width, "head.weight.shape", weight.shape,
                f"{width} rows for {len(targets.names)} coordinates, {objective.kind}")
        self.domain = None if domain is None else tuple(domain)
        require(self.domain is None or len(self.domain) == len(targets.names), "output.domain", domain,
                f"{len(targets.names)} pairs or None")

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def forward(self, r, *, training=False, factors=None) -> np.ndarray:
        """Predictions in scaled units, (B, R) or (B, 2 R)."""
        return self.linear.forward(self.dropout.apply(self.linear.rows(r), training, factors))

    def values(self, prediction, release: str) -> Scores:
        """Values in the targets' units, held to their domain; a softmax or threshold of probabilities refuses them."""
        mean, _ = self._parts(np.asarray(prediction, f32))
        values = self.targets.restored(mean)
        for j, bounds in enumerate(self.domain or ()):
            if bounds is not None:
                values[:, j] = np.minimum(np.maximum(values[:, j], bounds[0]), bounds[1])
        return Scores(values, ScoreType.VALUE, release, self.targets.names)

    def _parts(self, prediction):
        r = len(self.targets.names)
        if self.objective.kind == "gaussian":
            return np.ascontiguousarray(prediction[:, :r]), np.ascontiguousarray(prediction[:, r:])
        return np.ascontiguousarray(prediction), None

    def _targets(self, targets, missing):
        """(scaled targets, bytes of what counts); a NaN that is not declared missing is refused."""
        targets = np.asarray(targets, np.float64)
        require(targets.ndim == 2 and targets.shape[1] == len(self.targets.names), "targets.shape", targets.shape,
                f"(B, {len(self.targets.names)})")
        missing = np.zeros(targets.shape, bool) if missing is None else np.asarray(missing)
        require(missing.dtype == np.bool_ and missing.shape == targets.shape, "missing.shape", missing.shape,
                f"bool {targets.shape}")
        for b, j in np.argwhere(~np.isfinite(targets) & ~missing):
            raise ReadoutError(f"targets[{b}, {j}]", float(targets[b, j]), "a finite number, or declared missing")
        counted = np.ascontiguousarray(~missing, np.uint8)
        return np.ascontiguousarray(self.targets.scaled(np.where(missing, 0.0, targets))), counted

    def loss(self, prediction, targets, missing=None) -> LocalLoss:
        """targets (B, R) in their units, missing (B, R) bool: not counted. The denominator is how many count (B R)."""
        scaled, counted = self._targets(targets, missing)
        mean, log_variance = self._parts(np.asarray(prediction, f32))
        if log_variance is not None:
            return LocalLoss(*gaussian_nll_forward(mean, log_variance, scaled, counted))
        return LocalLoss(*regression_forward(mean, scaled, counted, kind=self.objective.kind,
                                             delta=self.objective.delta))

    def backward(self, prediction, targets, r, missing=None, *, scale=1.0, denominator=None, factors=None):
        """(dr, gradients of the parameters)."""
        scaled, counted = self._targets(targets, missing)
        mean, log_variance = self._parts(np.asarray(prediction, f32))
        d = np.empty(mean.shape, f32)
        if log_variance is not None:
            e = np.empty(mean.shape, f32)
            gaussian_nll_backward(mean, log_variance, scaled, counted, d, e, scale=scale, denominator=denominator)
            d = np.concatenate([d, e], axis=1)
        else:
            regression_backward(mean, scaled, counted, d, kind=self.objective.kind, delta=self.objective.delta,
                                scale=scale, denominator=denominator)
        x = self.linear.rows(r)
        dr, gradients = self.linear.backward(d, x if factors is None else x * np.asarray(factors, f32))
        return Dropout.backward(dr, factors), gradients
