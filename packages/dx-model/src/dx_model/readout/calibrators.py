"""Calibrators as parts of a release: applied here, fitted elsewhere on a split disjoint from training and test.

A calibrator turns one type of score of one release into probabilities, which are an empirical claim on the population
that it was fitted on. Its identity holds everything that the claim rests on; another release, label order or dtype is
another predictor, and the calibrator refuses it.
"""
import hashlib
from dataclasses import dataclass

import numpy as np

from ..below import softmax64
from ..canonical_json import canonical
from .errors import ReadoutError, require
from .scores import Scores, ScoreType, sigmoid64


@dataclass(frozen=True)
class CalibratorIdentity:
    """What a calibrator's claim rests on.

    parent_release : checkpoint and readout that made the scores
    data : revision (digest) of the calibration split
    inclusion, population : the rule by which examples came in; the slice that the claim is for
    labels : the axis in order, None for one score an item
    score_type, score_dtype : what it was fitted on
    objective : what was minimised
    software : version that made the scores
    """

    parent_release: str
    data: str
    inclusion: str
    population: str
    labels: tuple[str, ...] | None
    score_type: str
    score_dtype: str
    objective: str
    software: str

    def __post_init__(self):
        for name, value in vars(self).items():
            if name == "labels":
                object.__setattr__(self, name, None if value is None else tuple(value))
            else:
                require(isinstance(value, str) and value, f"calibrator.{name}", value, "a text that is not empty")
        require(self.score_type in [t.value for t in ScoreType], "calibrator.score_type", self.score_type,
                "a score type")
        require(self.score_dtype in ("float32", "float64"), "calibrator.score_dtype", self.score_dtype,
                "float32 or float64")


@dataclass(frozen=True)
class Calibrator:
    """Base: admission, identity and JSON. Subclasses have parameters and `probabilities`."""

    identity: CalibratorIdentity

    family = ""
    exclusive = False  # its probabilities sum to one over the axis

    def __call__(self, scores: Scores) -> Scores:
        """Calibrated probabilities, binary64; ReadoutError when the scores are not what it was fitted on."""
        own = self.identity
        require(scores.release == own.parent_release, "scores.release", scores.release, repr(own.parent_release))
        scores.expect(ScoreType(own.score_type))
        require(scores.axis == own.labels, "scores.axis", scores.axis, str(own.labels))
        require(scores.values.dtype.name == own.score_dtype, "scores.values.dtype", scores.values.dtype.name,
                f"{own.score_dtype}, as fitted")
        p = self.probabilities(np.ascontiguousarray(scores.values, np.float64))
        return scores.with_values(p, ScoreType.CALIBRATED_PROBABILITY, self.digest(), exclusive=self.exclusive)

    def parameters(self) -> dict:
        return {k: v for k, v in vars(self).items() if k != "identity"}

    def to_json(self) -> dict:
        return {"family": self.family, "identity": {**vars(self.identity), "labels": _listed(self.identity.labels)},
                "parameters": {k: _listed(v) for k, v in self.parameters().items()}}

    def digest(self) -> str:
        """SHA-256 of the canonical JSON: family, parameters and identity."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()

    def probabilities(self, values):
        raise NotImplementedError


def _listed(value):
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def _finite(name, *values):
    for v in values:
        require(isinstance(v, float) and v - v == 0, f"calibrator.{name}", v, "finite floats")


def _rows(z, classes):
    return np.ascontiguousarray(z.reshape(-1, classes))


def _softmax(rows, shape):
    p = np.empty(rows.shape)
    softmax64(rows, p, np.empty(len(rows)))
    return p.reshape(shape)


class _OfLogits(Calibrator):
    exclusive = True

    def _check(self):
        require(self.identity.score_type == ScoreType.LOGIT.value and self.identity.labels is not None,
                "calibrator.score_type", self.identity.score_type, "logits over named classes")


@dataclass(frozen=True)
class Temperature(_OfLogits):
    """softmax(z / T), T > 0: the order of the classes stays, the confidence changes."""

    temperature: float

    family = "temperature"

    def __post_init__(self):
        self._check()
        _finite("temperature", self.temperature)
        require(self.temperature > 0, "calibrator.temperature", self.temperature, "a number > 0")

    def probabilities(self, values):
        return _softmax(_rows(values, values.shape[-1]) / self.temperature, values.shape)


@dataclass(frozen=True)
class VectorScaling(_OfLogits):
    """softmax(scale * z + shift), one scale and one shift for each class; the order of classes can change."""

    scale: tuple[float, ...]
    shift: tuple[float, ...]

    family = "vector_scaling"

    def __post_init__(self):
        self._check()
        for name in ("scale", "shift"):
            require(len(getattr(self, name)) == len(self.identity.labels), f"calibrator.{name}",
                    len(getattr(self, name)), f"{len(self.identity.labels)} numbers")
            _finite(name, *getattr(self, name))

    def probabilities(self, values):
        return _softmax(_rows(values * np.array(self.scale) + np.array(self.shift), values.shape[-1]), values.shape)


@dataclass(frozen=True)
class MatrixScaling(_OfLogits):
    """softmax(W z + shift); row c of W makes class c: sums over classes in order, from +0, then the shift."""

    matrix: tuple[tuple[float, ...], ...]
    shift: tuple[float, ...]

    family = "matrix_scaling"

    def __post_init__(self):
        self._check()
        n = len(self.identity.labels)
        require(len(self.matrix) == n and all(len(row) == n for row in self.matrix), "calibrator.matrix",
                len(self.matrix), f"({n}, {n}) numbers")
        require(len(self.shift) == n, "calibrator.shift", len(self.shift), f"{n} numbers")
        for row in (*self.matrix, self.shift):
            _finite("matrix", *row)

    def probabilities(self, values):
        z = _rows(values, values.shape[-1])
        out = np.zeros(z.shape)
        for j in range(z.shape[1]):
            out = out + z[:, j:j + 1] * np.array([row[j] for row in self.matrix])
        return _softmax(out + np.array(self.shift), values.shape)


@dataclass(frozen=True)
class Platt(Calibrator):
    """sigmoid(slope * s + shift) of one score an item, or of each label by itself.

    slope > 0 (or < 0 for a distance, where smaller is better): a slope of the wrong sign means that the orientation was
    misdeclared or that the score does not tell what is expected, and is refused.
    """

    slope: float
    shift: float

    family = "platt"

    def __post_init__(self):
        _finite("slope", self.slope, self.shift)
        kind = ScoreType(self.identity.score_type)
        right = self.slope > 0 if kind.larger_wins else self.slope < 0
        require(right, "calibrator.slope", self.slope,
                f"a slope {'> 0' if kind.larger_wins else '< 0'}: otherwise the order of {kind.value} is reversed")

    def probabilities(self, values):
        return sigmoid64(self.slope * values + self.shift)


@dataclass(frozen=True)
class Isotonic(Calibrator):
    """A monotone function through points: linear between them, constant outside, so within [0, 1] for every score.

    scores : strictly ascending finite numbers · levels : probabilities, never falling (never rising for a distance)
    Between points, y0 + ((x - x0) / (x1 - x0)) * (y1 - y0) with the result held between y0 and y1.
    """

    scores: tuple[float, ...]
    levels: tuple[float, ...]

    family = "isotonic"

    def __post_init__(self):
        require(len(self.scores) == len(self.levels) and self.scores, "calibrator.levels", len(self.levels),
                f"{len(self.scores)} levels, at least one")
        _finite("scores", *self.scores)
        rising = ScoreType(self.identity.score_type).larger_wins
        for i, level in enumerate(self.levels):
            require(0 <= level <= 1, f"calibrator.levels[{i}]", level, "a probability")
            if i:
                require(self.scores[i - 1] < self.scores[i], f"calibrator.scores[{i}]", self.scores[i],
                        "ascending scores")
                require(self.levels[i - 1] <= level if rising else self.levels[i - 1] >= level,
                        f"calibrator.levels[{i}]", level, "levels that keep the declared orientation")

    def probabilities(self, values):
        x, y, v = np.array(self.scores), np.array(self.levels), values.reshape(-1)
        if len(x) == 1:
            return np.full(values.shape, y[0])
        at = np.minimum(np.maximum(np.searchsorted(x, v, side="right") - 1, 0), len(x) - 2)
        x0, x1, y0, y1 = x[at], x[at + 1], y[at], y[at + 1]
        held = np.minimum(np.maximum(v, x0), x1)
        half0, half1 = 0.5 * x0, 0.5 * x1  # halves: the difference of two finite numbers may overflow
        p = y0 + ((0.5 * held - half0) / np.maximum(half1 - half0, 2.0**-1074)) * (y1 - y0)
        p = np.minimum(np.maximum(p, np.minimum(y0, y1)), np.maximum(y0, y1))
        p = np.where(held >= x1, y1, np.where(held <= x0, y0, p))
        return p.reshape(values.shape)


FAMILIES = {c.family: c for c in (Temperature, VectorScaling, MatrixScaling, Platt, Isotonic)}


def calibrator_from_json(content: dict) -> Calibrator:
    """The calibrator of `to_json`'s content, checked anew."""
    if not isinstance(content, dict) or sorted(content) != ["family", "identity", "parameters"]:
        raise ReadoutError("calibrator", content, "family, identity and parameters")
    require(content["family"] in FAMILIES, "calibrator.family", content["family"], f"one of {', '.join(FAMILIES)}")

    def fixed(value):
        return tuple(fixed(v) for v in value) if isinstance(value, list) else value
    try:
        identity = CalibratorIdentity(**{k: fixed(v) for k, v in content["identity"].items()})
        numbers = {k: _floats(fixed(v)) for k, v in content["parameters"].items()}
        return FAMILIES[content["family"]](identity, **numbers)
    except TypeError as error:
        raise ReadoutError("calibrator", sorted(content["parameters"]), str(error)) from error


def _floats(value):
    if isinstance(value, tuple):
        return tuple(_floats(v) for v in value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
