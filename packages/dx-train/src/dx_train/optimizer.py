"""AdamW over a trainable set, and the moving average of its weights."""
import numpy as np

from .below import Gradients, Parameters, adamw_steps, clip_gradients
from .trainable import TrainableSet


class AdamW:
    """AdamW with a learning-rate scale per tensor and decay on matrices and tables only (docs/backward-numerics.md).

    Only what is trainable has moments and is stepped, every step, also with a zero gradient; frozen tensors and rows
    keep every byte. `first` and `second` are the moments, one array for each of the trainable set's parts.
    """

    def __init__(self, parameters: Parameters, trainable: TrainableSet, *, beta1: float, beta2: float, eps: float,
                 weight_decay: float):
        self.trainable = trainable
        self.constants = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
        self.weights = trainable.parts(parameters)
        settings = trainable.part_settings(parameters)
        self.names, self.scales, self.decays = ([entry[i] for entry in settings] for i in range(3))
        self.first = [np.zeros(w.shape, np.float32) for w in self.weights]
        self.second = [np.zeros(w.shape, np.float32) for w in self.weights]

    def clip(self, gradients: Gradients, max_norm: float) -> float:
        """Clips the trainable gradients to a global norm (0: not at all); returns the norm before.

        FloatingPointError names a tensor that is not finite."""
        return clip_gradients(self.trainable.parts(gradients), max_norm, self.names)

    def step(self, number: int, rate: float, gradients: Gradients) -> None:
        """Applies step `number` (from 1) at a learning rate."""
        adamw_steps(self.weights, self.trainable.parts(gradients), self.first, self.second, step=number, rate=rate,
                    scales=self.scales, decays=self.decays, **self.constants)


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
