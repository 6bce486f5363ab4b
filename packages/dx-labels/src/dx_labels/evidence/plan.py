"""The evaluation plan, fixed before results are seen: metrics' settings, gates, slices with floors, costs."""
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ..below import canonical_bytes
from .roles import EvidenceError

KINDS = ("fields", "single_label", "multilabel", "regression", "entities", "answers", "similarity", "retrieval")


@dataclass(frozen=True)
class SlicePlan:
    """Cases with a common property, fixed beforehand.

    name · hypothesis : the mechanism that could fail here · feature : name of a case's feature · equals : its value, or
    low, high : low <= value < high (None: open) · critical : does the release hang on it? · floor : least share right
    (decimal as text) · least : fewest cases that say anything
    """

    name: str
    hypothesis: str
    feature: str
    equals: object = None
    low: float | None = None
    high: float | None = None
    critical: bool = False
    floor: str | None = None
    least: int = 5

    def __post_init__(self):
        for name in ("name", "hypothesis", "feature"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise EvidenceError(f"slice.{name} = {getattr(self, name)!r}: expected a text that is not empty")
        if self.critical and self.floor is None:
            raise EvidenceError(f"slice {self.name!r} is critical: expected a floor")
        if self.floor is not None and not 0 <= share(self.floor, f"slice {self.name!r}: floor") <= 1:
            raise EvidenceError(f"slice {self.name!r}: floor = {self.floor}: expected a share")

    def holds(self, features: Mapping) -> bool:
        """Is a case with these features in the slice? A case that lacks the feature is not."""
        value = features.get(self.feature)
        if value is None:
            return False
        if self.equals is not None:
            return value == self.equals
        return (self.low is None or value >= self.low) and (self.high is None or value < self.high)

    def to_json(self) -> dict:
        return dict(vars(self))


def share(text, name) -> Fraction:
    """A decimal as typed, exactly."""
    try:
        return Fraction(text)
    except (ValueError, TypeError, ZeroDivisionError):
        raise EvidenceError(f"{name} = {text!r}: expected a decimal as text") from None


@dataclass(frozen=True)
class EvaluationPlan:
    """kind : of KINDS · settings : of the kind's metrics (labels, scheme and repair, cuts, costs, bins, …)
    gates : dotted name of a figure of the result → least value (decimal as text), or greatest where the name begins
    with "-" · slices : tuple of SlicePlan"""

    kind: str
    settings: Mapping = field(default_factory=dict)
    gates: Mapping = field(default_factory=dict)
    slices: tuple = ()

    def __post_init__(self):
        if self.kind not in KINDS:
            raise EvidenceError(f"plan.kind = {self.kind!r}: expected one of {', '.join(KINDS)}")
        for name, value in self.gates.items():
            share(value, f"plan.gates.{name}")
        names = [s.name for s in self.slices]
        if len(dict.fromkeys(names)) != len(names):
            raise EvidenceError("plan.slices: two of one name")

    def to_json(self) -> dict:
        return {"kind": self.kind, "settings": dict(self.settings), "gates": dict(self.gates),
                "slices": [s.to_json() for s in self.slices]}

    @property
    def can_fail(self) -> bool:
        """Is there a gate or a critical slice? Under a plan without either every model passes."""
        return bool(self.gates) or any(s.critical for s in self.slices)

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the plan."""
        return hashlib.sha256(canonical_bytes(self.to_json())).hexdigest()


def plan_from_json(value) -> EvaluationPlan:
    """The plan of a parsed file; EvidenceError names what is wrong."""
    known = ("kind", "settings", "gates", "slices")
    if not isinstance(value, Mapping) or not set(value) <= set(known) or "kind" not in value:
        raise EvidenceError(f"plan: expected an object of {', '.join(known)}")
    slices = []
    for i, one in enumerate(value.get("slices", [])):
        try:
            slices.append(SlicePlan(**one))
        except TypeError:
            raise EvidenceError(f"plan.slices[{i}] = {one!r}: expected keys of "
                                f"{', '.join(SlicePlan.__dataclass_fields__)}") from None
    return EvaluationPlan(value["kind"], value.get("settings", {}), value.get("gates", {}), tuple(slices))
