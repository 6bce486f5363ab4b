"""Contrastive runs: examples with two sides, their passes, and the loss over a batch of them."""
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from .below import LossPart, ieee_mode
from .contrastive import ContrastiveContract, contrastive_loss, relations
from .modes import Dropout, ModuleModes
from .pair_encoder import PairConfig, PairEncoder, PairGradients


@dataclass(frozen=True, eq=False)
class PairExample:
    """One anchor: id, its query's token ids, its documents (document id, token ids), of which the first is the positive
    and the others are mined negatives; group: what it is about, or None.

    views : 1, or 2 for the same text under two dropout masks (no documents then): the second view is the positive ·
    epoch : set by the run, part of the masks' names
    """

    id: str
    query: tuple[int, ...]
    documents: tuple[tuple[str, tuple[int, ...]], ...] = ()
    group: str | None = None
    views: int = 1
    epoch: int = 0

    @property
    def rows(self) -> int:
        lengths = [len(tokens) for _, _, tokens, _ in self.texts()]
        return sum(lengths)  # exact: whole numbers

    def texts(self):
        """(text id, side, token ids, view) of everything that is encoded: the anchor first."""
        first = (self.id, "query", self.query, 0)
        if self.views == 2:
            return [first, (f"{self.id}#1", "query", self.query, 1)]
        return [first, *((id_, "document", tokens, 0) for id_, tokens in self.documents)]

    def check(self, config: PairConfig) -> None:
        """ValueError: no second side, or tokens that the encoder does not have."""
        if self.views not in (1, 2) or (self.views == 2) == bool(self.documents):
            raise ValueError(f"example {self.id}: expected documents, or two views of the query")
        for id_, _, tokens, _ in self.texts():
            ids = np.asarray(tokens)
            if not 0 < len(ids) <= config.encoder.positions or ids.min() < 0 or ids.max() >= config.encoder.vocabulary:
                raise ValueError(f"example {self.id}: text {id_} has {len(ids)} tokens: expected 1 to "
                                 f"{config.encoder.positions}, each below {config.encoder.vocabulary}")

    def at(self, epoch: int, settings, config) -> "PairExample":
        """The example as it is trained on in an epoch."""
        return replace(self, epoch=epoch)

    def arrays(self):
        """Yields (name, array) of everything that training reads."""
        for id_, side, tokens, view in self.texts():
            yield f"{side} {id_} {view} {self.group}", np.asarray(tokens, np.int32)


class _Space:
    """Nothing is kept between examples."""

    nbytes = 0


@dataclass(eq=False)
class _Saved:
    kept: list
    outputs: np.ndarray
    masks: list = field(default_factory=list)


class PairPasses:
    """Passes over a PairExample: the vectors (texts, hidden) of its texts after dropout.

    model : PairEncoder · dropout : Dropout of the vectors, or None · modes : of the stochastic modules · seed : of the
    masks
    """

    def __init__(self, model: PairEncoder, dropout: Dropout | None = None, modes: ModuleModes | None = None,
                 seed: int = 0):
        self.model, self.dropout, self.modes, self.seed = model, dropout, modes, seed
        if dropout is not None:
            modes.cover((dropout.module,))

    def new_gradients(self) -> PairGradients:
        return PairGradients(self.model.config)

    def new_workspace(self) -> _Space:
        return _Space()

    def infer(self, example: PairExample) -> np.ndarray:
        return self.forward(example, None).outputs

    @ieee_mode()
    def forward(self, example: PairExample, workspace) -> _Saved:
        vectors, kept, masks = [], [], []
        for _, side, tokens, view in example.texts():
            vector, saved = self.model.forward_saved(side, tokens)
            factors = None if self.dropout is None else self.dropout.factors(
                vector.shape, self.modes, seed=self.seed, example=example.id, step=example.epoch, view=view)
            vectors.append(vector if factors is None else vector * factors)
            kept.append(saved)
            masks.append(factors)
        return _Saved(kept, np.array(vectors, np.float32), masks)

    @ieee_mode()
    def backward(self, saved: _Saved, dout: np.ndarray, gradients: PairGradients) -> None:
        gradients.zero()
        for kept, dvector, factors in zip(saved.kept, dout, saved.masks):
            self.model.backward(kept, dvector if factors is None else dvector * factors, gradients)


class ContrastiveBatch:
    """The coupled loss of a batch of PairExamples: every anchor against the documents of all, related by id.

    dropout, modes, seed : those of the passes; they decide bits, so they join the run's settings
    """

    weights = {"contrastive": 1.0}

    def __init__(self, contract: ContrastiveContract, dropout: Dropout | None = None, modes: ModuleModes | None = None,
                 seed: int = 0):
        self.contract, self.dropout, self.modes, self.seed = contract, dropout, modes, seed

    def passes(self, model: PairEncoder) -> PairPasses:
        """The passes that belong to this loss, for Coupling."""
        return PairPasses(model, self.dropout, self.modes, self.seed)

    def settings(self) -> dict:
        """Everything that decides a bit."""
        dropout = None if self.dropout is None else {**asdict(self.dropout), "modes": self.modes.to_json(),
                                                     "seed": self.seed}
        return {"loss": "contrastive", **asdict(self.contract), "dropout": dropout}

    def run(self, outputs: list, examples: list):
        """(parts, douts): see CoupledLoss."""
        anchors, candidates, positives, hard, groups = [], [], [], [], {}
        for example in examples:
            (anchor, *_), *texts = example.texts()
            anchors.append(anchor)
            for place, (id_, *_) in enumerate(texts):
                candidates.append(id_)
                (hard if place else positives).append((anchor, id_))
            if example.group is not None:
                groups |= dict.fromkeys([anchor, texts[0][0]], example.group)
        found = relations(anchors, candidates, positives, self.contract, groups=groups, hard=hard)
        query = np.array([vectors[0] for vectors in outputs], np.float32)
        document = np.ascontiguousarray(np.concatenate([vectors[1:] for vectors in outputs]))
        result = contrastive_loss(query, document, found, self.contract)
        douts, at = [], 0
        for i, vectors in enumerate(outputs):
            count = len(vectors) - 1
            douts.append(np.concatenate([result.dquery[i:i + 1], result.ddocument[at:at + count]]))
            at += count
        return {"contrastive": LossPart(result.loss * len(examples), float(len(examples)))}, douts
