"""Candidate against parent on the same cases: each case's difference, and who moved from right to wrong."""
import math

from .kinds import outcome
from .plan import EvaluationPlan
from .roles import EvidenceError

TRANSITIONS = ("both right", "right to wrong", "wrong to right", "both wrong, same failure",
               "both wrong, other failure")


def _transition(before: str, after: str) -> str:
    if before == "right" or after == "right":
        if before == after:
            return TRANSITIONS[0]
        return TRANSITIONS[1] if before == "right" else TRANSITIONS[2]
    return TRANSITIONS[3] if before == after else TRANSITIONS[4]


def paired(plan: EvaluationPlan, candidate: list, parent: list) -> dict:
    """Differences m(candidate) - m(parent), matched by stable case id; both sides need exactly the same ids and
    the same gold, or nothing was compared.

    Returns
    -------
    dict: n, transitions (name → count), cases (id → [transition, difference] of every case that is not both right with
    difference 0), mean (exactly summed)
    """
    sides = [{case["case"]: case for case in side} for side in (candidate, parent)]
    for name, a, b in (("parent", *sides), ("candidate", *reversed(sides))):
        missing = sorted(a.keys() - b.keys())
        if missing:
            raise EvidenceError(f"case {missing[0]!r} has no output of the {name}")
    counts, told, differences = dict.fromkeys(TRANSITIONS, 0), {}, []
    for id_ in sorted(sides[0]):
        new, old = sides[0][id_], sides[1][id_]
        for key in ("gold", "relevant"):
            if new.get(key) != old.get(key):
                raise EvidenceError(f"case {id_!r}: {key} differs between candidate and parent")
        (after, m_new), (before, m_old) = (outcome(plan.kind, one, plan.settings) for one in (new, old))
        name = _transition(before, after)
        counts[name] += 1
        differences.append(m_new - m_old)
        if name != TRANSITIONS[0] or differences[-1] != 0:
            told[id_] = [name, differences[-1]]
    n = len(differences)
    return {"n": n, "transitions": counts, "cases": told, "mean": math.fsum(differences) / n if n else None}
