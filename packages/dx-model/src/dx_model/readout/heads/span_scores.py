"""Scorers of whole spans: biaffine (start and end interact), and enumeration of spans with a class for each."""
import numpy as np

from ...below import cross_entropy_backward, cross_entropy_forward, embedding_backward, matmul
from ..errors import require
from .answers import admissible_spans
from .base import IGNORED, Linear, LocalLoss, f32, int32
from .labels import LabelMap


def _vector(name, array, shape):
    require(isinstance(array, np.ndarray) and array.dtype == f32 and array.shape == shape and array.flags.c_contiguous,
            name, getattr(array, "shape", type(array).__name__), f"a C-contiguous float32 array {shape}")
    return array


def admitted_spans(context, max_length: int) -> np.ndarray:
    """(S, S) uint8: 1 where the span from row s to row e is admissible."""
    context = np.asarray(context, bool)
    s = np.arange(len(context))
    length = s[None, :] - s[:, None] + 1
    return np.ascontiguousarray(context[:, None] & context[None, :] & (length >= 1) & (length <= max_length), np.uint8)


class BiaffineHead:
    """score[s, e] = x[s]^T U y[e] + a . x[s] + b . y[e] + c, over the rows of one example; x, y are its start and end
    views (equal or projected); softmax over the admissible spans.

    Parameters
    ----------
    interaction : float32 (D, D), U · start, end : (D,), a and b · bias : (1,), c
    max_length : rows that a span may have
    """

    kind = "biaffine"

    def __init__(self, interaction, start, end, bias, max_length: int):
        d = len(start)
        self.interaction = _vector("head.interaction", interaction, (d, d))
        self.start, self.end = _vector("head.start", start, (d,)), _vector("head.end", end, (d,))
        self.bias = _vector("head.bias", bias, (1,))
        require(isinstance(max_length, int) and max_length > 0, "output.max_length", max_length, "1 or more")
        self.max_length = max_length

    def parameters(self) -> dict:
        return {"interaction": self.interaction, "start": self.start, "end": self.end, "bias": self.bias}

    def forward(self, x, y):
        """(scores (S, S) float32, what backward needs): (((x U) y^T + a x) + b y) + c, each rounded by itself."""
        x, y = (np.ascontiguousarray(v, f32) for v in (x, y))
        require(x.ndim == 2 and x.shape == y.shape and x.shape[1] == len(self.start), "rows.shape", (x.shape, y.shape),
                f"(S, {len(self.start)}) twice")
        xu, s = np.empty_like(x), np.empty((len(x), len(x)), f32)
        matmul(x, self.interaction, xu)
        matmul(xu, y, s, transpose_b=True)
        a, b = np.empty((len(x), 1), f32), np.empty((len(x), 1), f32)
        matmul(x, self.start[:, None], a)
        matmul(y, self.end[:, None], b)
        return ((s + a) + b[:, 0]) + self.bias[0], (x, y, xu)

    def loss(self, scores, target, context) -> LocalLoss:
        """-log softmax over the admissible spans at target (first, last), None: not counted."""
        flat, place, admit = self._flat(scores, target, context)
        return LocalLoss(*cross_entropy_forward(flat, place, None, admit))

    def _flat(self, scores, target, context):
        n = len(scores)
        admit = admitted_spans(context, self.max_length)
        if target is not None:
            require(0 <= target[0] < n and 0 <= target[1] < n and admit[tuple(target)], "target", target,
                    f"an admissible span of at most {self.max_length} rows of the context")
        place = np.array([IGNORED if target is None else target[0] * n + target[1]], np.int32)
        return np.ascontiguousarray(scores, f32).reshape(1, n * n), place, admit.reshape(1, n * n)

    def backward(self, scores, target, context, saved, *, scale=1.0, denominator=None):
        """(dx, dy, gradients of the parameters)."""
        x, y, xu = saved
        flat, place, admit = self._flat(scores, target, context)
        d = np.empty(flat.shape, f32)
        cross_entropy_backward(flat, place, None, admit, d, scale=scale, denominator=denominator)
        d = d.reshape(len(x), len(x))
        ones = np.ones((len(x), 1), f32)
        by_start, by_end = np.empty((len(x), 1), f32), np.empty((len(x), 1), f32)
        matmul(d, ones, by_start)
        matmul(d, ones, by_end, transpose_a=True)
        dxu, dy, dx, du = np.empty_like(x), np.empty_like(y), np.empty_like(x), np.empty_like(self.interaction)
        matmul(d, y, dxu)
        matmul(d, xu, dy, transpose_a=True)
        matmul(dxu, self.interaction, dx, transpose_b=True)
        matmul(x, dxu, du, transpose_a=True)
        da, db, dc = np.empty((x.shape[1], 1), f32), np.empty((x.shape[1], 1), f32), np.empty((1, 1), f32)
        matmul(x, by_start, da, transpose_a=True)
        matmul(y, by_end, db, transpose_a=True)
        matmul(by_start, ones, dc, transpose_a=True)
        gradients = {"interaction": du, "start": da[:, 0].copy(), "end": db[:, 0].copy(), "bias": dc[0]}
        return dx + by_start * self.start, dy + by_end * self.end, gradients

    def best(self, scores, context, most: int = 1):
        """The best admissible spans: (score, first, last)."""
        return admissible_spans(None, None, np.ascontiguousarray(scores, f32), context, self.max_length, most)


class SpanEnumerationHead:
    """A class for every admissible span: z = W_s h[first] + W_e h[last] + width[last - first] + bias.

    Parameters
    ----------
    labels : LabelMap, its first name is "none": the class of what is no entity
    start, end : float32 (C, D) · widths : (max_length, C), a learned level for each length · bias : (C,)
    """

    kind = "span_enumeration"

    def __init__(self, labels: LabelMap, start, end, widths, bias):
        self.labels, c = labels, len(labels)
        require(labels.names[0] == "none", "output.labels[0]", labels.names[0], "none: the class of no entity")
        self.start, self.end = Linear(start, bias, "head.start"), Linear(end, np.zeros(len(bias), f32), "head.end")
        require(start.shape == end.shape and len(start) == c, "head.start.shape", (start.shape, end.shape),
                f"{c} rows in both")
        require(isinstance(widths, np.ndarray) and widths.dtype == f32 and widths.ndim == 2 and widths.shape[1] == c
                and len(widths) > 0, "head.widths.shape", getattr(widths, "shape", None), f"(max_length, {c}) float32")
        self.widths = widths

    @property
    def max_length(self) -> int:
        return len(self.widths)

    def parameters(self) -> dict:
        return {"start": self.start.weight, "end": self.end.weight, "widths": self.widths, "bias": self.start.bias}

    def spans(self, context) -> np.ndarray:
        """(N, 2) int32 admissible spans in order of (first, last)."""
        return np.ascontiguousarray(np.argwhere(admitted_spans(context, self.max_length)), np.int32)

    def forward(self, hidden, spans) -> np.ndarray:
        """(N, C) logits of spans over hidden (S, D): ((W_s h + bias)[first] + (W_e h)[last]) + widths[length - 1]."""
        a, b, length = self.start.forward(hidden), self.end.forward(hidden), spans[:, 1] - spans[:, 0]
        require(not len(length) or 0 <= length.min() and length.max() < self.max_length, "spans",
                None if not len(length) else (int(length.min()) + 1, int(length.max()) + 1),
                f"lengths in 1..{self.max_length}")
        return (a[spans[:, 0]] + b[spans[:, 1]]) + self.widths[length]

    @staticmethod
    def loss(logits, targets) -> LocalLoss:
        """targets (N,): the class of each span, -1: not counted."""
        return LocalLoss(*cross_entropy_forward(np.ascontiguousarray(logits, f32),
                                                int32("targets", targets, (len(logits),))))

    def backward(self, logits, targets, hidden, spans, *, scale=1.0, denominator=None):
        """(dhidden (S, D), gradients of the parameters); spans add to a row in their order."""
        logits = np.ascontiguousarray(logits, f32)
        d = np.empty(logits.shape, f32)
        cross_entropy_backward(logits, int32("targets", targets, (len(d),)), None, None, d, scale=scale,
                               denominator=denominator)
        n, c = len(hidden), len(self.labels)
        da, db, dwidths = np.empty((n, c), f32), np.empty((n, c), f32), np.empty_like(self.widths)
        for at, ids in ((da, spans[:, 0]), (db, spans[:, 1]), (dwidths, spans[:, 1] - spans[:, 0])):
            embedding_backward(d, np.ascontiguousarray(ids, np.int32), at)
        dx, by_start = self.start.backward(da, hidden)
        dy, by_end = self.end.backward(db, hidden)
        return dx + dy, {"start": by_start["weight"], "end": by_end["weight"], "widths": dwidths,
                         "bias": by_start["bias"]}

    def entities(self, logits, spans) -> list[tuple[str, int, int, float]]:
        """(label, first, last, margin over "none") of spans whose best class is not none, none overlapping another.

        Taken greedily by the margin; of equal margins the earlier first row, then the earlier last row.
        """
        wanted = []
        for z, (first, last) in zip(np.asarray(logits, np.float64), spans.tolist()):
            c = int(np.argmax(z))
            if c:
                wanted.append((-float(z[c] - z[0]), first, last, self.labels.names[c]))
        taken, found = set(), []
        for margin, first, last, label in sorted(wanted):
            if not any(t in taken for t in range(first, last + 1)):
                taken.update(range(first, last + 1))
                found.append((label, first, last, -margin))
        return sorted(found, key=lambda x: x[1:3])
