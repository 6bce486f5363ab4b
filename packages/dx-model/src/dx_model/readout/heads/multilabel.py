"""Multilabel classification: independent labels, each with its own weight and threshold."""
import numpy as np

from ...below import binary_cross_entropy_backward, binary_cross_entropy_forward
from ..errors import require
from ..scores import Scores, ScoreType, sigmoid
from .base import Dropout, Linear, LocalLoss, f32, int32
from .labels import LabelMap


class MultilabelHead:
    """Logits z = W r + b, probability sigmoid(z) for each label by itself: they need not sum to one.

    Parameters
    ----------
    labels : LabelMap
    weight, bias : float32 (C, D_r), (C,)
    thresholds : one for each label, in the labels' order: a release without them is refused, no 0.5 is assumed
    positive, negative : float64 (C,) weights of the two sides, or None (ones)
    gamma : focal exponent, 0 for plain cross-entropy
    """

    kind = "multilabel"

    def __init__(self, labels: LabelMap, weight, bias, thresholds, *, positive=None, negative=None, gamma: float = 0.0,
                 dropout: float = 0.0):
        self.labels, self.linear, self.dropout = labels, Linear(weight, bias), Dropout(dropout)
        require(self.linear.outputs == len(labels), "head.weight.shape", weight.shape,
                f"{len(labels)} rows, one for each label")
        require(thresholds is not None and len(thresholds) == len(labels), "output.thresholds",
                None if thresholds is None else len(thresholds), f"{len(labels)} thresholds, one for each label")
        self.thresholds = tuple(float(t) for t in thresholds)
        for j, t in enumerate(self.thresholds):
            require(0 <= t <= 1, f"output.thresholds[{j}]", t, "a probability")
        self.positive = None if positive is None else np.ascontiguousarray(positive, np.float64)
        self.negative = None if negative is None else np.ascontiguousarray(negative, np.float64)
        self.gamma = float(gamma)

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def with_labels(self, labels: LabelMap) -> "MultilabelHead":
        """The same head in another order: rows, thresholds and weights move with the names."""
        rows = labels.rows_from(self.labels)
        return MultilabelHead(
            labels, np.ascontiguousarray(self.linear.weight[rows]), np.ascontiguousarray(self.linear.bias[rows]),
            [self.thresholds[i] for i in rows], gamma=self.gamma, dropout=self.dropout.rate,
            positive=None if self.positive is None else self.positive[rows],
            negative=None if self.negative is None else self.negative[rows])

    def forward(self, r, *, training=False, factors=None) -> np.ndarray:
        return self.linear.forward(self.dropout.apply(self.linear.rows(r), training, factors))

    def scores(self, r, release: str) -> Scores:
        return Scores(self.forward(r), ScoreType.LOGIT, release, self.labels.names)

    def decide(self, scores: Scores) -> np.ndarray:
        """(B, C) bool: zero, one or many labels an item: probability at least the label's own threshold.

        Logits pass through sigmoid; softmax probabilities are refused.
        """
        require(scores.axis == self.labels.names, "scores.axis", scores.axis, str(self.labels.names))
        if scores.type is ScoreType.LOGIT:
            scores = sigmoid(scores)
        if scores.type is not ScoreType.CALIBRATED_PROBABILITY:
            scores.expect(ScoreType.SIGMOID_PROBABILITY)
        return scores.values >= np.array(self.thresholds)

    def loss(self, logits, targets) -> LocalLoss:
        """targets (B, C): 0, 1, or -1 (not known). The denominator is how many are known."""
        logits = np.ascontiguousarray(logits, f32)
        return LocalLoss(*binary_cross_entropy_forward(logits, int32("targets", targets, logits.shape), self.positive,
                                                       self.negative, gamma=self.gamma))

    def backward(self, logits, targets, r, *, scale=1.0, denominator=None, factors=None):
        """(dr, gradients of the parameters)."""
        logits, x = np.ascontiguousarray(logits, f32), self.linear.rows(r)
        d = np.empty(logits.shape, f32)
        binary_cross_entropy_backward(logits, int32("targets", targets, logits.shape), self.positive, self.negative, d,
                                      gamma=self.gamma, scale=scale, denominator=denominator)
        dr, gradients = self.linear.backward(d, x if factors is None else x * np.asarray(factors, f32))
        return Dropout.backward(dr, factors), gradients
