"""The passes of a model over one example, as batches of any loss need them."""
from typing import Any, Protocol

from .below import Gradients, Workspace


class Passes(Protocol):
    """The passes of a model over one example, as training needs them. `infer` and `forward` give the same bits;
    several threads call them at once, each with a workspace of its own.

    Optional: `backward_adding(saved, dout, gradients, total)`, which gives `total` the bits of a backward and
    `total.add(gradients)` in less time."""

    def new_gradients(self) -> Any:
        """An empty gradient set: `flat` (float32), `add(other)`, `[tensor name]`."""

    def new_workspace(self) -> Any:
        """Buffers for one example's passes: `nbytes`."""

    def infer(self, example) -> Any:
        """The example's output in memory of its own."""

    def forward(self, example, workspace) -> Any:
        """What the backward needs, kept in the workspace; its `outputs` is the example's output."""

    def backward(self, saved, dout, gradients) -> None:
        """Assigns every trained tensor of the gradient set."""


class DocExtractPasses:
    """Passes of a docextract model: outputs are the logits of the named heads. backbone: gradients beyond the heads."""

    def __init__(self, model, heads, backbone: bool = True):
        self.model, self.heads, self.backbone = model, tuple(heads), backbone
        self.new_gradients, self.new_workspace = lambda: Gradients(model.config), Workspace

    def infer(self, example):
        return self.model.forward(example.page, self.heads)

    def forward(self, example, workspace):
        return self.model.forward_saved(example.page, workspace, self.heads)

    def backward(self, saved, dout, gradients):
        self.model.backward(saved, dout, gradients, backbone=self.backbone)

    def backward_adding(self, saved, dout, gradients, total):
        self.model.backward(saved, dout, gradients, backbone=self.backbone, total=total)
