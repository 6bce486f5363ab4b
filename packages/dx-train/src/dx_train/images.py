"""Training of a vision transformer on images with classes."""
from dataclasses import dataclass

import numpy as np

from .below import ClassLoss, ViT, ViTGradients, Workspace
from .task import Task


@dataclass(frozen=True)
class ImageExample:
    """One image with its class.

    id : names it in messages; unique in a run · image : float32 (channels, height, width) · label : its class, from 0
    """

    id: str
    image: np.ndarray
    label: int

    def check(self, config) -> None:
        """ValueError: an image or a class that is not the model's."""
        image = self.image
        if image.dtype != np.float32 or image.shape != config.image_shape:
            raise ValueError(f"example {self.id}: the image is {image.dtype} {image.shape}: expected float32 "
                             f"{config.image_shape}")
        if not 0 <= self.label < config.num_classes:
            raise ValueError(f"example {self.id}: label = {self.label}: expected 0 to {config.num_classes - 1}")

    @property
    def targets(self) -> int:
        """What the loss compares the logits with."""
        return self.label

    @property
    def rows(self) -> int:
        """One image counts as one."""
        return 1

    def at(self, epoch, settings, config) -> "ImageExample":
        """The example itself: images are not augmented."""
        return self

    def arrays(self):
        """Yields (name, array) of everything that training reads."""
        yield "image", self.image
        yield "label", np.array(self.label, np.int64)


class ViTPasses:
    """Passes of a vision transformer: outputs are the logits (classes,)."""

    def __init__(self, model: ViT):
        self.model = model
        self.new_gradients, self.new_workspace = lambda: ViTGradients(model.config), Workspace

    def infer(self, example):
        return self.model.forward(example.image[None])[0]

    def forward(self, example, workspace):
        return self.model.forward_saved(example.image, workspace)

    def backward(self, saved, dout, gradients):
        self.model.backward(saved, dout, gradients)

    def backward_adding(self, saved, dout, gradients, total):
        self.model.backward(saved, dout, gradients, total=total)


def image_classification() -> Task:
    """The task of a classifier: the mean of -log softmax(logits)[label] over the batch."""
    return Task(ClassLoss(), ViTPasses)


class Accuracy:
    """Callable that scores a model on examples: the share whose largest logit (the first of equals) is the label's."""

    def __init__(self, examples):
        self.examples = list(examples)

    def __call__(self, model: ViT) -> float:
        if not self.examples:
            return 1.0
        logits = model.forward(np.stack([example.image for example in self.examples]))
        labels = np.array([example.label for example in self.examples])
        return int(np.count_nonzero(logits.argmax(1) == labels)) / len(labels)
