"""Cases of docextract: one field of one page, as places of words, without any text."""
import math

from ..calibration.metrics import brier_score, calibration_error, negative_log_likelihood, reliability
from ..entities import F1
from ..metrics.common import averages
from ..scoring import Scored, Share


def places(value):
    """JSON places as tuples: [[word, start, end], …]."""
    return tuple(tuple(part) for part in value)


def scored(case) -> Scored:
    """The case as dx_labels.scoring knows it, without texts."""
    gold = tuple(tuple(places(p) for p in value) for value in case["gold"])
    return Scored(case["page"], case["field"], (), (), gold, tuple(places(p) for p in case["predicted"]),
                  case["scored"], tuple(case["confidences"]))


def judged(case) -> list:
    """[confidence, right] of each predicted value of a scored case."""
    if not case["scored"]:
        return []
    every = [places(p) for value in case["gold"] for p in value]
    return [[c, places(p) in every] for c, p in zip(case["confidences"], case["predicted"])]


def accepted(case, pair) -> bool:
    return case["threshold"] is not None and pair[0] >= case["threshold"]


def field_outcome(case) -> tuple[str, float]:
    """right, missed, spurious, boundary (words in common) or elsewhere; not scored counts as right with value 1."""
    row = scored(case)
    if not row.words or row.exactly():
        return "right", 1.0
    if not row.predicted_places:
        return "missed", 0.0
    if not row.gold_places:
        return "spurious", 0.0
    gold = {part[0] for value in row.gold_places for place in value for part in place}
    common = any(part[0] in gold for place in row.predicted_places for part in place)
    return ("boundary" if common else "elsewhere"), 0.0


def field_scores(cases, settings) -> dict:
    """Scores over cases: per field and in all.

    settings.costs : {"accepted_wrong": cost, "not_accepted": cost}, of a wrong value that is let through and of a value
    that goes to a person; bins : of the reliability diagram
    """
    fields = list(dict.fromkeys(c["field"] for c in cases))
    counts = {}
    for name in fields:
        tp = predicted = gold = 0
        for row in (scored(c) for c in cases if c["field"] == name and c["scored"]):
            tp, predicted, gold = (tp + row.right_words(), predicted + len(row.predicted_places),
                                   gold + len(row.gold_places))
        counts[name] = F1(tp, predicted, gold)
    errors = {}
    for case in cases:
        if case["scored"]:
            name = field_outcome(case)[0]
            errors[name] = errors.get(name, 0) + 1
    values = [(case, pair) for case in cases for pair in judged(case)]
    let = [pair for case, pair in values if accepted(case, pair)]
    right = [bool(r) for _, r in let].count(True)
    costs = settings.get("costs", {"accepted_wrong": 10.0, "not_accepted": 1.0})
    n = [c["scored"] for c in cases].count(True)
    paid = [costs["accepted_wrong"]] * (len(let) - right) + [costs["not_accepted"]] * (len(values) - len(let))
    return {"n": n, "not_scored": len(cases) - n, "right": Share(errors.get("right", 0), n).to_json(),
            **averages(counts), "fields": {name: one.to_json() for name, one in counts.items()},
            "errors": dict(sorted(errors.items())),
            "accepted": {"coverage": Share(len(let), len(values)).to_json(),
                         "right": Share(right, len(let)).to_json()},
            "cost": {"sum": math.fsum(paid), "costs": costs},
            "calibration": _calibration([pair for _, pair in values], settings.get("bins", 10))}


def _calibration(pairs, bins):
    if not pairs:
        return None
    p, right = [c for c, _ in pairs], [int(r) for _, r in pairs]
    two = [[1.0 - c, c] for c in p]
    nll = negative_log_likelihood(two, right)
    return {"nll": nll if math.isfinite(nll) else None, "impossible": not math.isfinite(nll),
            "brier": brier_score(two, right), "ece": calibration_error(p, right, bins=bins),
            "binning": {"estimator": "confidence of each value against right or wrong", "strategy": "uniform",
                        "bins": bins},
            "bins": [{**vars(b), "frequency": b.frequency} for b in reliability(p, right, bins=bins)]}
