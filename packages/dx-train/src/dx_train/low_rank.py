"""A text classifier whose encoder is frozen and gets low-rank updates: a model of the transaction."""
from dataclasses import dataclass

import numpy as np

from .adapters import AdapterRelease, LoRA
from .below import (
    BertTensors,
    GradientSet,
    ModelFileError,
    TensorSet,
    TensorSpec,
    TextClassifier,
    TextClassifierConfig,
    TextClassifierParameters,
    load_model,
    save_model,
)
from .trainable import ContractError, frozen_digest

KIND = "low-rank-classifier"


@dataclass(frozen=True)
class LowRankConfig:
    """classifier : sizes, pooling and labels · release : which matrices are updated, rank, alpha, and the digest of the
    encoder's tensors, beside which alone the factors mean anything"""

    classifier: TextClassifierConfig
    release: AdapterRelease

    @property
    def encoder(self):
        """Sizes of the encoder."""
        return self.classifier.encoder

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.classifier.labels

    def to_json(self) -> dict:
        """Plain JSON."""
        r = self.release
        return {"classifier": self.classifier.to_json(), "base": r.base, "targets": list(r.targets), "rank": r.rank,
                "alpha": r.alpha}

    @classmethod
    def from_json(cls, data: dict) -> "LowRankConfig":
        """The opposite of to_json; ValueError for anything else."""
        if not isinstance(data, dict) or set(data) != {"classifier", "base", "targets", "rank", "alpha"}:
            raise ValueError("config: expected classifier, base, targets, rank and alpha")
        try:
            release = AdapterRelease("lora", data["base"], tuple(data["targets"]), data["rank"], data["alpha"])
        except (ContractError, TypeError) as error:
            raise ValueError(f"config: {error}") from None
        return cls(TextClassifierConfig.from_json(data["classifier"]), release)


def factor_table(config: LowRankConfig) -> list[TensorSpec]:
    """What is trained: both factors of every updated matrix, then the head."""
    table = {spec.name: spec for spec in TextClassifierParameters.table(config.classifier)}
    rows = []
    for name in config.release.targets:
        out, width = table[name].shape
        rows += [TensorSpec(f"lora.{name}.a", (config.release.rank, width), True, "adapter", 0.02),
                 TensorSpec(f"lora.{name}.b", (out, config.release.rank), True, "adapter", "zeros")]
    return rows + [spec for spec in table.values() if spec.group == "head"]


class LowRankTensors(BertTensors):
    """The encoder's weights, then what is trained."""

    @staticmethod
    def table(config):
        return BertTensors.table(config.encoder) + factor_table(config)


class LowRankGradients(GradientSet):
    """Gradients of what is trained."""

    table = staticmethod(factor_table)


class LowRankFile(TensorSet):
    """What is trained, as it is saved: without the encoder."""

    table = staticmethod(factor_table)


class LowRankClassifier:
    """A TextClassifier that runs with W + (alpha / rank) (B A) in place of some of the encoder's matrices (LoRA says
    with which roundings). parameters : LowRankTensors; call repack() after changing them in place.

    merged : the TextClassifier with the updated matrices; what it gives is what this gives, bit for bit
    """

    def __init__(self, parameters: LowRankTensors):
        self.parameters, self.config = parameters, parameters.config
        release = self.config.release
        self._lora = LoRA({name: parameters[name] for name in release.targets}, release)
        self._lora.tensors = {name: parameters[name] for name in self._lora.tensors}
        merged = TextClassifierParameters(self.config.classifier)
        for name in merged:
            merged[name][...] = parameters[name]
        self.merged = TextClassifier(merged)
        self.repack()

    @classmethod
    def start(cls, base: TextClassifier, *, targets=None, rank: int = 8, alpha: float = 16.0,
              seed: int = 0) -> "LowRankClassifier":
        """Low-rank updates beside a classifier's encoder, which start as no change, and its head.

        targets : names of matrices of the blocks, e.g. "blocks.0.q.weight"; None: q and v of every block
        """
        config = base.config
        if targets is None:
            targets = [f"blocks.{i}.{part}.weight" for i in range(config.encoder.num_hidden_layers) for part in "qv"]
        for name in targets:
            if not name.startswith("blocks.") or name not in base.parameters or base.parameters[name].ndim != 2:
                raise ContractError(f"adapter target {name!r}: expected a matrix of the encoder's blocks")
        release = AdapterRelease("lora", encoder_digest(base), tuple(targets), rank, alpha)
        parameters = LowRankTensors(LowRankConfig(config, release))
        for name, array in base.parameters.items():
            parameters[name][...] = array
        for name, array in LoRA({name: base.parameters[name] for name in targets}, release, seed).tensors.items():
            parameters[name][...] = array
        return cls(parameters)

    def repack(self) -> None:
        """Takes in the parameters' present values."""
        used, into = self._lora.used(), self.merged.parameters
        for name in self.config.release.targets:
            into[name][...] = used[name]
        for name in ("head.weight", "head.bias"):
            into[name][...] = self.parameters[name]
        self.merged.repack()

    def logits(self, tokens) -> np.ndarray:
        """Logits (texts, labels), as TextClassifier.logits."""
        return self.merged.logits(tokens)

    def predict(self, tokens) -> list[str]:
        """The label of each text, as TextClassifier.predict."""
        return self.merged.predict(tokens)

    def backward(self, saved, dlogits: np.ndarray, gradients: LowRankGradients, blocks: BertTensors) -> None:
        """Assigns the gradients of factors and head; saved : of merged.forward_saved · blocks : a set with the tensors
        of the blocks, for the gradients of the used matrices."""
        self.merged.backward(saved, dlogits, gradients, blocks)
        for name, array in self._lora.backward({name: blocks[name] for name in self.config.release.targets}).items():
            gradients[name][...] = array

    def save_pretrained(self, folder) -> str:
        """Writes factors and head, without the encoder, to model.safetensors in the folder; returns its SHA-256."""
        file = LowRankFile(self.config)
        for name, array in file.items():
            array[...] = self.parameters[name]
        return save_model(KIND, file, folder)

    @classmethod
    def from_pretrained(cls, path, base: TextClassifier, digest: str | None = None) -> "LowRankClassifier":
        """From a folder or file, beside the encoder of a classifier. ModelFileError when the file is no such model;
        ContractError when it was trained beside another encoder."""
        file = load_model(KIND, LowRankConfig, LowRankFile, path, digest)
        if file.config.classifier != base.config:
            raise ModelFileError(f"{path}: its classifier has other sizes, labels or pooling than the one given")
        file.config.release.admit(encoder_digest(base))
        parameters = LowRankTensors(file.config)
        for source in (base.parameters, file):
            for name, array in source.items():
                parameters[name][...] = array
        return cls(parameters)


def encoder_digest(classifier: TextClassifier) -> str:
    """SHA-256 (hex) over the names and bytes of an encoder's tensors."""
    return frozen_digest(classifier.parameters, ("head.weight", "head.bias"))
