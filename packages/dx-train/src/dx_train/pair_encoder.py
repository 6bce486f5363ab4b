"""Bi-encoders to train: one token encoder for both sides, or two, as a model of the transaction."""
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .below import (CausalConfig, CausalEncoder, GradientSet, TensorSet, TensorSpec, initial_tensors, load_model,
                    save_model)
from .trainable import ContractError

KIND = "pair-encoder"
SIDES = ("query", "document")


@dataclass(frozen=True)
class PairConfig:
    """encoder : sizes of a token encoder · tied : one encoder for queries and documents, or two of equal sizes, whose
    vectors meet only because they are trained to"""

    encoder: CausalConfig
    tied: bool = True

    def to_json(self) -> dict:
        """Plain JSON."""
        return {"encoder": self.encoder.to_json(), "tied": self.tied}

    @classmethod
    def from_json(cls, value: dict) -> "PairConfig":
        """The opposite of to_json; ValueError for anything else."""
        if not isinstance(value, dict) or set(value) != {"encoder", "tied"} or not isinstance(value["tied"], bool):
            raise ValueError("config: expected encoder and tied")
        try:
            return cls(CausalConfig(**value["encoder"]), value["tied"])
        except TypeError as error:
            raise ValueError(f"config: {error}") from None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What stands before the names of each encoder's tensors."""
        return ("",) if self.tied else tuple(f"{side}." for side in SIDES)


def _table(config: PairConfig) -> list[TensorSpec]:
    return [TensorSpec(prefix + name, shape, len(shape) == 2, "backbone", start)
            for prefix in config.prefixes for name, (shape, start) in config.encoder.tensors().items()]


class PairTensors(TensorSet):
    """Weights of a PairEncoder over one flat buffer."""

    table = staticmethod(_table)


class PairGradients(GradientSet):
    """Gradients, laid out as the weights."""

    table = staticmethod(_table)


class PairEncoder:
    """Vectors of queries and documents: a token encoder's last row, which under causal visibility has seen all of the
    text. parameters : PairTensors; call repack() after changing them in place."""

    def __init__(self, parameters: PairTensors):
        self.parameters, self.config = parameters, parameters.config
        names = list(self.config.encoder.tensors())
        made = [CausalEncoder(self.config.encoder, {name: parameters[prefix + name] for name in names})
                for prefix in self.config.prefixes]
        self._encoders = dict(zip(SIDES, made * 2 if self.config.tied else made))
        self._prefix = dict(zip(SIDES, self.config.prefixes * 2 if self.config.tied else self.config.prefixes))

    @classmethod
    def start(cls, config: PairConfig, seed: int = 0) -> "PairEncoder":
        """A model with starting weights; two encoders start from the same ones."""
        parameters, tensors = PairTensors(config), initial_tensors(config.encoder.tensors(), seed)
        for prefix in config.prefixes:
            for name, array in tensors.items():
                parameters[prefix + name][...] = array
        return cls(parameters)

    def repack(self) -> None:
        """Takes in the parameters' present values."""
        for encoder in self._encoders.values():
            encoder.repack()

    def encode(self, side: str, ids) -> np.ndarray:
        """float32 (hidden,): the vector of one text of a side, "query" or "document"."""
        return self.forward_saved(side, ids)[0]

    def forward_saved(self, side: str, ids):
        """(vector, what backward needs)."""
        if side not in SIDES:
            raise ContractError(f"side = {side!r}: expected query or document")
        rows, kept = self._encoders[side].forward_saved(ids)
        return rows[-1], (side, ids, kept, rows.shape)

    def backward(self, saved, dvector: np.ndarray, gradients: PairGradients) -> None:
        """Adds one text's gradient to the set, elementwise."""
        side, ids, kept, shape = saved
        drows = np.zeros(shape, np.float32)
        drows[-1] = dvector
        for name, gradient in self._encoders[side].backward(ids, kept, drows).items():
            into = gradients[self._prefix[side] + name]
            np.add(into, gradient, out=into)

    def save_pretrained(self, folder) -> str:
        """Writes model.safetensors into the folder; returns its SHA-256."""
        return save_model(KIND, self.parameters, Path(folder))

    @classmethod
    def from_pretrained(cls, path, digest: str | None = None) -> "PairEncoder":
        """From a folder or file; ModelFileError when it is not such a model."""
        return cls(load_model(KIND, PairConfig, PairTensors, path, digest))
