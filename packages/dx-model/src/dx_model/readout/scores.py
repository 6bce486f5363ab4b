"""Scores with their types: what a number means, which numbers it may be compared with, what may be made of it."""
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ..below import exp64, softmax64, softplus64
from .errors import ReadoutError, require


class ScoreType(Enum):
    """The value is the name that records use; a manifest's shorter ones are manifest_fields.SCORE_TYPES.

    Attributes of a type: `low`, `high` (the range), `larger_wins` (what nearer or likelier looks like), `sums_to_one`
    (over the last axis), `claim` (what it says about probability).
    """

    LOGIT = "logits"
    SOFTMAX_PROBABILITY = "softmax_probabilities"
    SIGMOID_PROBABILITY = "sigmoid_probabilities"
    DOT = "dot_similarity"
    COSINE = "cosine_similarity"
    SQUARED_L2 = "squared_l2_distance"
    CALIBRATED_PROBABILITY = "calibrated_probabilities"
    VALUE = "values"
    MAXSIM = "maxsim_similarity"
    MEAN_MAXSIM = "mean_maxsim_similarity"
    LOG_SUM_EXP = "log_sum_exp_similarity"

    @property
    def low(self) -> float:
        if self.value in UNBOUNDED:
            return -np.inf
        return -1.0 if self is self.COSINE else 0.0

    @property
    def high(self) -> float:
        return np.inf if self.value in UNBOUNDED or self is self.SQUARED_L2 else 1.0

    @property
    def larger_wins(self) -> bool:
        return self is not self.SQUARED_L2

    @property
    def sums_to_one(self) -> bool | None:
        """True: always over the last axis; None: where its calibrator says so; False: never demanded."""
        return {self.SOFTMAX_PROBABILITY: True, self.CALIBRATED_PROBABILITY: None}.get(self, False)

    @property
    def claim(self) -> str:
        return {self.SOFTMAX_PROBABILITY: "conditional model probability, not necessarily calibrated",
                self.SIGMOID_PROBABILITY: "marginal model probability, not necessarily calibrated",
                self.CALIBRATED_PROBABILITY: "empirical claim on a declared population"}.get(self, "none")


UNBOUNDED = ("logits", "dot_similarity", "values", "maxsim_similarity", "mean_maxsim_similarity",
             "log_sum_exp_similarity")
COSINE_SLACK = 2.0**-20  # a dot16 of two unit rows may pass 1 by its rounding
SUM_SLACK = 2.0**-20  # of a row of binary32 probabilities


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one type from one release, immutable.

    Attributes
    ----------
    values : float32 or float64 array; the last axis is `axis`
    type : ScoreType
    release : id of the readout release that made them: scores of two releases are not compared
    axis : names of the last axis in order (labels, candidates, document ids), or None for one number an item
    exclusive : for calibrated probabilities: the axis sums to one
    normalized : for similarities: both operands were unit rows
    sources : what was done to them, oldest first ("sigmoid", a calibrator's digest, …)
    """

    values: np.ndarray
    type: ScoreType
    release: str
    axis: tuple[str, ...] | None = None
    exclusive: bool = False
    normalized: bool = False
    sources: tuple[str, ...] = field(default=())

    def __post_init__(self):
        require(isinstance(self.type, ScoreType), "scores.type", self.type, "a ScoreType: a bare number has no meaning")
        require(isinstance(self.release, str) and self.release, "scores.release", self.release, "the release's id")
        values = np.array(self.values)
        require(values.dtype in (np.float32, np.float64), "scores.values.dtype", values.dtype.name,
                "float32 or float64")
        if self.axis is not None:
            object.__setattr__(self, "axis", tuple(self.axis))
            require(values.ndim and values.shape[-1] == len(self.axis), "scores.values.shape", values.shape,
                    f"a last axis of {len(self.axis)}, as named")
        require(not np.isnan(values).any(), "scores.values", "NaN", "numbers")
        slack = COSINE_SLACK if self.type is ScoreType.COSINE else 0.0
        outside = values[(values < self.type.low - slack) | (values > self.type.high + slack)]
        require(not len(outside), "scores.values", float(outside[0]) if len(outside) else None,
                f"{self.type.value} in [{self.type.low}, {self.type.high}]")
        if self.type.sums_to_one or self.exclusive:
            require(self.axis is not None, "scores.axis", None, f"names: {self.type.value} compete over an axis")
            for row in values.reshape(-1, len(self.axis)):
                total = 0.0
                for v in row.tolist():
                    total = total + v
                require(abs(total - 1.0) <= SUM_SLACK, "scores.values", total, f"{self.type.value} that sum to 1")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    def __len__(self):
        return len(self.values)

    def expect(self, wanted: ScoreType) -> "Scores":
        """These scores, or a ReadoutError when they are of another type."""
        require(self.type is wanted, "scores.type", self.type.value, wanted.value)
        return self

    def same_scale(self, other: "Scores") -> None:
        """ReadoutError unless numbers of both may be compared: one type, one release, one axis for logits."""
        self.expect(other.type)
        require(self.release == other.release, "scores.release", other.release, repr(self.release))
        require(self.sources == other.sources, "scores.sources", other.sources, repr(self.sources))
        require(self.type is not ScoreType.LOGIT or self.axis == other.axis, "scores.axis", other.axis,
                f"{self.axis}: logits say something within their own head alone")

    def with_values(self, values, type: ScoreType, source: str, **changes) -> "Scores":
        return replace(self, values=values, type=type, sources=(*self.sources, source), **changes)


def softmax(scores: Scores) -> Scores:
    """Softmax over the axis, of logits alone: a probability or a similarity is not squashed once more.

    Binary64: the largest is subtracted, exp64, ascending sum, division (dx_kernels.softmax64).
    """
    logits = scores.expect(ScoreType.LOGIT)
    require(logits.axis is not None, "scores.axis", None, "the names that compete")
    rows = np.ascontiguousarray(logits.values.reshape(-1, len(logits.axis)), np.float64)
    p = np.empty(rows.shape)
    softmax64(rows, p, np.empty(len(rows)))
    return logits.with_values(p.reshape(logits.values.shape), ScoreType.SOFTMAX_PROBABILITY, "softmax")


def sigmoid64(values) -> np.ndarray:
    """exp64(-softplus64(-x)), binary64: right to a few ulp at both ends."""
    x = np.ascontiguousarray(values, np.float64)
    return exp64(-softplus64(-x))


def sigmoid(scores: Scores) -> Scores:
    """Sigmoid of every logit by itself; refused for anything that is not a logit."""
    logits = scores.expect(ScoreType.LOGIT)
    return logits.with_values(sigmoid64(logits.values), ScoreType.SIGMOID_PROBABILITY, "sigmoid")


def identity(scores: Scores) -> Scores:
    """The scores as they are, with the choice on record."""
    return replace(scores, sources=(*scores.sources, "identity"))


ACTIVATIONS = {"identity": identity, "sigmoid": sigmoid, "softmax": softmax}


def activate(scores: Scores, activation: str) -> Scores:
    """Applies the activation that the saved head names; None or an unknown name is refused, never guessed."""
    require(isinstance(activation, str) and activation in ACTIVATIONS, "head.activation", activation,
            f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[activation](scores)


def ranking(scores: Scores) -> np.ndarray:
    """(…, n) int64 positions of the last axis, the best first; of equal scores the lower position comes first.

    The order of k best is the beginning of the order of k + 1 best. -0 equals 0.
    """
    keys = -scores.values if scores.type.larger_wins else scores.values
    return np.argsort(keys, axis=-1, kind="stable")


def top_k(scores: Scores, k: int) -> np.ndarray:
    """(…, k) int64 positions of the k best, best first (see `ranking`)."""
    require(isinstance(k, int) and 0 <= k <= scores.values.shape[-1], "k", k, f"0..{scores.values.shape[-1]}")
    return ranking(scores)[..., :k]


def fuse(parts, weights) -> Scores:
    """weight_0 * scores_0 + weight_1 * scores_1 + …, binary64, in order; similarities or logits of one axis.

    A monotone transform of one part keeps that part's ranking and can change this one's: so the parts' types and
    sources are part of the result's record, and probabilities are not fused with anything else.
    """
    parts, weights = list(parts), [float(w) for w in weights]
    require(len(parts) == len(weights) and parts, "fuse.weights", len(weights), f"one for each of {len(parts)} scores")
    first = parts[0]
    total = np.zeros(first.values.shape)
    for i, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        require(part.type is first.type, f"fuse.scores[{i}].type", part.type.value, first.type.value)
        require(part.axis == first.axis, f"fuse.scores[{i}].axis", part.axis, repr(first.axis))
        require(weight - weight == 0, f"fuse.weights[{i}]", weight, "a finite number")
        total = total + weight * part.values.astype(np.float64)
    if first.type not in (ScoreType.LOGIT, ScoreType.DOT, ScoreType.COSINE):
        raise ReadoutError("fuse.scores.type", first.type.value, "logits or similarities")
    kind = ScoreType.LOGIT if first.type is ScoreType.LOGIT else ScoreType.DOT
    record = tuple(f"{w!r} * {p.release} {'/'.join(p.sources) or p.type.value}" for p, w in zip(parts, weights))
    return Scores(total, kind, "+".join(p.release for p in parts), first.axis, sources=record)
