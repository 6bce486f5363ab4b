"""Several tasks in one loss: each normalised by its own denominator first, then weighted."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .trainable import ContractError

# objective → the denominators it may have: what one loss element is counted by (docs/readout.md).
DENOMINATORS = {
    "classification": ("examples", "example_weights"),
    "regression": ("examples", "example_weights"),
    "multilabel": ("example_labels", "example_label_weights"),
    "multiple_choice": ("examples", "example_weights"),
    "token_classification": ("supervised_rows", "supervised_row_weights"),
    "extractive_qa": ("examples_per_channel",),
    "contrastive": ("anchors", "positives"),
}
AXES = {"classification": 1, "regression": 1, "multilabel": 2, "multiple_choice": 1, "token_classification": 2,
        "extractive_qa": 2, "contrastive": 1}


@dataclass(frozen=True)
class LocalLoss:
    """numerator : sum of weight * loss over supervised elements · denominator : sum of the weights"""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        return self.numerator / self.denominator


def allowed_denominators(objective: str) -> tuple[str, ...]:
    """The denominators of an objective; ContractError for one that is not known."""
    if objective not in DENOMINATORS:
        raise ContractError(f"objective_kind = {objective!r}: expected one of {', '.join(DENOMINATORS)}")
    return DENOMINATORS[objective]


def local_loss(objective: str, losses: np.ndarray, supervised: np.ndarray, weight: np.ndarray | None = None,
               denominator: str | None = None) -> LocalLoss:
    """Numerator and denominator of one task's elementwise losses.

    losses : float64, one an element: (examples,), (examples, labels), (examples, rows) or (examples, 2) channels ·
    supervised : bool of that shape, from the task's own table of supervised elements (an attention mask is none) ·
    weight : >= 0, of that shape · denominator : one of DENOMINATORS[objective], None: the plain count, or the sum of
    weights when there are some

    Order: binary64, ascending in C order, from +0. For extractive_qa the two channels are averaged, so the denominator
    is twice the supervised examples per channel. ContractError: nothing supervised, a negative weight, a denominator
    that the objective does not have (the padded size is never one).
    """
    losses, supervised = np.asarray(losses, np.float64), np.asarray(supervised)
    allowed = allowed_denominators(objective)
    chosen = denominator or next((d for d in allowed if d.endswith("weights")) if weight is not None else iter(allowed))
    if chosen not in allowed:
        raise ContractError(f"denominator_kind = {chosen!r}: expected one of {', '.join(allowed)} for {objective}")
    if chosen.endswith("weights") != (weight is not None):
        raise ContractError(f"denominator_kind = {chosen!r}: expected weights exactly when it counts them")
    if losses.ndim != AXES[objective] or supervised.shape != losses.shape or supervised.dtype != np.bool_:
        raise ContractError(f"losses has shape {losses.shape}, supervised {supervised.shape} of {supervised.dtype}: "
                            f"expected {AXES[objective]} axes and a bool mask of that shape")
    if objective == "extractive_qa" and (losses.shape[1] != 2 or (supervised[:, 0] != supervised[:, 1]).any()):
        raise ContractError("losses: expected two channels, supervised together")
    weights = np.ones(losses.shape) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != losses.shape or not (weights >= 0).all():
        raise ContractError("weight: expected numbers >= 0, one an element")
    numerator = total = 0.0
    for loss, w in zip(losses[supervised].tolist(), weights[supervised].tolist()):
        numerator += w * loss
        total += w
    if not total > 0:
        raise ContractError(f"valid_supervised_count = {total:g}: expected more than 0")
    return LocalLoss(numerator, total)


@dataclass(frozen=True)
class TaskShare:
    """One task in the joint loss: numerator S, denominator D, local loss L = S / D, weight, and what it adds."""

    name: str
    numerator: float
    denominator: float
    local: float
    weight: float
    share: float

    @property
    def scale(self) -> float:
        """What the gradient of each of the task's elements is multiplied by: weight / denominator."""
        return self.weight / self.denominator


@dataclass(frozen=True)
class JointLoss:
    """loss : sum over tasks of weight * S / D, in the tasks' order · shares : every term of it"""

    loss: float
    shares: tuple[TaskShare, ...]


def joint_loss(tasks: Sequence[tuple[str, LocalLoss]], weights: Mapping[str, float]) -> JointLoss:
    """The joint loss of tasks. ContractError: a task twice or without a weight, a weight below 0 or of no task, a
    denominator of 0."""
    names = [name for name, _ in tasks]
    if len(dict.fromkeys(names)) != len(names) or sorted(weights) != sorted(names):
        raise ContractError(f"task_weights {sorted(weights)}: expected one for each of {names}, each task once")
    shares, loss = [], 0.0
    for name, local in tasks:
        if not 0 <= weights[name] < float("inf"):
            raise ContractError(f"task_weights[{name!r}] = {weights[name]}: expected a finite number >= 0")
        if not local.denominator > 0:
            raise ContractError(f"task {name!r} has the denominator {local.denominator}: expected more than 0")
        share = weights[name] * local.value
        shares.append(TaskShare(name, local.numerator, local.denominator, local.value, weights[name], share))
        loss += share
    return JointLoss(loss, tuple(shares))


def effective_weights(weights: Mapping[str, float], sampler: Mapping[str, float]) -> dict[str, float]:
    """Task → weight times how often the sampler draws it, divided by the largest frequency: a task drawn twice as often
    counts twice."""
    most = max(sampler.values())
    if sorted(sampler) != sorted(weights) or not most > 0:
        raise ContractError(f"task_sampler {sorted(sampler)}: expected a frequency for each of {sorted(weights)}")
    return {name: weights[name] * (sampler[name] / most) for name in weights}
