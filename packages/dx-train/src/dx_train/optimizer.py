"""AdamW over a trainable set."""
import numpy as np

from .below import Gradients, Parameters, adamw_steps, clip_gradients
from .trainable import TrainableSet


class AdamW:
    """AdamW with a learning-rate scale per tensor and decay on matrices and tables only (docs/backward-numerics.md).

    Only trainable tensors have moments and are stepped, every step, also with a zero gradient; frozen ones keep every
    byte.
    """

    def __init__(self, parameters: Parameters, trainable: TrainableSet, *, beta1: float, beta2: float, eps: float,
                 weight_decay: float):
        self.parameters, self.trainable = parameters, trainable
        self.constants = {"beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
        self.first = {name: np.zeros_like(parameters[name]) for name in trainable.names}
        self.second = {name: np.zeros_like(parameters[name]) for name in trainable.names}

    def clip(self, gradients: Gradients, max_norm: float) -> float:
        """Clips the trainable gradients to a global norm (0: not at all); returns the norm before.

        FloatingPointError names a tensor that is not finite."""
        names = self.trainable.names
        return clip_gradients([gradients[name] for name in names], max_norm, names)

    def step(self, number: int, rate: float, gradients: Gradients) -> None:
        """Applies step `number` (from 1) at a learning rate."""
        names = self.trainable.names
        adamw_steps([self.parameters[n] for n in names], [gradients[n] for n in names],
                    [self.first[n] for n in names], [self.second[n] for n in names], step=number, rate=rate,
                    scales=self.trainable.scales, decays=self.trainable.decays, **self.constants)
