"""The loss of a classifier of images and its gradient."""
import numpy as np

from ..below import cross_entropy_backward, cross_entropy_forward, ieee_mode
from ..loss_part import LossPart
from ..workspace import Workspace


class ClassLoss:
    """-log softmax(logits)[label], with the one term "class"."""

    weights = {"class": 1.0}

    @ieee_mode()
    def run(self, logits: np.ndarray, label: int, factor: float | None,
            workspace: Workspace) -> tuple[dict[str, LossPart], np.ndarray | None]:
        """The term of one example and, unless factor is None, the gradient of its logits (classes,), which carries
        factor as its one scale: 1 / batch size. label -1: not counted, gradient zero."""
        target, logits = np.array([label], np.int32), logits.reshape(1, -1)
        if factor is None:
            return {"class": LossPart(*cross_entropy_forward(logits, target))}, None
        dlogits = workspace.take("dlogits", logits.shape)
        part = LossPart(*cross_entropy_backward(logits, target, None, None, dlogits, scale=factor))
        return {"class": part}, dlogits[0]

    def total(self, parts: dict[str, LossPart]) -> float:
        """The loss of one example."""
        return parts["class"].value

    def settings(self) -> dict:
        """What of the loss decides a bit."""
        return {"loss": "class"}
