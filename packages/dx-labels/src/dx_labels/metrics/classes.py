"""Single-label classes: accuracy, macro and micro P/R/F1, confusion, support, costs, calibration."""
import math

from ..calibration.metrics import brier_score, negative_log_likelihood, reliability, top_class_error
from ..entities import F1
from ..scoring import Share
from .common import MetricError, averages, equally_long


def confusion(gold, predicted, labels) -> dict:
    """gold label → predicted label → count; an item without an answer (None) is under ""."""
    equally_long(gold=gold, predicted=predicted)
    table = {g: dict.fromkeys((*labels, ""), 0) for g in labels}
    for i, (g, p) in enumerate(zip(gold, predicted)):
        if g not in table:
            raise MetricError(f"gold[{i}] = {g!r}: expected one of {list(labels)}")
        if p is not None and p not in table:
            raise MetricError(f"predicted[{i}] = {p!r}: expected one of {list(labels)}, or None for no answer")
        table[g][p or ""] += 1
    return table


def counts_of(table) -> dict:
    """class → F1 of a confusion table."""
    found = {}
    for label in table:
        predicted = gold = 0
        for other in table:
            predicted += table[other][label]
        for n in table[label].values():
            gold += n
        found[label] = F1(table[label][label], predicted, gold)
    return found


def class_scores(gold, predicted, labels, *, probabilities=None, costs=None, bins: int = 10) -> dict:
    """Scores of single-label classification.

    Parameters
    ----------
    gold, predicted : labels; predicted None where there is no answer, which is wrong for accuracy
    labels : the ordered label map; macro averages go over all of it, also over labels without support
    probabilities : rows of final probabilities in the order of labels, or None: then there are no calibration figures
    costs : gold label → predicted label ("" for no answer) → cost; what is not given costs 1 where wrong, 0 where right

    Returns
    -------
    dict: accuracy (a Share), macro, micro, classes (F1 with support as `gold`), confusion, coverage and selective risk,
    cost (sum and mean), calibration (nll, brier, ece with its bins and binning) or None

    For exclusive labels and no abstention micro F1 is the accuracy; for labels of other kinds it is not.
    """
    if "" in labels or len(dict.fromkeys(labels)) != len(labels):
        raise MetricError(f"labels {list(labels)}: expected distinct names, none empty")
    table = confusion(gold, predicted, labels)
    counts, n = counts_of(table), len(gold)
    right = [g == p for g, p in zip(gold, predicted)].count(True)
    answered = [p is not None for p in predicted].count(True)
    paid = []
    for g, p in zip(gold, predicted):
        paid.append(float((costs or {}).get(g, {}).get(p or "", 0.0 if g == p else 1.0)))
    found = {"n": n, "accuracy": Share(right, n).to_json(), **averages(counts),
             "classes": {label: one.to_json() for label, one in counts.items()}, "confusion": table,
             "coverage": Share(answered, n).to_json(), "selective_risk": Share(answered - right, answered).to_json(),
             "cost": {"sum": math.fsum(paid), "mean": math.fsum(paid) / n if n else None}, "calibration": None}
    if probabilities is not None and n:
        equally_long(gold=gold, probabilities=probabilities)
        places = [list(labels).index(g) for g in gold]
        found["calibration"] = calibration_figures(probabilities, places, bins)
    return found


def calibration_figures(probabilities, places, bins) -> dict:
    """NLL, Brier score, and the top class's expected calibration error with the bins it comes from."""
    top = [max(range(len(row)), key=lambda c: (row[c], -c)) for row in probabilities]
    confidence = [row[c] for row, c in zip(probabilities, top)]
    right = [int(c == y) for c, y in zip(top, places)]
    nll = negative_log_likelihood(probabilities, places)
    return {"nll": nll if math.isfinite(nll) else None, "impossible": not math.isfinite(nll),
            "brier": brier_score(probabilities, places), "ece": top_class_error(probabilities, places, bins=bins),
            "binning": {"estimator": "top class, mean confidence against share right", "strategy": "uniform",
                        "bins": bins},
            "bins": [{**vars(b), "frequency": b.frequency} for b in reliability(confidence, right, bins=bins)]}
