"""Immutable split roles: which example is for what, and that nothing of one source stands in two roles."""
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..below import canonical_bytes

ROLES = ("train", "development", "calibration", "promotion")
# role → what it may be used for. Everything else is refused (audit.py).
ALLOWED = {
    "train": ("fit weights",),
    "development": ("choose settings",),
    "calibration": ("fit calibration", "fit thresholds"),
    "promotion": ("evaluate frozen candidate",),
}
FORBIDDEN = {
    "train": ("report as held out", "evaluate frozen candidate"),
    "development": ("evaluate frozen candidate",),
    "calibration": ("fit weights", "evaluate frozen candidate"),
    "promotion": ("fit weights", "choose settings", "fit calibration", "fit thresholds", "choose slices"),
}


class EvidenceError(ValueError):
    """Evidence that is refused: a leak, a forbidden use, a plan that came too late; the message names the thing."""


@dataclass(frozen=True)
class Member:
    """One example. id : stable · role : of ROLES · group : whatever its examples share (a conversation, a user, a
    supplier), None for none · parent : the source of which this is a window, None for a whole source · content : digest
    of what the example says, for finding copies, None where it is not known"""

    id: str
    role: str
    group: str | None = None
    parent: str | None = None
    content: str | None = None


@dataclass(frozen=True)
class SplitManifest:
    """Who is where, frozen before the final evaluation.

    dataset : its revision · licence, provenance, deduplication : texts, required · label_schema, scorer : revisions
    plan : digest of the evaluation plan with the slices · members : tuple of Member · before : digest of the manifest
    that this one reclassifies, None for the first
    """

    dataset: str
    licence: str
    provenance: str
    deduplication: str
    label_schema: str
    scorer: str
    plan: str
    members: tuple
    before: str | None = None

    def __post_init__(self):
        for name in ("dataset", "licence", "provenance", "deduplication", "label_schema", "scorer", "plan"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise EvidenceError(f"splits.{name} = {getattr(self, name)!r}: expected a text that is not empty")
        object.__setattr__(self, "members", tuple(self.members))
        for one in self.members:
            if one.role not in ROLES:
                raise EvidenceError(f"example {one.id!r}: role {one.role!r}: expected one of {', '.join(ROLES)}")

    def to_json(self) -> dict:
        keep = {name: value for name, value in vars(self).items() if name != "members"}
        members = [{k: v for k, v in vars(one).items() if v is not None} for one in self.members]
        return {**keep, "allowed": {role: list(ops) for role, ops in ALLOWED.items()}, "members": members}

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the manifest."""
        return hashlib.sha256(canonical_bytes(self.to_json())).hexdigest()

    def ids(self, role: str) -> list[str]:
        """Ids of a role's examples, in order."""
        return [one.id for one in self.members if one.role == role]

    def reclassified(self, ids, role: str) -> "SplitManifest":
        """Another manifest in which these examples have this role, and which says what it was made from. Calibration
        examples that weights are to be fitted on become training examples this way. Nothing becomes promotion: what
        was read is no untouched test."""
        if role == "promotion":
            raise EvidenceError("role 'promotion': examples that had another role are no untouched test")
        moved, wanted = [], frozenset(ids)
        for one in self.members:
            moved.append(replace(one, role=role) if one.id in wanted else one)
        return replace(self, members=tuple(moved), before=self.digest)


def splits_from_json(value: Mapping) -> SplitManifest:
    """The manifest of `to_json`'s object; EvidenceError for other keys, or operations that are not the ones allowed."""
    known = {*SplitManifest.__dataclass_fields__, "allowed"}
    if not isinstance(value, Mapping) or set(value) != known:
        raise EvidenceError(f"splits: expected an object of {', '.join(sorted(known))}")
    if value["allowed"] != {role: list(ops) for role, ops in ALLOWED.items()}:
        raise EvidenceError(f"splits.allowed = {value['allowed']!r}: expected the operations of each role")
    members = []
    for i, one in enumerate(value["members"]):
        if not isinstance(one, Mapping) or not {"id", "role"} <= set(one) <= set(Member.__dataclass_fields__):
            raise EvidenceError(f"splits.members[{i}] = {one!r}: expected id, role, and group, parent, content")
        members.append(Member(**one))
    rest = {name: one for name, one in value.items() if name not in ("allowed", "members")}
    return SplitManifest(members=tuple(members), **rest)


@dataclass(frozen=True)
class Leak:
    """kind : "id", "group", "window" or "copy" · what : the shared thing · examples : (id, role) of its holders"""

    kind: str
    what: str
    examples: tuple

    def __str__(self):
        return f"{self.kind} {self.what!r} stands in " + ", ".join(f"{role} ({id_})" for id_, role in self.examples)


def leaks(splits: SplitManifest) -> list[Leak]:
    """Everything that ties two roles together: an id that stands twice, a group, a source (through its windows), equal
    content. Ties go through: windows of two sources of one group are of that group."""
    found = []
    for kind, key in (("id", lambda m: m.id), ("group", lambda m: m.group), ("window", lambda m: m.parent or m.id),
                      ("copy", lambda m: m.content)):
        holders = {}
        for one in splits.members:
            if key(one) is not None:
                holders.setdefault(key(one), []).append((one.id, one.role))
        for what, examples in holders.items():
            if len(dict.fromkeys(role for _, role in examples)) > 1 or kind == "id" and len(examples) > 1:
                found.append(Leak(kind, what, tuple(examples)))
    return found


def admit_splits(splits: SplitManifest) -> None:
    """EvidenceError for the first leak, or a role without examples."""
    for leak in leaks(splits):
        raise EvidenceError(f"splits: {leak}")
    for role in ROLES:
        if not splits.ids(role):
            raise EvidenceError(f"splits: no example has the role {role}")
