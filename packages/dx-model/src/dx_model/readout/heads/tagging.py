"""Tagging schemes: which tag may follow which, as forbidden transitions for decoding, and the entities of tags."""
from dataclasses import dataclass

import numpy as np

from ...below import crf_decode
from ..errors import ReadoutError, require
from .base import f32
from .labels import LabelMap

PREFIXES = {"BIO": "BI", "BILOU": "BILU"}
INSIDE = {"BIO": ("B", "I"), "BILOU": ("B", "I")}  # an entity can be open after these


@dataclass(frozen=True)
class TagScheme:
    """O and prefixed tags "B-X" over an ordered label map.

    scheme : "BIO" (IOB2: every entity begins with B) or "BILOU" (begin, inside, last, unit)
    labels : LabelMap of the tags, in any order, all prefixes of every type
    """

    scheme: str
    labels: LabelMap

    def __post_init__(self):
        require(self.scheme in PREFIXES, "output.tag_scheme", self.scheme, " or ".join(PREFIXES))
        require("O" in self.labels.names, "output.labels", self.labels.names, "the tag O among them")
        types = dict.fromkeys(name[2:] for name in self.labels.names if name != "O")
        wanted = {"O"} | {f"{p}-{t}" for t in types for p in PREFIXES[self.scheme]}
        for i, name in enumerate(self.labels.names):
            require(name in wanted and name[2:] != "" or name == "O", f"output.labels[{i}]", name,
                    f"O or {', '.join(p + '-X' for p in PREFIXES[self.scheme])}")
        missing = sorted(wanted - set(self.labels.names))
        require(not missing, "output.labels", missing, f"all prefixes of {self.scheme} for every type")

    def follows(self, before: str | None, after: str | None) -> bool:
        """Whether tag `after` may follow `before`; None is the border of the sequence."""
        open_type = before[2:] if before and before[0] in INSIDE[self.scheme] and before != "O" else None
        continues = after is not None and after != "O" and after[0] in ("I", "L")
        if self.scheme == "BIO":
            return not continues or after[2:] == open_type
        return after[2:] == open_type if continues else open_type is None

    def forbidden(self):
        """(transitions (C, C), first (C,), last (C,)) float32: 0 where admitted, -inf where not."""
        names = self.labels.names
        penalty = {True: 0.0, False: -np.inf}
        transitions = np.array([[penalty[self.follows(a, b)] for b in names] for a in names], f32)
        first = np.array([penalty[self.follows(None, b)] for b in names], f32)
        last = np.array([penalty[self.follows(a, None)] for a in names], f32)
        return transitions, first, last

    def check(self, tags) -> None:
        """ReadoutError at the first tag that breaks the scheme; tags are names or outputs."""
        names = [t if isinstance(t, str) else self.labels.names[t] for t in tags]
        for t, (before, after) in enumerate(zip([None, *names], [*names, None])):
            if not self.follows(before, after):
                raise ReadoutError(f"tags[{t}]", after, f"a tag that may follow {before}")

    def decode(self, emissions, transitions=None, first=None, last=None):
        """(outputs (n,) int32, score): the legal tags with the largest sum, rows of one sequence (n, C).

        transitions, first, last : learned scores (a CRF's) or None; legality is imposed on top of them. The lowest
        output wins ties.
        """
        emissions = np.ascontiguousarray(emissions, f32)
        learned = [0.0 if x is None else x for x in (transitions, first, last)]
        a, b, c = (np.ascontiguousarray(rule + own, f32) for rule, own in zip(self.forbidden(), learned))
        best, scores = np.empty(len(emissions), np.int32), np.empty(1)
        crf_decode(emissions, a, b, c, np.array([0, len(emissions)], np.int32), scores, best)
        return best, float(scores[0])

    def entities(self, tags) -> list[tuple[str, int, int]]:
        """(type, first row, last row) of legal tags, in order; illegal tags are refused, never repaired."""
        names = [t if isinstance(t, str) else self.labels.names[t] for t in tags]
        self.check(names)
        found = []
        for t, name in enumerate(names):
            if name[0] in ("B", "U") and name != "O":
                found.append([name[2:], t, t])
            elif name != "O":
                found[-1][2] = t
        return [tuple(entity) for entity in found]

    def tags(self, entities, n: int) -> np.ndarray:
        """Outputs (n,) int32 of entities (type, first row, last row) that do not overlap."""
        result = np.full(n, self.labels.id("O"), np.int32)
        taken = [False] * n
        for kind, first, last in entities:
            require(0 <= first <= last < n and not any(taken[first:last + 1]), "entities", (kind, first, last),
                    f"rows in 0..{n - 1} that no other entity has")
            for t in range(first, last + 1):
                taken[t] = True
                prefix = "B" if t == first else "I"
                if self.scheme == "BILOU":
                    prefix = "U" if first == last else "L" if t == last else prefix
                result[t] = self.labels.id(f"{prefix}-{kind}")
        return result
