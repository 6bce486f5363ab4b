"""A frozen plan over cases: figures, gates, slices with support, intervals and floors."""
from ..scoring import Share
from .kinds import measure, outcome
from .plan import EvaluationPlan, share
from .roles import EvidenceError


def figure(result, name: str):
    """The number under a dotted name of a result; EvidenceError where there is none."""
    value = result
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvidenceError(f"gate {name!r}: the result has {value!r} there: expected a number")
    return value


def evaluate_cases(plan: EvaluationPlan, cases: list) -> dict:
    """The result of a plan over cases.

    Returns
    -------
    dict: plan (digest), cases (count), figures (metrics of the kind), failures (failure class → count), gates (name,
    least or greatest, value, passed), slices (n, right with its exact 95 % interval, value, floor, verdict), passed

    A critical slice passes when it has `least` cases and its share right reaches the floor; with fewer it is "too few",
    which does not pass: three perfect cases are no evidence. Other slices are told, and decide nothing. No average over
    all cases makes up for a critical slice.
    """
    ids = [case["case"] for case in cases]
    if len(dict.fromkeys(ids)) != len(ids):
        raise EvidenceError(f"case {next(i for k, i in enumerate(ids) if i in ids[:k])!r} stands twice")
    figures = measure(plan.kind, cases, plan.settings)
    outcomes = {case["case"]: outcome(plan.kind, case, plan.settings) for case in cases}
    failures = {}
    for name, _ in outcomes.values():
        failures[name] = failures.get(name, 0) + 1
    gates = []
    for name, wanted in sorted(plan.gates.items()):
        value = figure(figures, name.removeprefix("-"))
        exact = share(str(value), name)
        passed = exact <= share(wanted, name) if name.startswith("-") else exact >= share(wanted, name)
        gates.append({"figure": name, "wanted": wanted, "value": value, "passed": passed})
    slices = [_slice(one, cases, outcomes) for one in plan.slices]
    passed = all(g["passed"] for g in gates) and all(s["verdict"] in ("passed", "told") for s in slices)
    return {"plan": plan.digest, "cases": len(cases), "figures": figures, "failures": dict(sorted(failures.items())),
            "gates": gates, "slices": slices, "passed": passed and bool(cases)}


def _slice(one, cases, outcomes):
    own = [c for c in cases if one.holds(c.get("features", {})) and c.get("scored", True)]
    right = [outcomes[c["case"]][0] == "right" for c in own].count(True)
    if not one.critical:
        verdict = "told"
    elif len(own) < one.least:
        verdict = "too few"
    else:
        verdict = "passed" if right >= share(one.floor, one.name) * len(own) else "failed"
    return {"name": one.name, "critical": one.critical, "n": len(own), "right": Share(right, len(own)).to_json(),
            "floor": one.floor, "least": one.least, "verdict": verdict}
