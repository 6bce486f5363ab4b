"""AdamW and plain descent over a trainable set, and the moving average of its weights."""
import numpy as np

from .below import Gradients, Parameters, adamw_steps, clip_gradients, sgd_step
from .trainable import TrainableSet


class _Optimizer:
    """What optimizers share: the trained parts with their names and scales, and clipping.

    moments : name → one array for each of the trainable set's parts, which a checkpoint keeps
    """

    def __init__(self, parameters: Parameters, trainable: TrainableSet):
        self.trainable, self.weights = trainable, trainable.parts(parameters)
        settings = trainable.part_settings(parameters)
        self.names, self.scales, self.decays = ([entry[i] for entry in settings] for i in range(3))
        self.moments: dict[str, list[np.ndarray]] = {}
        self._of, self._parts = None, []  # the gradient set seen last, and what is trained of it

    def parts(self, gradients: Gradients) -> list[np.ndarray]:
        """Views of the gradients of what is trained."""
        if self._of is not gradients:
            self._of, self._parts = gradients, self.trainable.parts(gradients)
        return self._parts

    def clip(self, gradients: Gradients, max_norm: float) -> float:
        """Clips the trainable gradients to a global norm (0: not at all); returns the norm before.

        FloatingPointError names a tensor that is not finite."""
        return clip_gradients(self.parts(gradients), max_norm, self.names)


class AdamW(_Optimizer):
    """AdamW with a learning-rate scale per tensor and decay on matrices and tables only (docs/backward-numerics.md).

    Only what is trainable has moments and is stepped, every step, also with a zero gradient; frozen tensors and rows
    keep every byte. `first` and `second` are the moments, one array for each of the trainable set's parts.
    """

    def __init__(self, parameters: Parameters, trainable: TrainableSet, *, beta1: float, beta2: float, eps: float,
                 weight_decay: float):
        super().__init__(parameters, trainable)
        self.constants = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
        self.first = [np.zeros(w.shape, np.float32) for w in self.weights]
        self.second = [np.zeros(w.shape, np.float32) for w in self.weights]
        self.moments = {"first": self.first, "second": self.second}

    def step(self, number: int, rate: float, gradients: Gradients) -> None:
        """Applies step `number` (from 1) at a learning rate."""
        adamw_steps(self.weights, self.parts(gradients), self.first, self.second, step=number, rate=rate,
                    scales=self.scales, decays=self.decays, **self.constants)


class SGD(_Optimizer):
    """Plain gradient descent: w := w - round(rate * scale) * g, the product and the difference each rounded once. No
    decay, no moments: the step that the certificates of the vision transformer speak of (docs/vit.md)."""

    def step(self, number: int, rate: float, gradients: Gradients) -> None:
        """Applies a step at a learning rate; its number does not matter."""
        for weight, gradient, scale in zip(self.weights, self.parts(gradients), self.scales, strict=True):
            sgd_step(weight.reshape(-1), gradient.reshape(-1), rate=rate, scale=scale)


class MovingAverage:
    """Exponential moving average of the trained weights.

    After step t (from 1), element by element in binary32, each operation rounded:
        e := e + (w - e) * c,   c = round32(1 - min(decay, (1 + t) / (10 + t)))
    so that it follows the weights closely at first. Frozen values are those of the model.
    """

    def __init__(self, parameters: Parameters, trainable: TrainableSet, decay: float):
        self.decay = decay
        self.parameters = parameters.copy()
        self._average, self._weights = trainable.parts(self.parameters), trainable.parts(parameters)

    def step(self, number: int) -> None:
        """Takes in the weights after step `number`."""
        keep = np.float32(1.0 - min(self.decay, (1.0 + number) / (10.0 + number)))
        for average, weights in zip(self._average, self._weights, strict=True):
            difference = weights - average
            difference *= keep
            average += difference
