"""What a case of each kind of output holds, its metrics, its own value, and the name of its failure.

Every case is {"case": stable id, "features": {…}, …}; the rest by kind:
    fields        gold (places of each value), predicted (places), confidences, scored, threshold
    single_label  gold, predicted (None: no answer), probabilities (in the order of settings.labels)
    multilabel    gold, predicted (lists), scores
    regression    gold (None: missing), predicted          similarity  gold, score
    entities      gold, predicted (tags)                   answers     gold (list of texts), predicted (text), covered
    retrieval     relevant (id → gain), ranked (ids)
"""
from ..entities import tag_entities
from ..metrics.answers import answer_scores, one_answer
from ..metrics.classes import class_scores
from ..metrics.multilabel import label_scores
from ..metrics.regression import pearson, spearman, value_scores
from ..metrics.retrieval import one_ranking, ranking_scores
from ..metrics.tags import span_errors, tag_scores
from .fields import field_outcome, field_scores
from .roles import EvidenceError


def _of(cases, key):
    return [c[key] for c in cases]


def _optional(cases, key):
    return _of(cases, key) if cases and all(key in c for c in cases) else None


def measure(kind: str, cases: list, settings) -> dict:
    """The metrics of a kind over cases; EvidenceError names a setting or part of a case that is missing."""
    try:
        return _MEASURES[kind](cases, settings)
    except KeyError as error:
        raise EvidenceError(f"evaluation of {kind}: {error} is missing from the settings or a case") from None


def _similarity(cases, settings):
    gold, score = _of(cases, "gold"), _of(cases, "score")
    return {"n": len(cases), "pearson": pearson(gold, score), "spearman": spearman(gold, score),
            "metric": settings["metric"], "normalization": settings["normalization"],
            "scores": [min(score), max(score)] if score else None}


_MEASURES = {
    "fields": field_scores,
    "single_label": lambda c, s: class_scores(
        _of(c, "gold"), _of(c, "predicted"), s["labels"], probabilities=_optional(c, "probabilities"),
        costs=s.get("costs"), bins=s.get("bins", 10)),
    "multilabel": lambda c, s: label_scores(_of(c, "gold"), _of(c, "predicted"), s["labels"],
                                            scores=_optional(c, "scores"), thresholds=s.get("thresholds")),
    "regression": lambda c, s: value_scores(_of(c, "gold"), _of(c, "predicted"), clip=s.get("clip")),
    "entities": lambda c, s: tag_scores(_of(c, "gold"), _of(c, "predicted"), scheme=s["scheme"], repair=s["repair"]),
    "answers": lambda c, s: answer_scores(_of(c, "gold"), _of(c, "predicted"), covered=_optional(c, "covered"),
                                          null_rule=s["null_rule"]),
    "similarity": _similarity,
    "retrieval": lambda c, s: ranking_scores(_of(c, "relevant"), _of(c, "ranked"), cuts=s["cuts"], corpus=s["corpus"]),
}


def outcome(kind: str, case, settings) -> tuple[str, float]:
    """(failure class, value m of the case): "right" for what is right, and a value that is larger where better."""
    if kind == "fields":
        return field_outcome(case)
    if kind == "single_label":
        right = case["gold"] == case["predicted"]
        name = "no answer" if case["predicted"] is None else f"{case['gold']} as {case['predicted']}"
        return ("right" if right else name), float(right)
    if kind == "multilabel":
        gold, predicted = frozenset(case["gold"]), frozenset(case["predicted"])
        wrong = [name for name, own in (("missed", gold - predicted), ("spurious", predicted - gold)) if own]
        both = len(gold) + len(predicted)
        return " and ".join(wrong) or "right", 2 * len(gold & predicted) / both if both else 1.0
    if kind in ("regression", "similarity"):
        if kind == "similarity" or case["gold"] is None:
            return "right", 0.0  # one pair alone has no value: the correlation is of all of them
        error = case["predicted"] - case["gold"]
        close = abs(error) <= settings["tolerance"]
        return ("right" if close else "too high" if error > 0 else "too low"), -abs(error)
    if kind == "entities":
        spans = [tag_entities(case[side], settings["scheme"], settings["repair"]) for side in ("gold", "predicted")]
        errors = span_errors(*spans)
        wrong = [name for name in ("type", "boundary", "both", "missed", "spurious") if errors[name]]
        both = len(spans[0]) + len(spans[1])
        return " and ".join(wrong) or "right", 2 * errors["right"] / both if both else 1.0
    if kind == "answers":
        exact, f1 = one_answer(case["gold"], case["predicted"])
        wrong = "other span" if case["gold"] else "answered the unanswerable"
        name = wrong if case["predicted"] else "no answer"
        return ("right" if exact else name), f1
    if not case["relevant"]:
        return "right", 0.0
    found = one_ranking(case["relevant"], case["ranked"], settings["cuts"][0])
    return ("right" if found["rr"] == 1 else "not first" if found["rr"] else "not found"), found["rr"]
