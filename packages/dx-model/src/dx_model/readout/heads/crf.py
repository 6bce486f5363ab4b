"""Token classification by a linear-chain CRF: whole taggings compete, with learned transitions."""
import numpy as np

from ...below import crf_backward, crf_decode, crf_forward, crf_marginals
from ..errors import require
from ..scores import Scores, ScoreType
from .base import Dropout, Linear, LocalLoss, f32, int32
from .labels import LabelMap
from .tagging import TagScheme
from .tokens import gathered, scattered


class CrfHead:
    """Emissions W H + b and transitions, first, last; loss -log p(tagging) for each sequence.

    Parameters
    ----------
    labels : LabelMap of the tags
    weight, bias : float32 (C, D), (C,)
    transitions : float32 (C, C) from row to column; first, last (C,)
    scheme : TagScheme over the same labels, or None. With one, illegal taggings are outside of the partition and of
        decoding; without one, what was learned alone speaks
    """

    kind = "crf"

    def __init__(self, labels: LabelMap, weight, bias, transitions, first, last, scheme: TagScheme | None = None,
                 dropout: float = 0.0):
        self.labels, self.linear, self.dropout, self.scheme = labels, Linear(weight, bias), Dropout(dropout), scheme
        n = len(labels)
        require(self.linear.outputs == n, "head.weight.shape", weight.shape, f"{n} rows, one for each label")
        self.transitions, self.first, self.last = transitions, first, last
        for name, array, shape in (("transitions", transitions, (n, n)), ("first", first, (n,)), ("last", last, (n,))):
            require(isinstance(array, np.ndarray) and array.dtype == f32 and array.shape == shape, f"head.{name}",
                    getattr(array, "shape", None), f"float32 {shape}")
        if scheme is not None:
            labels.same(scheme.labels)

    def parameters(self) -> dict:
        return {"weight": self.linear.weight, "bias": self.linear.bias, "transitions": self.transitions,
                "first": self.first, "last": self.last}

    def with_labels(self, labels: LabelMap) -> "CrfHead":
        """The same head in another order: rows of weight and bias, rows and columns of the transitions move."""
        rows = labels.rows_from(self.labels)
        scheme = None if self.scheme is None else TagScheme(self.scheme.scheme, labels)
        own = [np.ascontiguousarray(x[rows]) for x in (self.linear.weight, self.linear.bias, self.first, self.last)]
        return CrfHead(labels, own[0], own[1], np.ascontiguousarray(self.transitions[rows][:, rows]), own[2], own[3],
                       scheme, self.dropout.rate)

    def _chain(self):
        """The transitions that count: learned, plus -inf where the scheme forbids."""
        if self.scheme is None:
            return self.transitions, self.first, self.last
        return tuple(np.ascontiguousarray(rule + own, f32)
                     for rule, own in zip(self.scheme.forbidden(), (self.transitions, self.first, self.last)))

    def forward(self, hidden, chain, *, training=False, factors=None):
        """Emissions (N, C) of the chain's rows, sequences one after another, and begin (B + 1,) int32.

        hidden (B, S, D); chain (B, S) bool: the rows that bear a tag (first pieces of words, say); a sequence's chain
        joins them, whatever stands between.
        """
        rows, mask = gathered(hidden, chain)
        begin = np.zeros(len(mask) + 1, np.int32)
        for b in range(len(mask)):
            begin[b + 1] = begin[b] + np.count_nonzero(mask[b])
        return self.linear.forward(self.dropout.apply(rows, training, factors)), begin

    def loss(self, emissions, begin, targets) -> LocalLoss:
        """targets (N,): -1 is any tag (summed out); an illegal tagging is refused. The denominator counts sequences."""
        targets = int32("targets", targets, (len(emissions),))
        self._admit(targets, begin)
        return LocalLoss(*crf_forward(np.ascontiguousarray(emissions, f32), *self._chain(), targets, begin))

    def _admit(self, targets, begin):
        if self.scheme is None:
            return
        for b, e in zip(begin[:-1], begin[1:]):
            if (targets[b:e] >= 0).all() and e > b:
                self.scheme.check(targets[b:e].tolist())

    def backward(self, emissions, begin, targets, hidden, chain, *, scale=1.0, denominator=None, factors=None):
        """(dhidden (B, S, D), gradients of all five parameters)."""
        targets, rows = int32("targets", targets, (len(emissions),)), gathered(hidden, chain)
        self._admit(targets, begin)
        emissions, learned = np.ascontiguousarray(emissions, f32), self._chain()
        d = [np.empty(x.shape, f32) for x in (emissions, *learned)]
        crf_backward(emissions, *learned, targets, begin, *d, scale=scale, denominator=denominator)
        x, mask = rows
        dx, gradients = self.linear.backward(d[0], x if factors is None else x * np.asarray(factors, f32))
        gradients |= {"transitions": d[1], "first": d[2], "last": d[3]}
        return scattered(Dropout.backward(dx, factors), mask), gradients

    def decode(self, emissions, begin):
        """(tags (N,) int32, scores (B,) float64) of the best tagging of every sequence."""
        best, scores = np.empty(len(emissions), np.int32), np.empty(len(begin) - 1)
        crf_decode(np.ascontiguousarray(emissions, f32), *self._chain(), begin, scores, best)
        return best, scores

    def marginals(self, emissions, begin, release: str) -> Scores:
        """p(tag of a row | the sequence), a softmax probability that takes the whole chain into account."""
        log_partition, p = np.empty(len(begin) - 1), np.empty(np.shape(emissions))
        crf_marginals(np.ascontiguousarray(emissions, f32), *self._chain(), begin, log_partition, p)
        return Scores(p, ScoreType.SOFTMAX_PROBABILITY, release, self.labels.names, sources=("crf marginals",))
