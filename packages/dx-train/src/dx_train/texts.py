"""Training of a text classifier: its head, low-rank updates beside a frozen encoder, or every tensor."""
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from .below import (
    BertTensors,
    ClassLoss,
    TextClassifier,
    TextClassifierGradients,
    TextClassifierParameters,
    TextHeadGradients,
    Workspace,
)
from .low_rank import LowRankClassifier, LowRankGradients, LowRankTensors
from .task import Task

TRAIN = ("head", "lora", "full")


@dataclass(frozen=True)
class TextExample:
    """One text with its class.

    id : names it in messages; unique in a run · ids, type_ids : (n,) int32 tokens of the text, as Tokenizer makes them
    · label : its class, from 0
    """

    id: str
    ids: np.ndarray
    type_ids: np.ndarray
    label: int

    def check(self, config) -> None:
        """ValueError: tokens or a class that are not the model's."""
        sizes, n = config.encoder, len(self.ids)
        if not 1 <= n <= sizes.max_position_embeddings:
            raise ValueError(f"example {self.id}: it has {n} tokens: expected 1 to {sizes.max_position_embeddings}")
        for name, values, count in (("ids", self.ids, sizes.vocab_size), ("type_ids", self.type_ids,
                                                                         sizes.type_vocab_size)):
            if values.dtype != np.int32 or values.shape != (n,):
                raise ValueError(f"example {self.id}: {name} is {values.dtype} {values.shape}: expected int32 ({n},)")
            if values.min() < 0 or values.max() >= count:
                raise ValueError(f"example {self.id}: {name} goes from {values.min()} to {values.max()}: expected 0 to "
                                 f"{count - 1}")
        if not 0 <= self.label < len(config.labels):
            raise ValueError(f"example {self.id}: label = {self.label}: expected 0 to {len(config.labels) - 1}")

    @property
    def targets(self) -> int:
        """What the loss compares the logits with."""
        return self.label

    @property
    def rows(self) -> int:
        """Rows of the encoder that it takes."""
        return len(self.ids)

    def at(self, epoch, settings, config) -> "TextExample":
        """The example itself: texts are not augmented."""
        return self

    def arrays(self):
        """Yields (name, array) of everything that training reads."""
        yield "ids", self.ids
        yield "type_ids", self.type_ids
        yield "label", np.array(self.label, np.int64)


def text_examples(tokenizer, texts, classes, labels, *, max_length: int, truncation: str = "refuse",
                  name: str = "text") -> list[TextExample]:
    """Examples "{name} 0", "{name} 1", … of texts (or pairs of texts) with their classes' names.

    Parameters
    ----------
    tokenizer : dx_model.bert.Tokenizer · labels : the model's, in order · max_length, truncation : as the tokenizer's

    Raises ValueError: a class that is no label, a text that is too long, other numbers of texts and classes
    """
    texts, classes, places = list(texts), list(classes), {label: i for i, label in enumerate(labels)}
    if len(texts) != len(classes):
        raise ValueError(f"there are {len(texts)} texts and {len(classes)} classes: expected one class a text")
    for i, label in enumerate(classes):
        if label not in places:
            raise ValueError(f"classes[{i}] = {label!r}: expected one of {', '.join(map(repr, labels))}")
    tokens = tokenizer.ids(texts, max_length=max_length, truncation=truncation)
    return [TextExample(f"{name} {i}", np.array(ids, np.int32), np.array(types, np.int32), places[label])
            for i, ((ids, types), label) in enumerate(zip(tokens, classes, strict=True))]


@dataclass
class _HeadSaved:
    vector: np.ndarray
    outputs: np.ndarray


class HeadPasses:
    """Passes of the head over a frozen encoder, which has no modes: a text's vector is made once and kept for the run
    (4 * hidden_size bytes a text)."""

    def __init__(self, model: TextClassifier):
        self.model, self._vectors = model, {}
        self.new_gradients, self.new_workspace = lambda: TextHeadGradients(model.config), Workspace

    def _vector(self, example):
        kept, found = self._vectors.get(example.id, (None, None))
        if kept is not example:  # another example may have the same id in another batch
            found = self.model.vectors([(example.ids, example.type_ids)])
            self._vectors[example.id] = example, found
        return found

    def infer(self, example):
        return self.model.head(self._vector(example))[0]

    def forward(self, example, workspace):
        vector = self._vector(example)
        return _HeadSaved(vector, self.model.head(vector)[0])

    def backward(self, saved, dout, gradients):
        self.model.head_backward(saved.vector, dout, gradients)


class FullPasses:
    """Passes of every tensor. A gradient set's embedding tables cost what the rows of its texts cost."""

    def __init__(self, model: TextClassifier):
        self.model = model
        self.new_gradients, self.new_workspace = lambda: TextClassifierGradients(model.config), Workspace

    def infer(self, example):
        return self.model.logits([(example.ids, example.type_ids)])[0]

    def forward(self, example, workspace):
        return self.model.forward_saved(example.ids, workspace, example.type_ids)

    def backward(self, saved, dout, gradients):
        self.model.backward(saved, dout, gradients)


class _BlockTensors(BertTensors):
    """The tensors of an encoder's blocks."""

    @staticmethod
    def table(config):
        return [spec for spec in BertTensors.table(config.encoder) if spec.name.startswith("blocks.")]


class _LowRankWorkspace(Workspace):
    """A workspace with room for the gradients of the matrices that low-rank updates stand beside."""

    def __init__(self, config):
        super().__init__()
        self.blocks = _BlockTensors(config)

    @property
    def nbytes(self):
        return super().nbytes + self.blocks.flat.nbytes  # exact: whole numbers


class LowRankPasses:
    """Passes of low-rank updates and head: the gradients of the used matrices stay in the thread's workspace, a
    gradient set holds those of the factors."""

    def __init__(self, model: LowRankClassifier):
        self.model = model
        self.new_gradients = lambda: LowRankGradients(model.config)
        self.new_workspace = lambda: _LowRankWorkspace(model.config)

    def infer(self, example):
        return self.model.logits([(example.ids, example.type_ids)])[0]

    def forward(self, example, workspace):
        return self.model.merged.forward_saved(example.ids, workspace, example.type_ids)

    def backward(self, saved, dout, gradients):
        self.model.backward(saved, dout, gradients, saved.encoder.workspace.blocks)


PASSES = {"head": HeadPasses, "lora": LowRankPasses, "full": FullPasses}


def _scales(train, parameters, backbone_scale):
    """What a way of training changes, as learning-rate scales."""
    model, wanted = (LowRankClassifier, LowRankTensors) if train == "lora" else (TextClassifier,
                                                                                 TextClassifierParameters)
    if not isinstance(parameters, wanted):
        raise ValueError(f"train = {train!r}: expected a {model.__name__}; the parameters are "
                         f"{type(parameters).__name__}")
    names = [spec.name for spec in (LowRankGradients.table(parameters.config) if train == "lora" else
                                    parameters.specs) if train != "head" or spec.group == "head"]
    if train == "full" and backbone_scale == 0:
        raise ValueError("backbone_scale = 0 trains no encoder: expected train = 'head'")
    return {name: backbone_scale if train == "full" and not name.startswith("head.") else 1.0 for name in names}


def text_classification(train: str = "full") -> Task:
    """The task of a text classifier: the mean of -log softmax(logits)[label] over the batch.

    train : "head", the head alone, on a TextClassifier; "lora", low-rank updates and head, on a LowRankClassifier;
        "full", every tensor of a TextClassifier, the encoder's at settings.backbone_scale
    """
    if train not in TRAIN:
        raise ValueError(f"train = {train!r}: expected one of {', '.join(map(repr, TRAIN))}")
    return Task(ClassLoss(), PASSES[train], partial(_scales, train))


@dataclass
class TextAccuracy:
    """Callable that scores a model on examples: the share whose largest logit (the first of equals) is the label's."""

    examples: list = field(default_factory=list)

    def __call__(self, model) -> float:
        if not self.examples:
            return 1.0
        logits = model.logits([(example.ids, example.type_ids) for example in self.examples])
        labels = np.array([example.label for example in self.examples])
        return int(np.count_nonzero(logits.argmax(1) == labels)) / len(labels)
