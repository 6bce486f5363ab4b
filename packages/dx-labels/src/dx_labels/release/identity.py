"""The semantic tuple of a release: everything that decides a result, in parts, each with a digest."""
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from ..below import canonical_bytes
from .graph import REUSABLE, STATES, Parity, ReleaseError, effect

# part → the change (of graph.CHANGES) that another value of it is. This is also what a rollback restores.
PARTS = {
    "input": "input",  # tokenizer, template, special ids, positions, normalisation of the source
    "window": "input",  # cutting of long sources: another stride brings other evidence to the readout
    "backbone": "backbone",  # weights and active adapters
    "layer": "readout",  # which contextual rows are read
    "readout": "readout",  # rows, pooling, projection, normalisation, aggregation of windows
    "head": "head",  # weights, ordered label map, null label, type of the score
    "calibrator": "calibrator",
    "decision": "decision",  # thresholds, abstention, ties
    "runtime": "runtime",  # dtypes, backend, export, numerics
}
# What each kept state depends on.
DEPENDS = {"contextual_cache": ("input", "window", "backbone", "layer", "runtime")}
for _state, _part in zip(STATES[1:], ("readout", "head", "calibrator", "decision")):
    DEPENDS[_state] = (*DEPENDS[STATES[STATES.index(_state) - 1]], _part)


def digest_of(value) -> str:
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def differences(old, new, name=""):
    """(dotted name, old, new) of every leaf that differs; None stands for what is not there."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{name}.{key}" if name else key)
    elif old != new:
        yield name, old, new


@dataclass(frozen=True)
class SemanticTuple:
    """kind : "docextract" or "readout" · parts : part → plain JSON, all of PARTS.

    Equal tuples have equal digests; a part is never changed, another tuple is made.
    """

    kind: str
    parts: Mapping

    def __post_init__(self):
        if self.kind not in ("docextract", "readout"):
            raise ReleaseError(f"kind = {self.kind!r}: expected docextract or readout")
        if not isinstance(self.parts, Mapping):
            raise ReleaseError("parts: expected an object")
        for name in PARTS:
            if not isinstance(self.parts.get(name), Mapping) or not self.parts[name]:
                raise ReleaseError(f"parts.{name} = {self.parts.get(name)!r}: expected an object that says what it is")
        unknown = sorted(set(self.parts) - set(PARTS))
        if unknown:
            raise ReleaseError(f"parts.{unknown[0]}: expected one of {', '.join(PARTS)}")

    def to_json(self) -> dict:
        return {"kind": self.kind, "parts": {name: self.parts[name] for name in PARTS}}

    @property
    def digest(self) -> str:
        """SHA-256 (hex): the identity of the semantic artifact."""
        return digest_of(self.to_json())

    def part_digest(self, name: str) -> str:
        return digest_of(self.parts[name])

    def namespaces(self) -> dict:
        """state → the cache namespace that its entries live under: a digest of every part it depends on."""
        return {state: digest_of({part: self.parts[part] for part in DEPENDS[state]}) for state in STATES}

    @property
    def head_reads(self) -> str:
        """"vectors" or "rows", as parts.readout says under `gives`."""
        return "rows" if self.parts["readout"].get("gives") == "rows" else "vectors"


def frozen_digest(one: SemanticTuple) -> str:
    """SHA-256 (hex) of the tuple without calibrator and decision: what a promotion test must not have tuned again."""
    return digest_of({name: part for name, part in one.parts.items() if name not in ("calibrator", "decision")})


def changed_parts(old: SemanticTuple, new: SemanticTuple) -> list[str]:
    """Parts that differ, in the order of PARTS."""
    return [name for name in PARTS if old.parts[name] != new.parts[name]]


def changes_between(old: SemanticTuple, new: SemanticTuple) -> list[str]:
    """Changes (graph.CHANGES) from one to the other, in order."""
    return list(dict.fromkeys(PARTS[name] for name in changed_parts(old, new)))


def layers_held(one: SemanticTuple) -> list:
    return list(one.parts["layer"].get("layers", []))


def effect_between(old: SemanticTuple, new: SemanticTuple, parity: Parity | None = None) -> Mapping[str, str]:
    """state → verdict (graph.effect) of going from one tuple to the other, its conditions looked up in the two.

    Contextual rows stay when input, windows and backbone are the same and the old release kept the layers that the new
    one reads. A runtime that differs needs `parity` between exactly these two runtimes.
    """
    if old.kind != new.kind:
        return dict.fromkeys(STATES, "invalid")
    same = all(old.parts[p] == new.parts[p] for p in ("input", "window", "backbone"))
    held = layers_held(old)
    same = same and bool(held) and all(layer in held for layer in layers_held(new))
    proven = parity is not None and parity.proves(old.part_digest("runtime"), new.part_digest("runtime"))
    return effect(changes_between(old, new), same_contextual=same, head_reads=new.head_reads, same_runtime=proven)


def compatibility(old: SemanticTuple, new: SemanticTuple, parity: Parity | None = None) -> dict:
    """The record of a compatibility: changed fields, changes, verdicts, and which namespaces to keep or to drop."""
    verdicts, spaces = effect_between(old, new, parity), old.namespaces()
    return {"from": old.digest, "to": new.digest, "changes": changes_between(old, new),
            "fields": [f"{part}.{name}" for part in changed_parts(old, new)
                       for name, _, _ in differences(old.parts[part], new.parts[part])],
            "states": dict(verdicts), "parity": None if parity is None else parity.to_json(),
            "keep": {s: spaces[s] for s in STATES if verdicts[s] == REUSABLE},
            "drop": {s: spaces[s] for s in STATES if verdicts[s] != REUSABLE}}
