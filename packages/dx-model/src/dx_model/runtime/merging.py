"""One example's readout over several workers: states that merge to the same bits in any grouping and any order.

The rule: contextual rows exist already; each selected row is in exactly one shard; sums are exact (exact_sums), so no
merge rounds; the softmax state is made after all shards agreed on the largest score (maxima merge exactly). A state is
rounded once, by `finish`. What a worker may not send is a mean, a local softmax, or anything else already divided.
"""
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..below import exp32, ieee_mode, pool_max_forward
from ..readout.errors import require
from .exact_sums import MOST_TERMS, UNIT, carried, deposit, round_quotient, round_quotients, wholes


def _shard(x, rows):
    """(x float32 (n, width), rows int64 (n,)): rows ascending, all finite."""
    x, rows = np.asarray(x), np.asarray(rows)
    require(x.ndim == 2 and x.dtype == np.float32 and len(x) > 0, "shard.values", (x.shape, x.dtype.name),
            "float32 (rows, width), one row at least")
    require(rows.shape == x.shape[:1] and rows.dtype.kind in "iu", "shard.rows", rows.shape,
            f"({len(x)},) whole numbers")
    rows = rows.astype(np.int64)
    require(rows[0] >= 0 and (rows[1:] > rows[:-1]).all(), "shard.rows", rows.tolist()[:8],
            "the rows' places in the source, ascending")
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    require(not len(bad), "shard.values", {"rows": rows[bad[:3]].tolist()}, "finite numbers")
    return np.ascontiguousarray(x), rows


def _spans(rows):
    """Sorted half-open intervals of ascending places."""
    cuts = np.flatnonzero(rows[1:] != rows[:-1] + 1) + 1
    return tuple((int(part[0]), int(part[-1]) + 1) for part in np.split(rows, cuts))


def _joined(a, b):
    """Sorted, merged intervals of both; refused when they share a row."""
    spans, out = sorted((*a, *b)), []
    for begin, end in spans:
        require(not out or out[-1][1] <= begin, "shard.rows", (begin, end), "rows that no other shard has")
        if out and out[-1][1] == begin:
            out[-1] = out[-1][0], end
        else:
            out.append((begin, end))
    return tuple(out)


@dataclass(frozen=True, eq=False)
class _State:
    """id : stable id of the example · release : of its rows · spans : rows that are in, half-open intervals"""

    id: str
    release: str
    spans: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """Rows that are in."""
        total = 0
        for begin, end in self.spans:
            total += end - begin
        return total

    def _merge(self, other):
        """Intervals of both; refused unless both are states of one kind, example and release."""
        require(type(other) is type(self), "shard", type(other).__name__,
                f"{type(self).__name__}: a vector that a worker divided already cannot be merged")
        for name in ("id", "release"):
            require(getattr(self, name) == getattr(other, name), f"shard.{name}", getattr(other, name),
                    repr(getattr(self, name)))
        return _joined(self.spans, other.spans)

    def _complete(self, rows):
        """ReadoutError unless exactly these rows are in (a count, or places)."""
        want = ((0, rows),) if isinstance(rows, int) else _spans(np.asarray(rows, np.int64))
        require(self.spans == want, "shard.rows", self.spans, f"{want}: every selected row, once")


@dataclass(frozen=True, eq=False)
class SumState(_State):
    """Exact sum and count of the selected rows. limbs : int64 (9, width), units of 2^-149, base 2^32."""

    limbs: np.ndarray

    @classmethod
    def of(cls, id_: str, release: str, values, rows) -> "SumState":
        """values float32 (n, width); rows (n,) their places in the source, ascending."""
        x, rows = _shard(values, rows)
        require(len(x) <= MOST_TERMS, "shard.rows", len(x), f"{MOST_TERMS} or fewer")
        return cls(id_, release, _spans(rows), carried(deposit(x)))

    def merge(self, other: "SumState") -> "SumState":
        return SumState(self.id, self.release, self._merge(other), carried(self.limbs + other.limbs))

    def finish(self, rows) -> np.ndarray:
        """(width,) float32: the mean, the exact quotient rounded once. rows : how many there are, or their places."""
        self._complete(rows)
        return round_quotients(self.limbs, self.count)


@dataclass(frozen=True, eq=False)
class MaxState(_State):
    """Channel by channel the largest value, and the place of the row that has it: of equals (+0 and -0 among them) the
    lowest place."""

    values: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, id_: str, release: str, values, rows) -> "MaxState":
        x, rows = _shard(values, rows)
        y, argmax = np.empty((1, x.shape[1]), np.float32), np.empty((1, x.shape[1]), np.int32)
        pool_max_forward(x, None, np.array([0, len(x)]), y, argmax)
        return cls(id_, release, _spans(rows), y[0], rows[argmax[0]])

    def merge(self, other: "MaxState") -> "MaxState":
        spans = self._merge(other)
        theirs = (other.values > self.values) | ((other.values == self.values) & (other.owners < self.owners))
        return MaxState(self.id, self.release, spans, np.where(theirs, other.values, self.values),
                        np.where(theirs, other.owners, self.owners))

    def finish(self, rows) -> tuple[np.ndarray, np.ndarray]:
        """(values (width,) float32, owners (width,) int64): the bits of the pool "max"."""
        self._complete(rows)
        return self.values, self.owners


@dataclass(frozen=True, eq=False)
class SoftmaxState(_State):
    """Attention pooling under one global maximum: weight e = exp32(score - maximum), exact sums of e and of e * value.

    maximum : float32; states under different maxima are refused, since moving one to the other's rounds
    """

    maximum: float
    mass: np.ndarray
    limbs: np.ndarray

    @classmethod
    @ieee_mode()
    def of(cls, id_: str, release: str, scores, values, rows, maximum: float) -> "SoftmaxState":
        """scores float32 (n,), finite; values (n, width); maximum : `global_maximum` of all shards' largest."""
        x, rows = _shard(values, rows)
        scores, maximum = np.ascontiguousarray(scores), np.float32(maximum)
        require(scores.shape == (len(x),) and scores.dtype == np.float32 and np.isfinite(scores).all(), "shard.scores",
                (scores.shape, scores.dtype.name), f"float32 ({len(x)},), finite")
        require((scores <= maximum).all(), "shard.maximum", float(maximum),
                f"{float(scores.max())} or more: the largest of all shards")
        weights = np.empty_like(scores)
        exp32(scores - maximum, weights)
        terms = weights[:, None] * x
        return cls(id_, release, _spans(rows), float(maximum), carried(deposit(weights[:, None])),
                   carried(deposit(terms)))

    def merge(self, other: "SoftmaxState") -> "SoftmaxState":
        spans = self._merge(other)
        require(self.maximum == other.maximum, "shard.maximum", other.maximum,
                f"{self.maximum}: all shards agree on it before they make their state")
        return SoftmaxState(self.id, self.release, spans, self.maximum, carried(self.mass + other.mass),
                            carried(self.limbs + other.limbs))

    def finish(self, rows) -> np.ndarray:
        """(width,) float32: sum of e * value over sum of e, the exact quotient rounded once."""
        self._complete(rows)
        mass, = wholes(self.mass)
        return np.array([round_quotient(n << -UNIT, mass) for n in wholes(self.limbs)], np.float32)


def global_maximum(largest: Iterable[float]) -> float:
    """The maximum of the shards' largest scores, which no grouping changes."""
    largest = [float(v) for v in largest]
    require(largest and all(v - v == 0 for v in largest), "shard.scores", largest, "finite numbers, one at least")
    return max(largest)


def merge_all(states: Iterable):
    """All states merged, in the order given; any other order gives the same bits."""
    states = list(states)
    require(states, "shards", 0, "at least one")
    total = states[0]
    require(isinstance(total, _State), "shard", type(total).__name__, "a state: SumState, MaxState or SoftmaxState")
    for state in states[1:]:
        total = total.merge(state)
    return total
