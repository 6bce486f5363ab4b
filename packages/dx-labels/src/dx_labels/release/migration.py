"""Migrations: from one release to another with named conditions that are computed, never taken on trust."""
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .graph import REUSABLE, STATES, Parity, ReleaseError
from .identity import SemanticTuple, changed_parts, compatibility


@dataclass(frozen=True)
class Condition:
    """One condition: its name, whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str

    def to_json(self) -> dict:
        return dict(vars(self))


def labels_of(one: SemanticTuple) -> list | None:
    head = one.parts["head"]
    found = head.get("labels", head.get("output.labels"))
    return None if found is None else list(found)


def head_identity(one: SemanticTuple):
    """What says which weights the head has."""
    head = one.parts["head"]
    return head.get("tensors", head.get("artifact.head_sha256"))


def width_of(one: SemanticTuple) -> int | None:
    """Width of what the head is given, from the readout's own fields; None for a head that reads rows."""
    readout = one.parts["readout"]
    modes = readout.get("readout.pooling", readout.get("pooling"))
    width = one.parts["layer"].get("contextual_state.width", one.parts["layer"].get("width"))
    projection = readout.get("readout.projection", readout.get("projection"))
    if projection:
        return projection["out_features"]
    return None if not modes or width is None else len(modes) * width


def head_input(one: SemanticTuple) -> int | None:
    """Width that the head says it takes, where it says so."""
    return one.parts["head"].get("in_features", one.parts["head"].get("output.in_features"))


def preconditions(old: SemanticTuple, new: SemanticTuple) -> list[Condition]:
    """What must be true of the two tuples before anything moves."""
    parts, before, after = changed_parts(old, new), labels_of(old), labels_of(new)
    found = [Condition("same kind", old.kind == new.kind, f"{old.kind} to {new.kind}"),
             Condition("something changed", bool(parts), ", ".join(parts) or "nothing")]
    if before != after:
        moved = head_identity(old) != head_identity(new)
        same_width = before is not None and after is not None and len(before) == len(after)
        name = "reordered labels move with the head's rows" if same_width else "another width needs a new head"
        found.append(Condition(name, moved, f"{before} to {after}, head {'changed' if moved else 'the same'}"))
    if width_of(old) != width_of(new):
        moved = head_identity(old) != head_identity(new)
        found.append(Condition("another width of the readout needs a new head", moved,
                               f"{width_of(old)} to {width_of(new)}"))
    if head_input(new) is not None and width_of(new) is not None:
        found.append(Condition("the head's input is the pool's width", head_input(new) == width_of(new),
                               f"head takes {head_input(new)}, readout gives {width_of(new)}"))
    return found


def postconditions(old: SemanticTuple, new: SemanticTuple, parity: Parity | None = None) -> list[Condition]:
    """What must be true of the states afterwards: what is invalid lives under another namespace."""
    record, before, after = compatibility(old, new, parity), old.namespaces(), new.namespaces()
    found = []
    for state in STATES:
        if record["states"][state] != REUSABLE:
            found.append(Condition(f"{state} has a namespace of its own", before[state] != after[state], after[state]))
    return found


def migration(old: SemanticTuple, new: SemanticTuple, *, source: str, target: str, rollback_to: str,
              parity: Parity | None = None, tests=()) -> dict:
    """The record of a migration: conditions, transformed objects, parity tests, invalidation plan, rollback target.

    source, target, rollback_to : release ids · tests : (name, passed) of parity tests that have run
    """
    record = compatibility(old, new, parity)
    return {"source": source, "target": target, "transformed": changed_parts(old, new),
            "preconditions": [c.to_json() for c in preconditions(old, new)],
            "postconditions": [c.to_json() for c in postconditions(old, new, parity)],
            "parity_tests": [{"name": name, "passed": bool(passed)} for name, passed in tests],
            "invalidation": {"keep": record["keep"], "drop": record["drop"]}, "rollback_to": rollback_to}


def admit_migration(record: Mapping, old: SemanticTuple, new: SemanticTuple, parity: Parity | None = None) -> None:
    """ReleaseError unless the record is what the two tuples give, and every condition and parity test holds. That the
    new files load proves nothing."""
    wanted = migration(old, new, source=record.get("source"), target=record.get("target"),
                       rollback_to=record.get("rollback_to"), parity=parity)
    for name in ("source", "target", "rollback_to"):
        if not isinstance(record.get(name), str) or not record[name]:
            raise ReleaseError(f"migration.{name} = {record.get(name)!r}: expected a release id")
    for name in ("transformed", "preconditions", "postconditions", "invalidation"):
        if record.get(name) != wanted[name]:
            raise ReleaseError(f"migration.{name} = {record.get(name)!r}: expected {wanted[name]!r}, what follows from "
                               "the two releases")
    for one in itertools.chain(wanted["preconditions"], wanted["postconditions"]):
        if not one["holds"]:
            raise ReleaseError(f"migration: {one['name']}: {one['seen']}")
    if not record.get("parity_tests"):
        raise ReleaseError("migration.parity_tests is empty: expected at least one that has run")
    for one in record["parity_tests"]:
        if one["passed"] is not True:
            raise ReleaseError(f"migration.parity_tests: {one['name']} did not pass")


def reorder_labels(rows: Mapping, old: list, new: list, head_rows: Callable | None = None) -> dict:
    """Head arrays with their label rows moved from the old order to the new one: name → array (labels, …).

    A permutation of the same labels only: a new label has no row to move and needs a new head.
    """
    if sorted(old) != sorted(new) or len({*old}) != len(old):
        raise ReleaseError(f"labels {old} to {new}: expected the same labels in another order; others need a new head")
    order = [old.index(label) for label in new]
    for name, array in rows.items():
        if len(array) != len(old):
            raise ReleaseError(f"{name} has {len(array)} rows: expected {len(old)}, one a label")
    return {name: (array[order] if head_rows is None else head_rows(array, order)) for name, array in rows.items()}
