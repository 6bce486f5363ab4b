"""Windows over a long source: immutable records that say which rows are whose, and the ledger that proves it."""
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..readout.errors import require
from ..readout.heads.windows import RowWindows
from ..readout.interaction import record_digest
from ..readout.rows import NONE, RowTable
from ..windows import window_id, window_owners

OWNERS = ("center", "first", "multiplicity")


@dataclass(frozen=True)
class WindowPolicy:
    """How a source that is too long is cut; part of the release.

    rows : most rows of a window, inserted ones included
    overlap : content rows that a window shares with the one before (the step is what is left, never called stride)
    owner : who speaks for a token in several windows: "center", the window where it is farthest from a cut (the first
        of equals); "first"; "multiplicity", nobody: every occurrence counts 1 / occurrences
    aggregation : the name of what is made of the windows' results
    """

    rows: int
    overlap: int
    owner: str
    aggregation: str

    def __post_init__(self):
        require(isinstance(self.rows, int) and self.rows > 0, "windows.rows", self.rows, "1 or more")
        require(isinstance(self.overlap, int) and self.overlap >= 0, "windows.overlap", self.overlap, "0 or more")
        require(self.owner in OWNERS, "windows.owner", self.owner, ", ".join(OWNERS))
        require(isinstance(self.aggregation, str) and self.aggregation, "windows.aggregation", self.aggregation,
                "the name of the aggregation: windows do not choose it")

    def to_json(self) -> dict:
        return {"rows": self.rows, "overlap": self.overlap, "owner": self.owner, "aggregation": self.aggregation}

    def digest(self) -> str:
        return record_digest(self.to_json())


@dataclass(frozen=True, eq=False)
class WindowRecord:
    """One window of a source.

    Attributes
    ----------
    source_id, window_id, index, parent_release : identity; the release is the one that the window is evaluated under
    sequence : which sequence of a pair was cut; the other one, and inserted rows, are in every window
    tokens : half-open interval of the source's content tokens
    characters : half-open interval of the source's characters, None without offsets
    rows : RowTable of the window, offsets into the whole source
    token : (S,) int64, source token of the row, -1 for rows that were not cut (inserted, other sequence)
    multiplicity : (S,) int32, windows that hold the row's token, 0 where there is none
    owned : (S,) bool, this window speaks for the row; all content rows under "multiplicity"
    left, right : content rows shared with the windows before and after
    inserted : (rows before, rows after) the content
    policy : WindowPolicy
    """

    source_id: str
    window_id: str
    index: int
    parent_release: str
    sequence: int
    tokens: tuple[int, int]
    characters: tuple[int, int] | None
    rows: RowTable
    token: np.ndarray
    multiplicity: np.ndarray
    owned: np.ndarray
    left: int
    right: int
    inserted: tuple[int, int]
    policy: WindowPolicy

    @property
    def content(self) -> np.ndarray:
        """(S,) bool: rows that were cut from the source."""
        return self.token != NONE

    def to_json(self) -> dict:
        """Everything but the table, whose ids and offsets are there."""
        return {"source_id": self.source_id, "window_id": self.window_id, "parent_release": self.parent_release,
                "sequence": self.sequence, "tokens": list(self.tokens),
                "characters": None if self.characters is None else list(self.characters),
                "token": self.token.tolist(), "multiplicity": self.multiplicity.tolist(),
                "owned": self.owned.astype(int).tolist(), "left": self.left, "right": self.right,
                "inserted": list(self.inserted), "policy": self.policy.to_json(),
                "ids": None if self.rows.ids is None else self.rows.ids.tolist(),
                "offsets": None if self.rows.offsets is None else self.rows.offsets.tolist()}

    def digest(self) -> str:
        return record_digest(self.to_json())


def take_rows(table: RowTable, index) -> RowTable:
    """The rows of a table at these places, in this order."""
    def at(array):
        if array is None:
            return None
        part = np.array(array[index])
        part.setflags(write=False)
        return part

    return RowTable(at(table.attention), at(table.special), at(table.policy), at(table.sequence), at(table.type_ids),
                    at(table.word_ids), at(table.offsets), at(table.ids))


def cut_windows(source_id: str, table: RowTable, policy: WindowPolicy, parent_release: str, *,
                sequence: int = 0) -> list[WindowRecord]:
    """The windows of a source whose rows are [rows before] content [rows after], content being one sequence in a row.

    Raises ReadoutError: the sequence has no rows, or they do not stand together; no room for content beside the rows
    that every window repeats; an overlap that leaves no step.
    """
    require(isinstance(source_id, str) and source_id, "source_id", source_id, "a text that is not empty")
    require(isinstance(parent_release, str) and parent_release, "parent_release", parent_release, "a digest")
    content = np.flatnonzero(table.attention & ~table.special & (table.sequence == sequence))
    require(len(content), "rows.sequence", sequence, "a sequence with rows")
    begin, end = int(content[0]), int(content[-1]) + 1
    require(len(content) == end - begin, f"rows.sequence[{sequence}]", content.tolist()[:8], "rows that stand together")
    fixed = len(table) - (end - begin)
    require(policy.rows > fixed, "windows.rows", policy.rows, f"more than the {fixed} rows that every window repeats")
    n = end - begin
    cuts = RowWindows(policy.rows - fixed, policy.overlap).cut(n) if n > policy.rows - fixed else [(0, n)]
    times = np.zeros(n, np.int32)
    for a, b in cuts:
        times[a:b] += 1
    owners = _owners(n, cuts, policy.owner)
    records = []
    for k, (a, b) in enumerate(cuts):
        index = np.concatenate([np.arange(begin), np.arange(begin + a, begin + b), np.arange(end, len(table))])
        token = np.full(len(index), NONE, np.int64)
        token[begin:begin + b - a] = np.arange(a, b)
        there = token != NONE
        multiplicity, owned = np.zeros(len(index), np.int32), there.copy()
        multiplicity[there] = times[a:b]
        if owners is not None:
            owned[there] = owners[a:b] == k
        for array in (token, multiplicity, owned):
            array.setflags(write=False)
        rows = take_rows(table, index)
        spans = None if rows.offsets is None else rows.offsets[there & (rows.offsets[:, 0] != NONE)]
        records.append(WindowRecord(
            source_id, window_id(source_id, k), k, parent_release, sequence, (a, b),
            None if spans is None or not len(spans) else (int(spans[:, 0].min()), int(spans[:, 1].max())), rows, token,
            multiplicity, owned, max(cuts[k - 1][1] - a, 0) if k else 0,
            max(b - cuts[k + 1][0], 0) if k + 1 < len(cuts) else 0, (begin, len(table) - end), policy))
    return records


def _owners(n, cuts, rule):
    """(n,) window of each token, or None."""
    if rule == "center":
        return window_owners(n, cuts)
    if rule == "multiplicity":
        return None
    owner = np.zeros(n, np.int32)
    for k in range(len(cuts) - 1, -1, -1):
        owner[cuts[k][0]:cuts[k][1]] = k
    return owner


def admit_windows(records: Sequence[WindowRecord]) -> list[WindowRecord]:
    """The windows of one source in order, after the ledger: ReadoutError unless all are of one source, release and
    policy, none is there twice, and every token is held by as many windows as its records say and owned by one (by
    each, under "multiplicity")."""
    require(records, "windows", 0, "at least one")
    first = records[0]
    for r in records:
        for name in ("source_id", "parent_release", "sequence", "policy"):
            require(getattr(r, name) == getattr(first, name), f"windows[{r.window_id}].{name}", getattr(r, name),
                    repr(getattr(first, name)))
    records = sorted(records, key=lambda r: r.index)
    ids = [r.window_id for r in records]
    require(len(dict.fromkeys(ids)) == len(ids), "windows.window_id", ids, "every window once")
    n = max(r.tokens[1] for r in records)
    times, owned = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for r in records:
        times[r.token[r.content]] += 1
        owned[r.token[r.owned]] += 1
    for r in records:
        wrong = np.flatnonzero(r.content & (times[r.token] != r.multiplicity))
        require(not len(wrong), f"windows[{r.window_id}].multiplicity",
                [(int(r.token[s]), int(r.multiplicity[s])) for s in wrong[:3]],
                "the number of windows that hold the token: one is missing or was changed")
        require(not (r.owned & ~r.content).any(), f"windows[{r.window_id}].owned", "a row without a token", "content")
    want = times if first.policy.owner == "multiplicity" else np.ones(n, np.int64)
    for i in np.flatnonzero((owned != want) | (times == 0)):
        require(False, f"windows.token[{i}]", int(owned[i]), f"{max(int(want[i]), 1)} windows that speak for it")
    last = records[-1]
    require(last.right == 0 and [r.index for r in records] == list(range(len(records))), "windows.index",
            [r.index for r in records], "all windows of the source, the last among them")
    return records
