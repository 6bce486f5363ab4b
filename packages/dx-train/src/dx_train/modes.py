"""Training and evaluation mode of stochastic modules, apart from what is frozen: a switch of its own for each."""
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .dropout import dropout_mask
from .trainable import ContractError

MODES = ("train", "eval")


@dataclass(frozen=True)
class ModuleModes:
    """module → "train" or "eval". Nothing is recursive: every stochastic module has its own entry, so that a frozen
    backbone can be evaluated while its new head trains, or kept stochastic on purpose."""

    modes: Mapping[str, str]

    def cover(self, stochastic) -> None:
        """ContractError unless exactly the model's stochastic modules have a mode, each "train" or "eval"."""
        for name in stochastic:
            if name not in self.modes:
                raise ContractError(f"module {name!r} draws random numbers and has no mode")
        for name, mode in self.modes.items():
            if name not in stochastic or mode not in MODES:
                raise ContractError(f"module {name!r} has the mode {mode!r}: expected train or eval of a module that "
                                    f"draws random numbers ({', '.join(stochastic)})")

    def to_json(self) -> dict:
        """Plain JSON, sorted by module."""
        return dict(sorted(self.modes.items()))


@dataclass(frozen=True)
class Dropout:
    """Dropout of one module by counter: factors depend on (seed, example, step, module, view) and on nothing else."""

    module: str
    rate: float

    def factors(self, shape, modes: ModuleModes, *, seed: int, example: str, step: int, view: int = 0):
        """float32 factors of `shape`, or None when the module is in evaluation mode (nothing is multiplied)."""
        if self.module not in modes.modes:
            raise ContractError(f"module {self.module!r} has no mode")
        if modes.modes[self.module] == "eval":
            return None
        return dropout_mask(shape, self.rate, seed=seed, example=example, step=step, site=self.module, view=view)

    def apply(self, x: np.ndarray, modes: ModuleModes, **key) -> np.ndarray:
        """x times its factors, elementwise; the gradient of x is that of the result times the same factors."""
        factors = self.factors(x.shape, modes, **key)
        return x if factors is None else x * factors
