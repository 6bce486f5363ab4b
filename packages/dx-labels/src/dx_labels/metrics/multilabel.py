"""Labels that do not exclude each other: per-label and averaged F1, average precision, prevalence, empty answers."""
import math

from ..entities import F1
from ..scoring import Share
from .common import MetricError, averages, equally_long, mean


def average_precision(scores, positive) -> float | None:
    """Sum over distinct scores, falling, of (recall gained) * precision; equal scores count together. None without a
    positive (scikit-learn says 0)."""
    equally_long(scores=scores, positive=positive)
    if any(s != s for s in scores):
        raise MetricError("scores holds a NaN")
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    every, right, before, terms = [bool(p) for p in positive].count(True), 0, 0, []
    for place, i in enumerate(order):
        right += bool(positive[i])
        if place + 1 == len(order) or scores[order[place + 1]] < scores[i]:
            terms.append((right - before) / every * (right / (place + 1)) if every else 0.0)
            before = right
    return math.fsum(terms) if every else None


def label_scores(gold, predicted, labels, *, scores=None, thresholds=None) -> dict:
    """Scores of multilabel classification.

    Parameters
    ----------
    gold, predicted : lists of the labels of each item
    labels : the ordered label map
    scores : rows of scores in the order of labels, or None: then there is no average precision
    thresholds : label → threshold that made `predicted`, for the record

    Returns
    -------
    dict: macro, micro, labels (F1, prevalence, average precision), mean_average_precision over labels with positives,
    exact (Share of items with exactly the gold set), cardinality (mean labels an item: gold, predicted), empty (items
    without gold, without answer, and both: an empty answer to an empty item is right)
    """
    n = equally_long(gold=gold, predicted=predicted)
    known = frozenset(labels)
    for name, side in (("gold", gold), ("predicted", predicted)):
        for i, row in enumerate(side):
            wrong = [label for label in row if label not in known]
            if wrong or len(dict.fromkeys(row)) != len(row):
                raise MetricError(f"{name}[{i}] = {list(row)!r}: expected distinct labels of {list(labels)}")
    counts, more = {}, {}
    for column, label in enumerate(labels):
        of_gold, of_predicted = [label in row for row in gold], [label in row for row in predicted]
        tp = [g and p for g, p in zip(of_gold, of_predicted)].count(True)
        counts[label] = F1(tp, of_predicted.count(True), of_gold.count(True))
        more[label] = {"prevalence": Share(of_gold.count(True), n).to_json(), "average_precision": None
                       if scores is None else average_precision([row[column] for row in scores], of_gold)}
    exact = [sorted(g) == sorted(p) for g, p in zip(gold, predicted)].count(True)
    empty = [(not g, not p) for g, p in zip(gold, predicted)]
    return {"n": n, **averages(counts), "labels": {k: {**c.to_json(), **more[k]} for k, c in counts.items()},
            "mean_average_precision": mean(m["average_precision"] for m in more.values()
                                           if m["average_precision"] is not None),
            "exact": Share(exact, n).to_json(), "thresholds": thresholds,
            "cardinality": {"gold": mean(len(g) for g in gold), "predicted": mean(len(p) for p in predicted)},
            "empty": {"gold": [a for a, _ in empty].count(True), "predicted": [b for _, b in empty].count(True),
                      "both": empty.count((True, True))}}
