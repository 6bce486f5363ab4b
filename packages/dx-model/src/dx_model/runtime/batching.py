"""Dynamic batches that keep every example's identity: stable ids, buckets of lengths, rectangles, the way back."""
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..canonical_json import canonical
from ..readout.errors import ReadoutError, require
from ..readout.rows import NONE, RowTable

SIDES = ("left", "right", "both")


@dataclass(frozen=True, eq=False)
class Example:
    """One text, or pair, on its way through a batch.

    id : stable and not empty: its place in a batch is not its identity
    rows : RowTable of the visible rows, with token ids
    release : digest of the release that it is to be evaluated under
    """

    id: str
    rows: RowTable
    release: str

    def __post_init__(self):
        require(isinstance(self.id, str) and self.id, "example.id", self.id, "a text that is not empty")
        require(isinstance(self.release, str) and self.release, f"example[{self.id}].release", self.release,
                "the release's digest")
        require(self.rows.ids is not None, f"example[{self.id}].rows.ids", None, "token ids")
        require(len(self.rows) and self.rows.attention.all(), f"example[{self.id}].rows", len(self.rows),
                "visible rows, one at least: padding comes with a batch")

    def __len__(self):
        return len(self.rows)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over all that its result may depend on: release, token ids, and every row's identity."""
        return rows_digest(self.release, self.rows, np.arange(len(self.rows)))


def rows_digest(release: str, table: RowTable, columns) -> str:
    """The digest of these rows of a table, in this order, under a release."""
    found = hashlib.sha256(canonical({"release": release, "rows": len(columns)}))
    for array in (table.ids, table.type_ids, table.special, table.policy, table.sequence, table.word_ids,
                  table.offsets):
        found.update(b"-" if array is None else np.ascontiguousarray(array[columns], "<i8").tobytes())
    return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Rectangle:
    """A padded batch: example b's rows are the columns where attention_mask[b] is 1, in order.

    ids : stable ids · input_ids, attention_mask, token_type_ids, position_ids : (B, S) int64; a position is the rank
    among the example's visible rows, so padding on the left moves none · tables : row tables with the padding in them
    · digests : of the examples, as they came in
    """

    ids: tuple[str, ...]
    input_ids: np.ndarray
    attention_mask: np.ndarray
    token_type_ids: np.ndarray
    position_ids: np.ndarray
    tables: tuple[RowTable, ...]
    digests: tuple[str, ...]

    def columns(self, b: int) -> np.ndarray:
        """Columns of example b's rows."""
        return np.flatnonzero(self.attention_mask[b])

    def check(self, examples: Sequence[Example]) -> None:
        """ReadoutError naming the first example whose rows in the rectangle are not what it came with."""
        for b, example in enumerate(examples):
            table, columns = self.tables[b], self.columns(b)
            require(self.ids[b] == example.id, f"batch[{b}].id", self.ids[b], repr(example.id))
            seen = rows_digest(example.release, table, columns)
            same = np.array_equal(self.input_ids[b, columns], table.ids[columns])
            require(same and seen == example.digest, f"batch[{b}].rows", seen,
                    f"{example.digest}: those of {example.id}")
            require(np.array_equal(self.position_ids[b, columns], np.arange(len(columns))), f"batch[{b}].position_ids",
                    self.position_ids[b, columns].tolist(), "ranks of the visible rows")


def pad_batch(examples: Sequence[Example], *, side: str = "right", pad_id: int = 0, length: int | None = None,
              multiple: int = 1) -> Rectangle:
    """The rectangle of examples.

    side : where padding goes: "left", "right", or "both" (half of it, rounded down, on the left)
    length : columns, at least the longest example's rows; None: as many as that, rounded up to a multiple
    """
    examples = list(examples)
    require(side in SIDES, "side", side, ", ".join(SIDES))
    require(examples, "examples", 0, "at least one")
    need = max(len(e) for e in examples)
    length = -(-need // multiple) * multiple if length is None else length
    require(length >= need, "length", length, f"{need} or more")
    arrays = {name: np.zeros((len(examples), length), np.int64) for name in ("ids", "mask", "types", "positions")}
    arrays["ids"][...] = pad_id
    tables = []
    for b, example in enumerate(examples):
        n, r = len(example), example.rows
        at = {"left": length - n, "right": 0, "both": (length - n) // 2}[side]
        arrays["ids"][b, at:at + n], arrays["mask"][b, at:at + n] = r.ids, 1
        arrays["types"][b, at:at + n], arrays["positions"][b, at:at + n] = r.type_ids, np.arange(n)
        tables.append(_padded(r, at, length, pad_id))
    return Rectangle(tuple(e.id for e in examples), arrays["ids"], arrays["mask"], arrays["types"],
                     arrays["positions"], tuple(tables), tuple(e.digest for e in examples))


def _padded(table, at, length, pad_id):
    def put(array, fill):
        if array is None:
            return None
        out = np.full((length, *array.shape[1:]), fill, array.dtype)
        out[at:at + len(array)] = array
        return out

    return RowTable(put(table.attention, False), put(table.special, True), put(table.policy, True),
                    put(table.sequence, NONE), put(table.type_ids, 0), put(table.word_ids, NONE),
                    put(table.offsets, NONE), put(table.ids, pad_id))


@dataclass(frozen=True)
class BatchPlan:
    """ids : in the order of the request · batches : the same ids, by length, as they are evaluated"""

    ids: tuple[str, ...]
    batches: tuple[tuple[str, ...], ...]

    def scatter(self, results: Iterable[tuple[Sequence[str], np.ndarray]]) -> np.ndarray:
        """Results of batches, in any order, back in the order of the request.

        results : (stable ids, values (B, …)) for each batch: a result without ids cannot be put anywhere. ReadoutError:
        an id that is unknown, missing, or there twice; another number of values than of ids; shapes that differ.
        """
        place, out, seen = {id_: i for i, id_ in enumerate(self.ids)}, None, [False] * len(self.ids)
        for ids, values in results:
            values = np.asarray(values)
            require(len(ids) == len(values), "results.ids", len(ids), f"{len(values)}, one for each value")
            if out is None:
                out = np.empty((len(self.ids), *values.shape[1:]), values.dtype)
            require(values.shape[1:] == out.shape[1:] and values.dtype == out.dtype, "results.shape",
                    (values.shape, values.dtype.name), f"(…, {out.shape[1:]}) {out.dtype.name}, as the others")
            for id_, value in zip(ids, values, strict=True):
                require(id_ in place and not seen[place[id_]], "results.ids", id_, "an id of the plan, once")
                out[place[id_]], seen[place[id_]] = value, True
        missing = [id_ for id_, there in zip(self.ids, seen, strict=True) if not there]
        require(not missing, "results.ids", missing[:3], "every id of the plan: these are missing")
        return np.empty((0,), np.float32) if out is None else out


def plan_batches(examples: Sequence[Example], *, most_rows: int, most_examples: int = 64,
                 bucket: int = 16) -> BatchPlan:
    """Batches of like lengths: longest bucket first, in a bucket by id (UTF-8 bytes), so that the plan does not depend
    on the order of the request.

    most_rows : cells of a rectangle, padding included; an example that is longer is refused
    bucket : lengths are rounded up to its multiples before they are compared
    """
    examples = list(examples)
    for name, value in (("most_rows", most_rows), ("most_examples", most_examples), ("bucket", bucket)):
        require(isinstance(value, int) and value > 0, name, value, "1 or more")
    ids = [e.id for e in examples]
    require(len(dict.fromkeys(ids)) == len(ids), "examples.id", ids[:8], "ids that are all different")
    for e in examples:
        require(len(e) <= most_rows, f"example[{e.id}].rows", len(e), f"{most_rows} or fewer: cut it by a policy")
    order = sorted(examples, key=lambda e: (-((len(e) + bucket - 1) // bucket), e.id.encode()))
    batches, current, width = [], [], 0
    for e in order:
        width = max(width, len(e))
        if current and (len(current) == most_examples or width * (len(current) + 1) > most_rows):
            batches.append(tuple(current))
            current, width = [], len(e)
        current.append(e.id)
    if current:
        batches.append(tuple(current))
    return BatchPlan(tuple(ids), tuple(batches))


def run_batches(examples: Sequence[Example], forward: Callable[[Rectangle], np.ndarray], *, most_rows: int,
                most_examples: int = 64, bucket: int = 16, side: str = "right", pad_id: int = 0) -> np.ndarray:
    """forward(rectangle) → (B, …) over planned batches, put back in the order of the examples. Every rectangle is
    checked against its examples before and after; a forward that writes into it is found out."""
    examples = list(examples)
    by_id = {e.id: e for e in examples}
    plan = plan_batches(examples, most_rows=most_rows, most_examples=most_examples, bucket=bucket)

    def results():
        for ids in plan.batches:
            batch = [by_id[i] for i in ids]
            rectangle = pad_batch(batch, side=side, pad_id=pad_id)
            rectangle.check(batch)
            values = forward(rectangle)
            rectangle.check(batch)
            yield rectangle.ids, values

    return plan.scatter(results())


@dataclass(frozen=True)
class PaddingDifference:
    """A result that padding changed: of which example, under which padding, in which row (None: not a row's)."""

    id: str
    side: str
    columns: int
    row: int | None


def padding_differences(examples: Sequence[Example], forward: Callable[[Rectangle], np.ndarray], *, pad_id: int = 0,
                        added: Sequence[int] = (1, 7)) -> list[PaddingDifference]:
    """Where the result of padded batches differs in a bit from that of each example alone; [] proves invariance on
    these examples.

    forward : rectangle → (B, S, D) contextual rows, compared by the rank of the visible row, or (B, …) results
    added : columns beyond the longest example
    """
    examples, found = list(examples), []
    alone = []
    for e in examples:
        r = pad_batch([e], pad_id=pad_id)
        alone.append(_comparable(np.asarray(forward(r)), r, 0))
    for columns in added:
        for side in SIDES:
            r = pad_batch(examples, side=side, pad_id=pad_id, length=max(len(e) for e in examples) + columns)
            values = np.asarray(forward(r))
            if len(values) != len(examples):
                raise ReadoutError("forward", len(values), f"{len(examples)} results, one for each example")
            for b, e in enumerate(examples):
                got, rows = _comparable(values, r, b)
                want, _ = alone[b]
                if rows and got.shape == want.shape:
                    for row in range(len(got)):
                        if got[row].tobytes() != want[row].tobytes():
                            found.append(PaddingDifference(e.id, side, columns, row))
                elif got.shape != want.shape or got.tobytes() != want.tobytes():
                    found.append(PaddingDifference(e.id, side, columns, None))
    return found


def _comparable(values, rectangle, b):
    """(values of example b, whether they are rows)."""
    rows = values.ndim == 3 and values.shape[1] == rectangle.input_ids.shape[1]
    return (values[b][rectangle.columns(b)] if rows else np.asarray(values[b])), rows
