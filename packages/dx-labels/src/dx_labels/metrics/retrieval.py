"""Rankings: recall, reciprocal rank, nDCG and average precision under fixed candidates."""
import math

import numpy as np

from ..below import log64
from .common import MetricError, equally_long, mean


def _discounts(n) -> list[float]:
    """log 2 / log (rank + 1) for ranks 1..n, in log64."""
    logs = log64(np.arange(2, n + 2, dtype=np.float64)).tolist()
    return [logs[0] / one for one in logs]


def one_ranking(relevant: dict, ranked: list, k: int) -> dict:
    """Scores of one query: relevant is id → gain > 0, ranked the ids from best to worst; cut at k.

    recall : relevant ids among the first k / relevant ids · rr : 1 / rank of the first relevant one within k, else 0
    map : mean over the relevant ids of the precision at their rank within k (those not there count 0)
    ndcg : sum of gain / log2(rank + 1) within k over the same sum of the best order
    """
    if not relevant or any(not gain > 0 for gain in relevant.values()):
        raise MetricError(f"relevant = {relevant!r}: expected at least one id, gains above 0")
    if len(dict.fromkeys(ranked)) != len(ranked):
        raise MetricError("ranked holds an id twice")
    first, hits, precisions, gains, rr = ranked[:k], 0, [], [], 0.0
    discounts = _discounts(max(len(first), min(k, len(relevant)), 1))
    for place, one in enumerate(first):
        if one in relevant:
            hits += 1
            precisions.append(hits / (place + 1))
            gains.append(relevant[one] * discounts[place])
            rr = rr or 1 / (place + 1)
    best = sorted(relevant.values(), reverse=True)[:k]
    return {"recall": hits / len(relevant), "rr": rr, "map": math.fsum(precisions) / len(relevant),
            "ndcg": math.fsum(gains) / math.fsum(g * d for g, d in zip(best, discounts))}


def ranking_scores(relevant, ranked, *, cuts=(1, 10, 100), corpus: str) -> dict:
    """Scores over queries, the mean of each query's.

    Parameters
    ----------
    relevant : for each query id → gain; a query without one is counted and not scored
    ranked : for each query the ids from best to worst, ties already settled
    cuts : the k's · corpus : digest of the candidates that were ranked: figures of two corpora do not compare
    """
    equally_long(relevant=relevant, ranked=ranked)
    if not corpus:
        raise MetricError("corpus is empty: expected the digest of the fixed candidates")
    kept = [(a, b) for a, b in zip(relevant, ranked) if a]
    found = {"n": len(kept), "without_relevant": len(relevant) - len(kept), "corpus": corpus, "cuts": {}}
    for k in cuts:
        each = [one_ranking(a, b, k) for a, b in kept]
        found["cuts"][str(k)] = {"recall": mean(e["recall"] for e in each), "mrr": mean(e["rr"] for e in each),
                                 "ndcg": mean(e["ndcg"] for e in each), "map": mean(e["map"] for e in each)}
    return found
