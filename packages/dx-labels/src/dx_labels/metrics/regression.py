"""Values: errors, correlations, what was left out, and errors by the target's size."""
import math

from .common import MetricError, equally_long, mean


def ranks(values) -> list[float]:
    """Ranks from 1, equal values share the mean of theirs."""
    order, found = sorted(range(len(values)), key=lambda i: values[i]), [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            found[i] = (begin + 1 + end) / 2
        begin = end
    return found


def pearson(x, y) -> float | None:
    """Correlation of two lists: Sxy / sqrt(Sxx · Syy), exact sums of products of the deviations from the means,
    held within -1..1. Where Sxx · Syy leaves binary64's range, the product of the two roots. None for fewer than
    two items or a side that does not vary."""
    n = equally_long(x=x, y=y)
    if n < 2:
        return None
    mx, my = mean(x), mean(y)
    dx, dy = [a - mx for a in x], [b - my for b in y]
    sxx, syy = math.fsum(a * a for a in dx), math.fsum(b * b for b in dy)
    if sxx == 0 or syy == 0 or min(x) == max(x) or min(y) == max(y):
        return None
    both = sxx * syy
    scale = math.sqrt(both) if 0 < both < math.inf else math.sqrt(sxx) * math.sqrt(syy)
    return max(-1.0, min(1.0, math.fsum(a * b for a, b in zip(dx, dy)) / scale))


def spearman(x, y) -> float | None:
    """Pearson of the ranks; ties share their mean rank."""
    return pearson(ranks(x), ranks(y))


def value_scores(gold, predicted, *, clip=None, bands: int = 4) -> dict:
    """Errors of predicted values.

    Parameters
    ----------
    gold : numbers, None where the target is missing: such items are counted and not scored
    predicted : finite numbers
    clip : (low, high) that predictions are held within before scoring, or None; how many it moved is told
    bands : by how many bands of the target's rank residuals are told

    Returns
    -------
    dict: n, missing, clipped, mae, mse, rmse, bias (mean of predicted - gold), pearson, spearman, target (lowest,
    highest), bands (of the target, ascending: n, lowest, highest, bias, mae)
    """
    equally_long(gold=gold, predicted=predicted)
    kept = [(float(g), float(p)) for g, p in zip(gold, predicted) if g is not None]
    for name, side in (("gold", [g for g, _ in kept]), ("predicted", [float(p) for p in predicted])):
        for value in side:
            if not math.isfinite(value):
                raise MetricError(f"{name} holds {value}: expected finite numbers, None for a missing target")
    clipped = 0
    if clip is not None:
        clipped = [not clip[0] <= p <= clip[1] for _, p in kept].count(True)
        kept = [(g, min(max(p, float(clip[0])), float(clip[1]))) for g, p in kept]
    errors = [p - g for g, p in kept]
    mse = mean(e * e for e in errors)
    g, p = [a for a, _ in kept], [b for _, b in kept]
    order, parts = sorted(range(len(g)), key=lambda i: g[i]), []
    for k in range(bands):
        own = order[k * len(order) // bands:(k + 1) * len(order) // bands]
        if own:
            parts.append({"n": len(own), "low": g[own[0]], "high": g[own[-1]], "bias": mean(errors[i] for i in own),
                          "mae": mean(abs(errors[i]) for i in own)})
    return {"n": len(kept), "missing": len(gold) - len(kept), "clipped": clipped,
            "clip": None if clip is None else [float(c) for c in clip], "mae": mean(abs(e) for e in errors),
            "mse": mse, "rmse": None if mse is None else math.sqrt(mse), "bias": mean(errors),
            "pearson": pearson(p, g), "spearman": spearman(p, g),
            "target": [min(g), max(g)] if g else None, "bands": parts}
