"""From windows' scores and vectors to the source's: which object is aggregated is a contract, not a detail."""
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..below import ieee_mode, pool_sum_forward
from ..readout.errors import require
from ..readout.geometry import Normalization
from ..readout.interaction import record_digest
from ..readout.scores import Scores, ScoreType

POINTS = ("mean_logits", "mean_probabilities", "max_logits")
STAGES = ("none", "normalize_each", "normalize_after", "normalize_each_and_after")
PROBABILITIES = (ScoreType.SOFTMAX_PROBABILITY, ScoreType.SIGMOID_PROBABILITY)


def aggregation_release(release: str, point: str) -> str:
    """The identity of scores of whole sources: another predictor than the windows', so a calibrator or threshold that
    was fitted on windows refuses it, and the reverse."""
    require(point in POINTS, "windows.aggregation", point, ", ".join(POINTS))
    return record_digest({"release": release, "aggregation": point})


@ieee_mode()
def aggregate_scores(parts: Sequence[Scores], point: str) -> Scores:
    """Scores of a source from those of its windows, in order.

    point : "mean_logits" and "max_logits" take logits, "mean_probabilities" softmax or sigmoid probabilities, before
        any calibration: calibration is fitted on what comes out of here
    Means: binary64, ascending sum, one division. Maximum: label by label, the first of equals.
    """
    parts = list(parts)
    require(parts, "windows.scores", 0, "at least one window")
    release = aggregation_release(parts[0].release, point)
    for i, part in enumerate(parts):
        parts[0].same_scale(part)
        require(part.axis == parts[0].axis, f"windows.scores[{i}].axis", part.axis, str(parts[0].axis))
        if point == "mean_probabilities":
            require(part.type in PROBABILITIES, f"windows.scores[{i}].type", part.type.value,
                    "softmax or sigmoid probabilities: what is calibrated is not averaged, the average is calibrated")
        else:
            part.expect(ScoreType.LOGIT)
    total = parts[0].values.astype(np.float64)
    for part in parts[1:]:
        value = part.values.astype(np.float64)
        total = np.where(value > total, value, total) if point == "max_logits" else total + value
    if point != "max_logits":
        total = total / np.float64(len(parts))
    return replace(parts[0], values=total, release=release, sources=(*parts[0].sources, f"windows:{point}"))


@dataclass(frozen=True)
class VectorAggregation:
    """How a source's vector comes from its windows' vectors; part of the vector release.

    stage : where vectors get length 1: "normalize_each" window before the mean (the mean is then shorter than 1),
        "normalize_after" the mean, both, or "none". It must be the stage that was trained: the results differ.
    weighting : "windows", each the same, or "owned_rows", each as many times as it owns tokens
    normalization : with its epsilon
    """

    stage: str
    weighting: str = "owned_rows"
    normalization: Normalization = Normalization()

    def __post_init__(self):
        require(self.stage in STAGES, "windows.stage", self.stage, ", ".join(STAGES))
        require(self.weighting in ("windows", "owned_rows"), "windows.weighting", self.weighting,
                "windows or owned_rows")

    def digest(self) -> str:
        return record_digest({"stage": self.stage, "weighting": self.weighting,
                              "epsilon": float(self.normalization.epsilon)})

    def __call__(self, records, vectors) -> np.ndarray:
        """(width,) float32 from the windows in order and their vectors (windows, width): dot16 of (weight, vector),
        divided by the weights' sum."""
        from .windows import admit_windows

        vectors = np.ascontiguousarray(vectors, np.float32)
        require(vectors.ndim == 2 and len(vectors) == len(records), "vectors.shape", vectors.shape,
                f"({len(records)}, width)")
        require([r.index for r in records] == [r.index for r in admit_windows(records)], "windows", "order",
                "windows in order, as their vectors")
        require(self.weighting == "windows" or records[0].policy.owner != "multiplicity", "windows.weighting",
                self.weighting, "windows: nobody owns tokens under multiplicity")
        if self.stage.startswith("normalize_each"):
            vectors, _ = self.normalization.forward(vectors)
        weights = np.array([np.count_nonzero(r.owned) if self.weighting == "owned_rows" else 1 for r in records],
                           np.float32)
        total = 0
        for w in weights.tolist():  # whole numbers
            total = total + int(w)
        y = np.empty((1, vectors.shape[1]), np.float32)
        pool_sum_forward(vectors, None, np.array([0, len(vectors)]), y, weights=weights,
                         divisors=np.array([total], np.float32))
        return self.normalization.forward(y)[0][0] if self.stage.endswith("after") else y[0]
