"""Token classification: the row axis stays, and only rows that bear a target count."""
import numpy as np

from ...below import cross_entropy_backward, cross_entropy_forward
from ..errors import ReadoutError, require
from ..scores import Scores, ScoreType
from .base import IGNORED, Dropout, Linear, LocalLoss, f32, int32, mask8
from .labels import LabelMap


def gathered(hidden, mask):
    """(rows (N, D) of hidden (B, S, D) where mask is true, example by example in row order; the mask as bool)."""
    hidden = np.asarray(hidden)
    require(hidden.ndim == 3, "hidden.shape", hidden.shape, "(B, S, D)")
    mask = mask8("mask", mask, hidden.shape[:2]).astype(bool)
    return np.ascontiguousarray(hidden[mask], f32), mask


def scattered(rows, mask):
    """(B, S, width): the rows where the mask is true, zeros elsewhere."""
    out = np.zeros((*mask.shape, rows.shape[-1]), f32)
    out[mask] = rows
    return out


class TokenHead:
    """Z[b, s] = W H[b, s] + b, loss over label-bearing rows: sum of lambda * nll / sum of lambda.

    Rows are gathered in order before every product, so padding, its side and what stands in it change no bit.

    Parameters
    ----------
    labels : LabelMap
    weight, bias : float32 (C, D), (C,)
    """

    kind = "token_classification"

    def __init__(self, labels: LabelMap, weight, bias, dropout: float = 0.0):
        self.labels, self.linear, self.dropout = labels, Linear(weight, bias), Dropout(dropout)
        require(self.linear.outputs == len(labels), "head.weight.shape", weight.shape,
                f"{len(labels)} rows, one for each label")

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias}

    def with_labels(self, labels: LabelMap) -> "TokenHead":
        rows = labels.rows_from(self.labels)
        return TokenHead(labels, np.ascontiguousarray(self.linear.weight[rows]),
                         np.ascontiguousarray(self.linear.bias[rows]), self.dropout.rate)

    def forward(self, hidden, valid, *, training=False, factors=None) -> np.ndarray:
        """Logits (B, S, C) of hidden (B, S, D); zeros where not valid. factors: (N, D), valid rows in order."""
        rows, valid = gathered(hidden, valid)
        return scattered(self.linear.forward(self.dropout.apply(rows, training, factors)), valid)

    def _counted(self, logits, targets, label_mask):
        """(logits of the counted rows, their targets, mask); a mask that disagrees with the targets is refused."""
        logits = np.asarray(logits, f32)
        require(logits.ndim == 3 and logits.shape[2] == len(self.labels), "logits.shape", logits.shape,
                f"(B, S, {len(self.labels)})")
        mask = mask8("label_mask", label_mask, logits.shape[:2]).astype(bool)
        targets = int32("targets", targets, logits.shape[:2])
        for b, s in np.argwhere(mask & (targets == IGNORED)):
            raise ReadoutError(f"targets[{b}, {s}]", IGNORED, "a label: label_mask says the row bears one")
        for b, s in np.argwhere(~mask & (targets != IGNORED)):
            raise ReadoutError(f"targets[{b}, {s}]", int(targets[b, s]), "-1: label_mask says the row bears no label")
        return np.ascontiguousarray(logits[mask]), np.ascontiguousarray(targets[mask]), mask

    def loss(self, logits, targets, label_mask) -> LocalLoss:
        """targets (B, S), -1 exactly where label_mask (B, S) is false; the denominator counts label-bearing rows."""
        rows, targets, _ = self._counted(logits, targets, label_mask)
        return LocalLoss(*cross_entropy_forward(rows, targets))

    def backward(self, logits, targets, label_mask, hidden, *, scale=1.0, denominator=None, factors=None):
        """(dhidden (B, S, D), zeros in rows without a label; gradients of the parameters).

        factors: of the label-bearing rows in order, as forward used them.
        """
        rows, targets, mask = self._counted(logits, targets, label_mask)
        d = np.empty(rows.shape, f32)
        cross_entropy_backward(rows, targets, None, None, d, scale=scale, denominator=denominator)
        x, _ = gathered(hidden, mask)
        dx, gradients = self.linear.backward(d, x if factors is None else x * np.asarray(factors, f32))
        return scattered(Dropout.backward(dx, factors), mask), gradients

    def scores(self, logits, release: str) -> Scores:
        return Scores(logits, ScoreType.LOGIT, release, self.labels.names)
