"""The geometry of embeddings: unit rows with their Jacobian, and the three pair scores (docs/readout.md, 0x05)."""
from dataclasses import dataclass

import numpy as np

from ..below import l2_normalize_backward, l2_normalize_forward, matmul, squared_distance_backward, \
    squared_distance_forward
from .errors import require
from .scores import Scores, ScoreType

f32 = np.float32


def _rows(name, x):
    x = np.ascontiguousarray(x, f32)
    require(x.ndim == 2, f"{name}.shape", x.shape, "(rows, d)")
    return x


@dataclass(frozen=True)
class Normalization:
    """L2 normalisation as part of a readout.

    epsilon : 0 refuses a row without direction; a number above 0 divides shorter rows by it instead (a zero row stays
        zero): another function, so it is on record
    """

    epsilon: float = 0.0

    def forward(self, x):
        """(unit rows (n, d), norms (n,)) float32; ValueError for a zero row with epsilon 0."""
        x = _rows("embeddings", x)
        y, norms = np.empty_like(x), np.empty(len(x), f32)
        l2_normalize_forward(x, y, norms, epsilon=self.epsilon)
        return y, norms

    def backward(self, dy, y, norms):
        """dx: the part of dy across y, divided by the norm; the part along y does not come back."""
        dx = np.empty_like(y)
        l2_normalize_backward(_rows("dy", dy), y, norms, dx, epsilon=self.epsilon)
        return dx


@dataclass(frozen=True)
class PairScore:
    """Scores of every query against every document.

    kind : "dot", "cosine" or "squared_l2"; cosine is the dot of rows that `normalization` made of length 1, so cosine
        and the dot of normalised rows are the same bytes
    normalization : of the cosine
    """

    kind: str
    normalization: Normalization = Normalization()

    def __post_init__(self):
        require(self.kind in ("dot", "cosine", "squared_l2"), "score.kind", self.kind, "dot, cosine or squared_l2")

    @property
    def type(self) -> ScoreType:
        return {"dot": ScoreType.DOT, "cosine": ScoreType.COSINE, "squared_l2": ScoreType.SQUARED_L2}[self.kind]

    def forward(self, queries, documents):
        """((Q, N) float32 scores, what backward needs)."""
        q, d = _rows("queries", queries), _rows("documents", documents)
        require(q.shape[1] == d.shape[1], "documents.shape", d.shape, f"width {q.shape[1]}, as the queries")
        norms = None
        if self.kind == "cosine":
            (q, q_norms), (d, d_norms) = self.normalization.forward(q), self.normalization.forward(d)
            norms = q_norms, d_norms
        s = np.empty((len(q), len(d)), f32)
        if self.kind == "squared_l2":
            squared_distance_forward(q, d, s)
        else:
            matmul(q, d, s, transpose_b=True)
        return s, (q, d, norms)

    def backward(self, ds, saved):
        """(dqueries, ddocuments) float32."""
        (q, d, norms), ds = saved, np.ascontiguousarray(ds, f32)
        dq, dd = np.empty_like(q), np.empty_like(d)
        if self.kind == "squared_l2":
            squared_distance_backward(ds, q, d, dq, dd)
            return dq, dd
        matmul(ds, d, dq)
        matmul(ds, q, dd, transpose_a=True)
        if self.kind == "cosine":
            dq, dd = self.normalization.backward(dq, q, norms[0]), self.normalization.backward(dd, d, norms[1])
        return dq, dd

    def scores(self, queries, documents, release: str, documents_axis=None) -> Scores:
        """Typed scores; `normalized` says whether both sides had unit rows."""
        s, _ = self.forward(queries, documents)
        return Scores(s, self.type, release, documents_axis, normalized=self.kind == "cosine")


def squared_l2_of_cosine(cosine: float) -> float:
    """The squared L2 distance that unit rows of this cosine have: 2 - 2 cosine. A threshold cosine >= c is distance <=
    that."""
    require(-1.0 <= cosine <= 1.0, "cosine", cosine, "-1..1")
    return 2.0 - 2.0 * cosine


def unit_rows(x, *, within: float = 2.0**-18) -> bool:
    """Whether every row's squared length is 1 within so much (binary64, ascending)."""
    for row in np.asarray(x, np.float64):
        total = 0.0
        for v in row.tolist():
            total = total + v * v
        if not abs(total - 1.0) <= within:
            return False
    return True
