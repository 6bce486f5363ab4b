"""What a run trains a model for whose losses are sums over examples, where the model is not docextract."""
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .below import LossPart
from .passes import Passes


class ExampleLoss(Protocol):
    """The loss of one example. weights : term → its weight"""

    weights: dict[str, float]

    def run(self, outputs, targets, factor: float | None, workspace) -> tuple[dict[str, LossPart], Any]:
        """Terms of one example and, unless factor is None, the gradient of its outputs, which carries factor (1 / batch
        size) inside its single rounding to binary32."""

    def total(self, parts: dict[str, LossPart]) -> float:
        """The loss of one example."""

    def settings(self) -> dict:
        """Everything of the loss that decides a bit, as plain JSON values; joins the fingerprint of a run."""


@dataclass(frozen=True)
class Task:
    """How a run trains a model other than docextract: `FineTune(settings, task=Task(loss, passes))`.

    loss : ExampleLoss · passes : callable that takes the run's model and gives its Passes · scales : callable that
    takes the model's parameters and settings.backbone_scale and gives tensor name → learning-rate scale of everything
    that the passes give gradients of; None: every tensor, heads at 1 and the rest at backbone_scale
    """

    loss: ExampleLoss
    passes: Callable[[Any], Passes]
    scales: Callable[[Any, float], dict[str, float]] | None = None
