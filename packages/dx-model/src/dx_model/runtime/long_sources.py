"""The five policies for sources that are longer than a model reads. Each says what it keeps; none is a default."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..readout.errors import require
from ..readout.interaction import LateInteractionRelease, record_digest
from ..readout.interaction_late import TokenVectors
from ..readout.pooling import Pooling, check_parameters
from ..readout.rows import RowTable
from .overlap import late_rows, overlap_mean, source_rows
from .windows import WindowPolicy, WindowRecord, cut_windows, take_rows


@dataclass(frozen=True, eq=False)
class SourcePlan:
    """What of a source is evaluated.

    windows : the pieces, in order · rows : content tokens of the source · omitted : half-open intervals of them that no
    window holds: evidence that nothing later can recover
    """

    windows: tuple[WindowRecord, ...]
    rows: int
    omitted: tuple[tuple[int, int], ...] = ()

    def require_complete(self) -> "SourcePlan":
        """The plan, or a ReadoutError when evidence was left out."""
        require(not self.omitted, "source.omitted", self.omitted, "nothing: every token in a window")
        return self


def _content(table, sequence):
    rows = np.flatnonzero(table.attention & ~table.special & (table.sequence == sequence))
    require(len(rows), "rows.sequence", sequence, "a sequence with rows")
    return rows


@dataclass(frozen=True)
class HardTruncation:
    """One prefix ("start"), one suffix ("end"), or both ("ends", the larger half first) of a source; the rest is gone.

    rows : most rows, inserted ones included
    """

    rows: int
    keep: str
    kind = "hard_truncation"
    retains = "one prefix, suffix or both"

    def __post_init__(self):
        require(self.keep in ("start", "end", "ends"), "long_source.keep", self.keep, "start, end or ends")

    def digest(self) -> str:
        return record_digest({"kind": self.kind, "rows": self.rows, "keep": self.keep})

    def plan(self, source_id: str, table: RowTable, release: str, *, sequence: int = 0) -> SourcePlan:
        rows = _content(table, sequence)
        n, room = len(rows), self.rows - (len(table) - len(rows))
        require(room > 0, "long_source.rows", self.rows, f"more than the {len(table) - n} rows that stay")
        drop = max(n - room, 0)
        at = {"start": n - drop, "end": 0, "ends": (n - drop + 1) // 2}[self.keep]
        kept = np.ones(len(table), bool)
        kept[rows[at:at + drop]] = False
        whole = WindowPolicy(len(table), 0, "first", "one piece")
        record, = cut_windows(source_id, take_rows(table, np.flatnonzero(kept)), whole, release, sequence=sequence)
        return SourcePlan((record,), n, ((at, at + drop),) if drop else ())

    @staticmethod
    def reduce(plan: SourcePlan, outputs: Sequence):
        """The one piece's output."""
        output, = outputs
        return output


class _Windowed:
    def plan(self, source_id: str, table: RowTable, release: str, *, sequence: int = 0) -> SourcePlan:
        return SourcePlan(tuple(cut_windows(source_id, table, self.windows, release, sequence=sequence)),
                          len(_content(table, sequence)))


@dataclass(frozen=True)
class OverlappingWindows(_Windowed):
    """Every token in one window or more: context around it is that of its window."""

    windows: WindowPolicy
    kind = "overlapping_windows"
    retains = "local context around all tokens"

    def digest(self) -> str:
        return record_digest({"kind": self.kind, "windows": self.windows.to_json()})

    def reduce(self, plan: SourcePlan, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """(tokens, width) rows of their owners, or the (width,) mean under "multiplicity"."""
        reduce = overlap_mean if self.windows.owner == "multiplicity" else source_rows
        return reduce(plan.windows, outputs)


@dataclass(frozen=True, eq=False)
class HierarchicalReadout(_Windowed):
    """One vector a window, then a second readout over the windows: a model of its own, named by its parameters' digest.

    pooling : over the windows' vectors; parameters : its tensors, none for a declared rule without any
    aggregator : digest of what was trained (or "fixed" when nothing was)
    """

    windows: WindowPolicy
    pooling: Pooling
    aggregator: str
    parameters: dict | None = None
    kind = "hierarchical_readout"
    retains = "one vector a window"

    def __post_init__(self):
        require(bool(self.aggregator) and (self.aggregator == "fixed") == (not self.parameters),
                "long_source.aggregator", self.aggregator, "the digest of its parameters, or fixed when it has none")

    def digest(self) -> str:
        return record_digest({"kind": self.kind, "windows": self.windows.to_json(), "aggregator": self.aggregator,
                              "pooling": [mode.name for mode in self.pooling.modes]})

    def reduce(self, plan: SourcePlan, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """(width,) from one float32 vector a window."""
        vectors = np.array(outputs, np.float32)
        require(vectors.ndim == 2 and len(vectors) == len(plan.windows), "windows.vectors", vectors.shape,
                f"({len(plan.windows)}, width)")
        parameters = check_parameters(self.parameters, self.pooling.parameter_shapes(vectors.shape[1]))
        return self.pooling.forward(vectors[None], np.ones((1, len(vectors)), bool), parameters).vectors[0]


@dataclass(frozen=True)
class LateInteractionRows(_Windowed):
    """Selected rows of all windows as one document of late interaction; `occurrences` as `late_rows` has it."""

    windows: WindowPolicy
    release: LateInteractionRelease
    occurrences: str
    kind = "late_interaction"
    retains = "many row vectors"

    def digest(self) -> str:
        return record_digest({"kind": self.kind, "windows": self.windows.to_json(), "release": self.release.digest(),
                              "occurrences": self.occurrences})

    def reduce(self, plan: SourcePlan, outputs: Sequence[np.ndarray]) -> TokenVectors:
        """Token vectors from projected rows of every window; places are source tokens."""
        return late_rows(plan.windows, outputs, self.release, self.occurrences)


@dataclass(frozen=True)
class LongContext:
    """One longer sequence through a model that has the positions for it: another model release, not the short one with
    a larger number.

    rows : its positions · backbone : its digest, which the release evaluated under must have been made for
    """

    rows: int
    backbone: str
    kind = "long_context"
    retains = "one longer context"

    def digest(self) -> str:
        return record_digest({"kind": self.kind, "rows": self.rows, "backbone": self.backbone})

    def plan(self, source_id: str, table: RowTable, release: str, *, backbone: str, sequence: int = 0) -> SourcePlan:
        """backbone : digest of the one that will run."""
        require(backbone == self.backbone, "long_source.backbone", backbone, f"{self.backbone}: the long-context one")
        require(len(table) <= self.rows, "long_source.rows", len(table), f"{self.rows} or fewer: also this one ends")
        whole = WindowPolicy(self.rows, 0, "first", "one piece")
        return SourcePlan(tuple(cut_windows(source_id, table, whole, release, sequence=sequence)),
                          len(_content(table, sequence)))

    @staticmethod
    def reduce(plan: SourcePlan, outputs: Sequence):
        output, = outputs
        return output


POLICIES = {p.kind: p for p in (HardTruncation, OverlappingWindows, HierarchicalReadout, LateInteractionRows,
                                LongContext)}
