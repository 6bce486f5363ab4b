"""From typed scores to decisions: thresholds with their costs, abstention, capacity, and the admission of both."""
import math
from dataclasses import dataclass, field

import numpy as np

from ..below import log64
from .calibrators import Calibrator
from .errors import ReadoutError, require
from .scores import Scores, ScoreType, ranking

PROBABILITIES = (ScoreType.SOFTMAX_PROBABILITY, ScoreType.SIGMOID_PROBABILITY, ScoreType.CALIBRATED_PROBABILITY)


@dataclass(frozen=True)
class Threshold:
    """A cut of scores of one type: accepted when at least as good as `value` (at most it, for a distance).

    type : ScoreType that the value is on · revision : where the value comes from, required
    """

    value: float
    type: ScoreType
    revision: str

    def __post_init__(self):
        require(isinstance(self.type, ScoreType), "threshold.type", self.type, "a ScoreType")
        require(isinstance(self.value, float) and self.type.low <= self.value <= self.type.high, "threshold.value",
                self.value, f"a float in [{self.type.low}, {self.type.high}]")
        require(bool(self.revision), "threshold.revision", self.revision, "where the threshold comes from")

    def accepts(self, scores: Scores) -> np.ndarray:
        """bool of the scores' shape; a threshold of another type is refused."""
        require(scores.type is self.type, "threshold.type", self.type.value, f"{scores.type.value}, the scores' type")
        values = scores.values.astype(np.float64)
        return values >= self.value if self.type.larger_wins else values <= self.value

    def as_squared_l2(self) -> "Threshold":
        """The same cut on squared L2 distances of unit rows: cosine >= c is distance <= 2 - 2 c."""
        require(self.type is ScoreType.COSINE, "threshold.type", self.type.value, "cosine_similarity")
        return Threshold(2.0 - 2.0 * self.value, ScoreType.SQUARED_L2, f"{self.revision} as distance")


def cost_threshold(false_positive: float, false_negative: float, revision: str) -> Threshold:
    """Positive when p >= C_FP / (C_FP + C_FN), for calibrated probabilities; 0.5 follows from equal costs alone."""
    for name, cost in (("false_positive", false_positive), ("false_negative", false_negative)):
        require(cost >= 0 and cost - cost == 0, f"cost.{name}", cost, "a finite number >= 0")
    require(false_positive + false_negative > 0, "cost", (false_positive, false_negative), "one cost above 0")
    return Threshold(false_positive / (false_positive + false_negative), ScoreType.CALIBRATED_PROBABILITY, revision)


def expected_costs(p: float, false_positive: float, false_negative: float) -> tuple[float, float]:
    """(cost of deciding positive, cost of deciding negative) at probability p."""
    return (1.0 - p) * false_positive, p * false_negative


@dataclass(frozen=True)
class LabelThresholds:
    """One threshold a label, in the axis's order, all on one type: zero, one or many labels an item."""

    labels: tuple[str, ...]
    thresholds: tuple[Threshold, ...]

    def __post_init__(self):
        require(len(self.labels) == len(self.thresholds) > 0, "thresholds", len(self.thresholds),
                f"{len(self.labels)} thresholds, one for each label")
        for j, t in enumerate(self.thresholds):
            require(t.type is self.thresholds[0].type, f"thresholds[{j}].type", t.type.value,
                    self.thresholds[0].type.value)

    def accepts(self, scores: Scores) -> np.ndarray:
        require(scores.axis == self.labels, "scores.axis", scores.axis, str(self.labels))
        require(scores.type is self.thresholds[0].type, "threshold.type", self.thresholds[0].type.value,
                f"{scores.type.value}, the scores' type")
        values, cuts = scores.values.astype(np.float64), np.array([t.value for t in self.thresholds])
        return values >= cuts if scores.type.larger_wins else values <= cuts


def _two_best(scores: Scores) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(best position, best value, second value) of rows (B, C), C >= 2."""
    require(scores.values.ndim == 2 and scores.values.shape[1] >= 2, "scores.values.shape", scores.values.shape,
            "(B, C) with two or more classes")
    order, rows = ranking(scores), np.arange(len(scores.values))
    values = scores.values.astype(np.float64)
    return order[:, 0], values[rows, order[:, 0]], values[rows, order[:, 1]]


def entropy(scores: Scores) -> np.ndarray:
    """(B,) natural entropy of rows of exclusive probabilities, -sum of p log64(p), exactly summed; 0 log 0 = 0."""
    require(scores.type is ScoreType.SOFTMAX_PROBABILITY or scores.exclusive, "scores.type", scores.type.value,
            "probabilities that sum to one")
    p = scores.values.astype(np.float64)
    terms = p * log64(np.where(p > 0, p, 1.0))
    return np.array([-math.fsum(row) for row in terms.tolist()])


@dataclass(frozen=True)
class Abstention:
    """When to give no answer.

    rule : "maximum" best < value · "margin" best - second < value · "entropy" entropy > value · "gap" best - second of
        retrieval scores (second - best of distances) < value · "reject_class" the best class is `label`
    value, label, revision : the rule's parameter and where it was chosen
    """

    rule: str
    revision: str
    value: float = 0.0
    label: str | None = None

    def __post_init__(self):
        require(self.rule in ("maximum", "margin", "entropy", "gap", "reject_class"), "abstention.rule", self.rule,
                "maximum, margin, entropy, gap or reject_class")
        require(bool(self.revision), "abstention.revision", self.revision, "where it was chosen")
        require(self.value - self.value == 0, "abstention.value", self.value, "a finite number")
        require((self.label is not None) == (self.rule == "reject_class"), "abstention.label", self.label,
                "a label exactly for reject_class")

    def abstains(self, scores: Scores) -> np.ndarray:
        """(B,) bool for scores (B, C)."""
        if self.rule == "reject_class":
            require(scores.axis is not None and self.label in scores.axis, "abstention.label", self.label,
                    f"one of {scores.axis}")
            return ranking(scores)[:, 0] == scores.axis.index(self.label)
        if self.rule == "gap":
            require(scores.type in (ScoreType.DOT, ScoreType.COSINE, ScoreType.SQUARED_L2), "scores.type",
                    scores.type.value, "similarities or distances")
            _, best, second = _two_best(scores)
            return (best - second if scores.type.larger_wins else second - best) < self.value
        require(scores.type in PROBABILITIES, "scores.type", scores.type.value, "probabilities")
        if self.rule == "entropy":
            return entropy(scores) > self.value
        _, best, second = _two_best(scores)
        return (best if self.rule == "maximum" else best - second) < self.value


@dataclass(frozen=True)
class ConformalSets:
    """Sets {c: 1 - p_c <= quantile}: on data like the calibration split they hold the right class with the stated
    probability, on average over splits and examples; nothing is promised for one slice.

    quantile : fitted (dx_labels) · coverage : decimal text that it was fitted for · revision
    """

    quantile: float
    coverage: str
    revision: str

    def __post_init__(self):
        require(0 <= self.quantile <= 1, "conformal.quantile", self.quantile, "a number in [0, 1]")
        require(bool(self.revision), "conformal.revision", self.revision, "the calibration split")

    def sets(self, scores: Scores) -> np.ndarray:
        """(B, C) bool; a set can be empty, or hold several classes."""
        require(scores.type is ScoreType.SOFTMAX_PROBABILITY or scores.exclusive, "scores.type", scores.type.value,
                "probabilities that sum to one")
        return 1.0 - scores.values.astype(np.float64) <= self.quantile


@dataclass(frozen=True)
class Capacity:
    """At most `most` items are accepted, the best ones; `ids` order the equal ones (see `keep`)."""

    most: int
    revision: str

    def __post_init__(self):
        require(isinstance(self.most, int) and self.most >= 0, "capacity.most", self.most, "0 or more")
        require(bool(self.revision), "capacity.revision", self.revision, "where it was set")

    def keep(self, accepted, values, ids, larger_wins=True) -> np.ndarray:
        """bool: of the accepted, the `most` best by value; equal values by id (UTF-8 bytes), so batch order is
        neutral."""
        wanted = sorted((i for i in range(len(ids)) if accepted[i]),
                        key=lambda i: (-float(values[i]) if larger_wins else float(values[i]), str(ids[i]).encode()))
        kept = np.zeros(len(ids), bool)
        kept[wanted[:self.most]] = True
        return kept


@dataclass(frozen=True)
class DecisionContract:
    """Everything that a decision rests on. A field that is missing refuses the decision.

    expected_score_type : of the readout's output
    threshold_revision : required, also where there is no threshold ("none: …")
    tie_rule : "lowest_index", the one there is; stated, so that another one is another contract
    threshold : Threshold or LabelThresholds of the type that comes out of the calibrator, or None
    calibrator, abstention, capacity : or None
    metric : "cosine" demands unit rows on both sides
    """

    expected_score_type: ScoreType
    threshold_revision: str
    tie_rule: str
    threshold: Threshold | LabelThresholds | None = None
    calibrator: Calibrator | None = None
    abstention: Abstention | None = None
    capacity: Capacity | None = None
    metric: str | None = None


@dataclass(frozen=True, eq=False)
class Decisions:
    """What came of a decision.

    scores : what was decided on · accepted : (B,) bool, (B, C) with thresholds of labels · choice : (B,) best position,
    -1 where abstained, None for one score an item and for labels · abstained : (B,) bool
    """

    scores: Scores
    accepted: np.ndarray
    choice: np.ndarray | None
    abstained: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))


def decide(output: Scores, contract: DecisionContract, ids=None) -> Decisions:
    """Admission, calibration, threshold, abstention, capacity, in this order.

    Raises
    ------
    ReadoutError
        Scores of another type than the contract expects; cosine without unit rows; a calibrator of another release; no
        threshold revision or tie rule; capacity without ids.
    """
    output.expect(contract.expected_score_type)
    if contract.metric == "cosine":
        require(output.type is ScoreType.COSINE and output.normalized, "scores.normalized", output.normalized,
                "cosine of queries and documents of length 1")
    if contract.calibrator is not None:
        require(contract.calibrator.identity.parent_release == output.release, "calibrator.parent_release",
                contract.calibrator.identity.parent_release, repr(output.release))
        scores = contract.calibrator(output)
    else:
        scores = output
    require(bool(contract.threshold_revision), "contract.threshold_revision", contract.threshold_revision,
            "where the threshold comes from")
    require(contract.tie_rule == "lowest_index", "contract.tie_rule", contract.tie_rule, "lowest_index")
    return _apply(scores, contract, ids)


def _apply(scores, contract, ids):
    single = scores.values.ndim == 1
    rows = len(scores.values)
    many = isinstance(contract.threshold, LabelThresholds)
    accepted = np.ones(scores.values.shape if single or many else rows, bool)
    choice = None if single or many else ranking(scores)[:, 0]
    if contract.threshold is not None:
        cut = contract.threshold.accepts(scores)
        accepted = cut if single or many else cut[np.arange(rows), choice]
    abstained = np.zeros(rows, bool)
    if contract.abstention is not None:
        abstained = contract.abstention.abstains(scores)
        accepted = accepted & (~abstained[:, None] if accepted.ndim == 2 else ~abstained)
    if contract.capacity is not None:
        require(ids is not None and len(ids) == rows, "ids", None if ids is None else len(ids),
                f"{rows} stable ids: a capacity chooses among items")
        require(accepted.ndim == 1, "contract.capacity", "labels", "one decision an item")
        best = scores.values if single else scores.values[np.arange(rows), choice]
        accepted = contract.capacity.keep(accepted, best, ids, scores.type.larger_wins)
    if choice is not None:
        choice = np.where(accepted, choice, -1)
        abstained = ~accepted
    return Decisions(scores, accepted, choice, abstained)


@dataclass(frozen=True)
class CoverageRisk:
    """accepted of all items, wrong of the accepted; coverage and conditional risk (None where nothing is accepted)."""

    accepted: int
    count: int
    wrong: int

    @property
    def coverage(self) -> float | None:
        return self.accepted / self.count if self.count else None

    @property
    def risk(self) -> float | None:
        return self.wrong / self.accepted if self.accepted else None


def coverage_and_risk(choice, targets) -> CoverageRisk:
    """Of choices (B,), -1 where abstained, against targets (B,): both figures, never accuracy of the accepted alone."""
    choice, targets = np.asarray(choice), np.asarray(targets)
    require(choice.shape == targets.shape and choice.ndim == 1, "targets.shape", targets.shape, str(choice.shape))
    taken = choice >= 0
    return CoverageRisk(int(np.count_nonzero(taken)), len(choice), int(np.count_nonzero(taken & (choice != targets))))


SEMANTIC_FIELDS = ("backbone", "tokenizer", "layer", "pool", "projection", "normalization", "score_metric",
                   "output_dtype")


def invalidated(changed, *, equivalence_test: str | None = None, stores_documents: bool = True) -> tuple[str, ...]:
    """What a change of these fields makes invalid: calibration, thresholds, and stored document vectors.

    equivalence_test : digest of a frozen test that proved equal outputs: then nothing. score_metric alone leaves the
    vectors.
    """
    changed = list(changed)
    for name in changed:
        if name not in SEMANTIC_FIELDS:
            raise ReadoutError("changed", name, f"one of {', '.join(SEMANTIC_FIELDS)}")
    if not changed or equivalence_test:
        return ()
    vectors = stores_documents and any(name != "score_metric" for name in changed)
    return ("calibration", "thresholds", "document_vectors") if vectors else ("calibration", "thresholds")
