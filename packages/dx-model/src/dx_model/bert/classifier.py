"""A text classifier: an encoder, one pooled vector a text, a linear map to the logits of labels (docs/encoder.md)."""
import math
from dataclasses import dataclass

import numpy as np

from ..below import ieee_mode, linear_backward, linear_forward
from ..model_files import load_model, save_model
from ..readout.pooling import BertPooler, Boundary, Mean
from ..readout.selection import Selection
from ..tensors import GradientSet, TensorSet, TensorSpec
from ..workspace import Workspace
from .config import BertConfig, tensor_table
from .embedder import packs
from .model import Bert, Saved
from .parameters import BertTensors, RowGradients, fill

KIND = "text-classifier"
POOLS = {"mean": Mean("mean"), "first": Boundary("first"), "pooler": BertPooler()}


@dataclass(frozen=True, kw_only=True)
class TextClassifierConfig:
    """encoder : sizes of the encoder · labels : names of the classes, in the order of the logits · pooling : "mean" of
    all rows, inserted ones included; "first" row; "pooler": dense layer with tanh on the first row, which the encoder
    has for that pooling and for no other"""

    encoder: BertConfig
    labels: tuple[str, ...]
    pooling: str = "mean"

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(self.labels) < 2 or not all(isinstance(name, str) and name for name in self.labels):
            raise ValueError(f"labels = {self.labels!r}: expected two names or more")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"labels = {self.labels!r}: expected different names")
        if self.pooling not in POOLS:
            raise ValueError(f"pooling = {self.pooling!r}: expected one of {', '.join(map(repr, POOLS))}")
        if self.encoder.pooler != (self.pooling == "pooler"):
            raise ValueError(f"encoder.pooler = {self.encoder.pooler}: expected {self.pooling == 'pooler'} for the "
                             f"pooling {self.pooling!r}: a tensor that no loss reaches would only decay")

    def to_json(self) -> dict:
        """Plain JSON that `from_json` turns back into an equal config."""
        return {"encoder": self.encoder.to_json(), "labels": list(self.labels), "pooling": self.pooling}

    @classmethod
    def from_json(cls, data: dict) -> "TextClassifierConfig":
        """The opposite of to_json; ValueError for anything else."""
        if not isinstance(data, dict) or set(data) != {"encoder", "labels", "pooling"} or not isinstance(
                data["labels"], list):
            raise ValueError("config: expected encoder, labels and pooling")
        return cls(encoder=BertConfig.from_json(data["encoder"]), labels=tuple(data["labels"]), pooling=data["pooling"])


def head_table(config: TextClassifierConfig) -> list[TensorSpec]:
    """The head's tensors, which stand behind the encoder's."""
    d, count = config.encoder.hidden_size, len(config.labels)
    return [TensorSpec("head.weight", (count, d), True, "head", 1.0 / math.sqrt(d)),
            TensorSpec("head.bias", (count,), False, "head", "zeros")]


def classifier_table(config: TextClassifierConfig) -> list[TensorSpec]:
    """The tensors of encoder and head."""
    return tensor_table(config.encoder) + head_table(config)


class TextClassifierParameters(BertTensors):
    """Weights of a TextClassifier over one flat buffer."""

    table = staticmethod(classifier_table)


class TextClassifierGradients(RowGradients):
    """Gradients of every weight."""

    table = staticmethod(classifier_table)


class TextHeadGradients(GradientSet):
    """Gradients of the head alone."""

    table = staticmethod(head_table)


@dataclass
class SavedClassifier:
    """What one training forward keeps; outputs : logits (labels,)"""

    encoder: Saved
    pooled: tuple
    vector: np.ndarray
    outputs: np.ndarray


class TextClassifier:
    """Texts, as token ids, to logits of labels. `parameters` are used in place; after changing them call `repack()`."""

    def __init__(self, parameters: TextClassifierParameters):
        self.config, self.parameters = parameters.config, parameters
        self.encoder, self.pool = Bert(parameters), POOLS[parameters.config.pooling]

    @classmethod
    def start(cls, encoder: Bert, labels, *, pooling: str = "mean", seed: int = 0) -> "TextClassifier":
        """A classifier with a copy of an encoder's weights and the initial head of a seed. An encoder's pooler is left
        out unless the pooling is "pooler"."""
        if pooling == "pooler" and not encoder.config.pooler:
            raise ValueError("pooling = 'pooler': the encoder has no pooler")
        sizes = BertConfig(**{**encoder.config.to_json(), "pooler": pooling == "pooler"})
        parameters = TextClassifierParameters(TextClassifierConfig(encoder=sizes, labels=labels, pooling=pooling))
        fill(parameters, seed)
        for spec in tensor_table(sizes):
            parameters[spec.name][...] = encoder.parameters[spec.name]
        return cls(parameters)

    @classmethod
    def from_pretrained(cls, path, *, digest: str | None = None) -> "TextClassifier":
        """The classifier of a file, or of model.safetensors in a folder. digest: the SHA-256 (hex) it must have.
        Raises ModelFileError, naming file and reason; OSError."""
        return cls(load_model(KIND, TextClassifierConfig, TextClassifierParameters, path, digest))

    def save_pretrained(self, folder) -> str:
        """Writes model.safetensors into the folder; returns its SHA-256 (hex)."""
        return save_model(KIND, self.parameters, folder)

    def repack(self) -> None:
        """Takes notice of changed parameters."""
        self.encoder.repack()

    # --- forward -----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def vectors(self, tokens) -> np.ndarray:
        """The pooled vectors (texts, hidden_size) of texts given as (ids, type_ids), as Tokenizer.ids makes them; a
        vector depends on its text alone."""
        out = np.empty((len(tokens), self.config.encoder.hidden_size), np.float32)
        for pack in packs([len(ids) for ids, _ in tokens]):
            ids, types = (np.concatenate([np.asarray(tokens[i][k]) for i in pack]) for k in (0, 1))
            starts = np.zeros(len(pack) + 1, np.int64)
            np.cumsum([len(tokens[i][0]) for i in pack], out=starts[1:])  # exact: whole numbers
            rows = self.encoder.forward(ids, starts, types)
            out[pack] = self.pool.forward(rows, _all_rows(starts), self.parameters, None)[0]
        return out

    @ieee_mode()
    def head(self, vectors: np.ndarray) -> np.ndarray:
        """Logits (texts, labels) of pooled vectors: W v + b, a dot16 over the vector, then the bias."""
        logits = np.empty((len(vectors), len(self.config.labels)), np.float32)
        linear_forward(vectors, self.parameters["head.weight"], self.parameters["head.bias"], logits)
        return logits

    def logits(self, tokens) -> np.ndarray:
        """Logits (texts, labels), float32; arguments as `vectors`."""
        return self.head(self.vectors(tokens))

    def predict(self, tokens) -> list[str]:
        """The label of the largest logit of each text, the first of equal ones."""
        return [self.config.labels[i] for i in self.logits(tokens).argmax(1).tolist()]

    @ieee_mode()
    def forward_saved(self, ids: np.ndarray, workspace: Workspace,
                      type_ids: np.ndarray | None = None) -> SavedClassifier:
        """As `logits` of one text, with the same bits, keeping what `backward` needs."""
        encoder = self.encoder.forward_saved(ids, workspace, type_ids)
        vector, pooled = self.pool.forward(encoder.rows, _all_rows(np.array([0, len(ids)])), self.parameters, None)
        return SavedClassifier(encoder, pooled, vector, self.head(vector)[0])

    # --- backward ----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def head_backward(self, vector: np.ndarray, dlogits: np.ndarray, gradients: TensorSet,
                      dvector: np.ndarray | None = None) -> None:
        """Assigns the head's gradients, and dvector (1, hidden_size), from the vector (1, hidden_size) it read."""
        linear_backward(dlogits.reshape(1, -1), vector, self.parameters["head.weight"], dvector,
                        gradients["head.weight"], gradients["head.bias"])

    @ieee_mode()
    def backward(self, saved: SavedClassifier, dlogits: np.ndarray, gradients: TensorSet,
                 encoder: BertTensors | None = None) -> None:
        """Gradients of a loss from that of the logits: assigns every tensor of `gradients`.

        encoder : a set with the tensors of the blocks that takes the encoder's gradients instead, without those of
            embeddings and pooler; for updates beside frozen weights
        """
        dvector = np.empty_like(saved.vector)
        self.head_backward(saved.vector, dlogits, gradients, dvector)
        drows, pooler = self.pool.backward(dvector, saved.pooled)
        if encoder is None:
            for name, array in pooler.items():
                gradients[name][...] = array
        into = gradients if encoder is None else encoder
        self.encoder.backward(saved.encoder, drows, into, embeddings=encoder is None)


def _all_rows(starts) -> Selection:
    """Every row of packed sequences."""
    starts = np.asarray(starts, np.int64)
    n, count = int(starts[-1]), len(starts) - 1
    return Selection((1, n), np.arange(n, dtype=np.int32), starts, np.arange(count), np.zeros(0, np.int64))
