"""Heads over pooled rows with one competition: single-label classes, and multiple choice over candidates."""
import numpy as np

from ...below import cross_entropy_backward, cross_entropy_forward
from ..errors import require
from ..scores import Scores, ScoreType
from .base import Dropout, Linear, LocalLoss, f32, int32, mask8
from .labels import LabelMap


class SingleLabelHead:
    """Logits z = W r + b over mutually exclusive labels; loss -log softmax(z)[y].

    Parameters
    ----------
    labels : LabelMap, identity of the head together with its weights
    weight, bias : float32 (C, D_r), (C,)
    dropout : rate on r, part of the head
    """

    kind = "classification"

    def __init__(self, labels: LabelMap, weight, bias, dropout: float = 0.0):
        self.labels, self.linear, self.dropout = labels, Linear(weight, bias), Dropout(dropout)
        require(self.linear.outputs == len(labels), "head.weight.shape", weight.shape,
                f"{len(labels)} rows, one for each label")

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def with_labels(self, labels: LabelMap) -> "SingleLabelHead":
        """The same head with its labels in another order: rows of weight and bias move with the names."""
        rows = labels.rows_from(self.labels)
        return SingleLabelHead(labels, np.ascontiguousarray(self.linear.weight[rows]),
                               np.ascontiguousarray(self.linear.bias[rows]), self.dropout.rate)

    def forward(self, r, *, training=False, factors=None) -> np.ndarray:
        """Logits (B, C) of pooled rows r (B, D_r)."""
        return self.linear.forward(self.dropout.apply(self.linear.rows(r), training, factors))

    def scores(self, r, release: str) -> Scores:
        return Scores(self.forward(r), ScoreType.LOGIT, release, self.labels.names)

    def loss(self, logits, targets, *, class_weight=None) -> LocalLoss:
        """Sum of w[y] * nll and of w[y] over rows with a target (-1: none)."""
        targets = int32("targets", targets, (len(logits),))
        return LocalLoss(*cross_entropy_forward(np.ascontiguousarray(logits, f32), targets, class_weight))

    def backward(self, logits, targets, r, *, class_weight=None, scale=1.0, denominator=None, factors=None):
        """(dr, gradients of the parameters): scale * w[y] / denominator * (p - onehot), through W and the dropout."""
        x = self.linear.rows(r)
        dropped = x if factors is None else x * np.asarray(factors, f32)
        d = np.empty(np.shape(logits), f32)
        cross_entropy_backward(np.ascontiguousarray(logits, f32), int32("targets", targets, (len(d),)), class_weight,
                               None, d, scale=scale, denominator=denominator)
        dr, gradients = self.linear.backward(d, dropped)
        return Dropout.backward(dr, factors), gradients


def sequence_classification(hidden, row_mask, pool, head: SingleLabelHead, targets=None, *, training=False,
                            factors=None):
    """Pool, dropout, head, and the loss when there are targets: {"logits", "loss" (LocalLoss or None), "readout"}."""
    r = pool(hidden, row_mask)
    logits = head.forward(r, training=training, factors=factors)
    loss = None if targets is None else head.loss(logits, targets)
    return {"logits": logits, "loss": loss, "readout": r}


def flatten_candidates(ids) -> np.ndarray:
    """(B, K, …) → (B * K, …): a schedule for the backbone; the candidates of an example stay neighbours, in order."""
    ids = np.asarray(ids)
    require(ids.ndim >= 2, "candidates.shape", ids.shape, "(B, K, …)")
    return ids.reshape(-1, *ids.shape[2:])


class MultipleChoiceHead:
    """One scalar for each candidate, softmax over the K candidates of an example.

    Parameters
    ----------
    weight, bias : float32 (1, D_r), (1,); shared by all candidates
    """

    kind = "multiple_choice"

    def __init__(self, weight, bias, dropout: float = 0.0):
        self.linear, self.dropout = Linear(weight, bias), Dropout(dropout)
        require(self.linear.outputs == 1, "head.weight.shape", weight.shape, "one row: a scalar for each candidate")

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def forward(self, r, examples, *, training=False, factors=None) -> np.ndarray:
        """Logits (B, K) of pooled candidates r (B * K, D_r), unflattened by `examples`.

        examples : (B * K,) id of the example that each row belongs to. The K rows of an example stand together; the
            row order is the candidate order. Rows of several examples mixed, or unequal K, are refused: independent
            rows are another objective.
        """
        x = self.dropout.apply(self.linear.rows(r), training, factors)
        ids = list(examples)
        require(len(ids) == len(x), "examples", len(ids), f"{len(x)} ids, one for each row")
        starts = [i for i in range(len(ids)) if i == 0 or ids[i] != ids[i - 1]]
        names = [ids[i] for i in starts]
        require(len(dict.fromkeys(names)) == len(names), "examples", names,
                "the candidates of an example as neighbours")
        k = len(ids) // len(starts) if starts else 0
        require(starts == list(range(0, len(ids), k or 1)), "examples", starts, f"{k} candidates for every example")
        return self.linear.forward(x).reshape(len(starts), k)

    @staticmethod
    def scores(logits, release: str, candidates) -> Scores:
        return Scores(logits, ScoreType.LOGIT, release, candidates)

    @staticmethod
    def loss(logits, targets, admit=None) -> LocalLoss:
        """targets (B,): the right candidate, -1 for none; admit (B, K) bool: candidates that are there, or None."""
        logits = np.ascontiguousarray(logits, f32)
        return LocalLoss(*cross_entropy_forward(
            logits, int32("targets", targets, logits.shape[:1]), None,
            None if admit is None else mask8("admit", admit, logits.shape)))

    def backward(self, logits, targets, r, admit=None, *, scale=1.0, denominator=None, factors=None):
        """(dr (B * K, D_r), gradients of the parameters)."""
        logits, x = np.ascontiguousarray(logits, f32), self.linear.rows(r)
        dropped = x if factors is None else x * np.asarray(factors, f32)
        d = np.empty(logits.shape, f32)
        cross_entropy_backward(logits, int32("targets", targets, logits.shape[:1]), None,
                               None if admit is None else mask8("admit", admit, logits.shape), d, scale=scale,
                               denominator=denominator)
        dr, gradients = self.linear.backward(d.reshape(-1, 1), dropped)
        return Dropout.backward(dr, factors), gradients
