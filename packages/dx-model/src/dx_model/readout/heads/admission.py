"""Admission of a task head: what it was declared to give, what it got, and what it gave, before anything is decided."""
from dataclasses import dataclass, field

import numpy as np

from ..errors import require
from .labels import LabelMap

KINDS = ("classification", "regression", "multilabel", "multiple_choice", "token_classification", "extractive_qa")


@dataclass(frozen=True)
class HeadOutput:
    """The output part of a head's record.

    kind : one of KINDS · dimension : size of the last axis (C, R or K; 2 for extractive_qa) · labels : names in order,
    or None for multiple_choice and extractive_qa · thresholds : for multilabel · max_answer_length : for extractive_qa
    """

    kind: str
    dimension: int
    labels: tuple[str, ...] | None = None
    thresholds: tuple[float, ...] | None = None
    max_answer_length: int = 0

    def logical_shape(self, batch: "HeadBatch") -> tuple[int, ...]:
        """The shape that the output must have for this batch."""
        b, s = batch.input_ids.shape[0], batch.input_ids.shape[-1]
        return {"token_classification": (b, s, self.dimension), "extractive_qa": (b, s, 2)}.get(
            self.kind, (b, self.dimension))


@dataclass(frozen=True, eq=False)
class HeadBatch:
    """What went in: input_ids (B, S), or (B, K, S) for multiple choice; masks (B, S) bool; offsets (B, S, 2), (-1, -1)
    where a row has none, or None; emitted (B, S) bool: rows whose predictions go back to the source."""

    input_ids: np.ndarray
    label_mask: np.ndarray | None = None
    context_mask: np.ndarray | None = None
    offsets: np.ndarray | None = None
    emitted: np.ndarray | None = field(default=None)


def _mask(name, mask, shape):
    require(mask is not None and np.asarray(mask).dtype == np.bool_ and np.shape(mask) == shape, f"batch.{name}",
            None if mask is None else np.shape(mask), f"a bool mask {shape}")


def _offsets(batch, rows, name):
    require(batch.offsets is not None and np.shape(batch.offsets) == (*batch.input_ids.shape, 2), "batch.offsets",
            None if batch.offsets is None else np.shape(batch.offsets), f"offsets of all rows: {name} needs them")
    absent = np.argwhere(rows & (np.asarray(batch.offsets)[..., 0] < 0))
    require(not len(absent), "batch.offsets", [tuple(p) for p in absent[:3].tolist()],
            f"source characters: {name} of these rows has none")


def validate_task_head(output: HeadOutput, out_features: int, batch: HeadBatch, values) -> None:
    """Fails closed, naming the field, unless record, head, batch and output agree.

    out_features : rows of the head's weight (1 for multiple_choice, 2 for extractive_qa, 2 R for Gaussian regression)
    """
    require(output.kind in KINDS, "output.kind", output.kind, f"one of {', '.join(KINDS)}")
    if output.kind == "multiple_choice":
        require(np.ndim(batch.input_ids) == 3 and batch.input_ids.shape[1] == output.dimension, "batch.input_ids.shape",
                np.shape(batch.input_ids), f"(B, {output.dimension}, S): every candidate rendered as its own input")
    shape = output.logical_shape(batch)
    require(np.shape(values) == shape, "output.shape", np.shape(values), str(shape))
    features = {"multiple_choice": (1,), "extractive_qa": (2,), "regression": (output.dimension, 2 * output.dimension)}
    require(out_features in features.get(output.kind, (output.dimension,)), "head.out_features", out_features,
            f"the output's dimension {output.dimension}")
    if output.kind in ("classification", "multilabel", "token_classification", "regression"):
        require(output.labels is not None, "output.labels", None, "the ordered names of the outputs")
        require(len(LabelMap(output.labels)) == output.dimension, "output.labels", len(output.labels),
                f"{output.dimension} names")
    rows = batch.input_ids.shape
    if output.kind == "token_classification":
        _mask("label_mask", batch.label_mask, rows)
        _mask("emitted", batch.emitted, rows)
        _offsets(batch, batch.emitted, "an emitted label")
    if output.kind == "extractive_qa":
        _mask("context_mask", batch.context_mask, rows)
        _offsets(batch, batch.context_mask, "a context row")
        require(output.max_answer_length > 0, "output.max_answer_length", output.max_answer_length, "1 or more")
    if output.kind == "multilabel":
        require(output.thresholds is not None and len(output.thresholds) == output.dimension, "output.thresholds",
                None if output.thresholds is None else len(output.thresholds), f"{output.dimension} thresholds")
