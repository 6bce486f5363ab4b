"""The data of a calibrator: a split of its own, disjoint from what trained and what tests the predictor."""
import hashlib
from dataclasses import dataclass

import numpy as np

from ..below import CalibratorIdentity, ReadoutError, Scores, canonical_bytes


@dataclass(frozen=True)
class CalibrationSplit:
    """ids of its examples, in order · inclusion, population : texts of the calibrator's identity.

    Make one with `calibration_split`, which checks that it is disjoint.
    """

    ids: tuple[str, ...]
    inclusion: str
    population: str

    @property
    def revision(self) -> str:
        """SHA-256 of the sorted ids (as UTF-8) and the two texts."""
        content = [sorted(self.ids, key=lambda i: i.encode()), self.inclusion, self.population]
        return hashlib.sha256(canonical_bytes(content)).hexdigest()


def calibration_split(ids, train, test, *, inclusion: str, population: str) -> CalibrationSplit:
    """CalibrationSplit, refused when an id stands twice or is also in training or test (the first such id is named)."""
    ids = tuple(ids)
    for name, others in (("training", frozenset(train)), ("test", frozenset(test))):
        for i in ids:
            if i in others:
                raise ReadoutError("calibration.ids", i, f"examples that are not in {name}")
    if len(frozenset(ids)) != len(ids):
        twice = next(i for k, i in enumerate(ids) if i in ids[:k])
        raise ReadoutError("calibration.ids", twice, "each example once")
    if not ids:
        raise ReadoutError("calibration.ids", [], "at least one example")
    return CalibrationSplit(ids, inclusion, population)


def identity_of(scores: Scores, split: CalibrationSplit, objective: str, software: str) -> CalibratorIdentity:
    """Identity of a calibrator fitted on these scores; as many items as the split has examples."""
    if len(scores.values) != len(split.ids):
        raise ReadoutError("scores.values.shape", scores.values.shape, f"{len(split.ids)} items, one an example")
    return CalibratorIdentity(scores.release, split.revision, split.inclusion, split.population, scores.axis,
                              scores.type.value, scores.values.dtype.name, objective, software)


def class_targets(labels, scores: Scores):
    """int64 (N,): classes of the scores' axis, all of them given."""
    y = np.asarray(labels)
    if y.dtype.kind not in "iu" or y.shape != (len(scores.values),):
        raise ReadoutError("labels", y.dtype.name, f"{len(scores.values)} whole numbers")
    for n in np.flatnonzero((y < 0) | (y >= len(scores.axis or ()))):
        raise ReadoutError(f"labels[{n}]", int(y[n]), f"a class in 0..{len(scores.axis or ()) - 1}")
    return y.astype(np.int64)


def binary_targets(labels, scores: Scores):
    """(scores (N,) float64, bool (N,)): one score an item, finite, and labels 0 or 1 of both kinds."""
    y, s = np.asarray(labels), scores.values
    if s.ndim != 1:
        raise ReadoutError("scores.values.shape", s.shape, "one score an item")
    if y.shape != s.shape or y.dtype.kind not in "iub" or not np.isin(y, (0, 1)).all():
        raise ReadoutError("labels", y.shape, f"{len(s)} labels, 0 or 1")
    if not np.isfinite(s).all():
        raise ReadoutError("scores.values", "infinity", "finite scores")
    return s.astype(np.float64), y.astype(bool)
