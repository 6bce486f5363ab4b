"""Two stages: candidates from reusable state, then pairs scored jointly; the first stage's recall is the ceiling."""
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .errors import ReadoutError, require
from .scores import Scores, ranking, top_k


@dataclass(frozen=True)
class Candidate:
    """One document that the first stage found: its stable id, the score and its type, and its rank from 0."""

    document_id: str
    score: float
    score_type: str
    rank: int


@dataclass(frozen=True)
class Candidates:
    """The first stage's answer to one query. release : digest of what made it."""

    query_id: str
    found: tuple[Candidate, ...]
    release: str


def candidates(query_id, scores: Scores, k: int) -> Candidates:
    """The k best documents of one query; equal scores go to the document that stands first.

    scores : of one query, values (documents,), axis the document ids (PairMatrix.of)
    """
    require(scores.values.ndim == 1 and scores.axis is not None, "scores.axis", scores.axis,
            "document ids: one score each")
    require(len(scores.axis) == len(dict.fromkeys(scores.axis)), "scores.axis", scores.axis, "different document ids")
    found = [Candidate(scores.axis[place], float(scores.values[place]), scores.type.value, rank)
             for rank, place in enumerate(top_k(scores, k).tolist())]
    return Candidates(query_id, tuple(found), scores.release)


@dataclass(frozen=True)
class Reranked:
    """The second stage's answer: document ids from best to worst with their typed scores; equal scores keep the
    candidates' order. parent : release of the candidates, release : of the reranker."""

    query_id: str
    document_ids: tuple
    scores: tuple[float, ...]
    score_type: str
    parent: str
    release: str


def rerank(found: Candidates, scored) -> Reranked:
    """Candidates in the order of a cross-encoder's scores (PairScores of exactly these documents).

    ReadoutError: a candidate without a score, a score of a document that is no candidate, several outputs a pair.
    """
    wanted = [c.document_id for c in found.found]
    values = scored.scores.values
    require(values.ndim == 1, "scores.shape", values.shape, "one score a pair")
    places = {id_: place for place, id_ in enumerate(scored.ids)}
    for id_ in wanted:
        require(id_ in places, f"scores[{id_!r}]", None, "a score of every candidate")
    for id_ in scored.ids:
        require(id_ in wanted, f"scores[{id_!r}]", id_, "candidates only: the second stage adds no document")
    values = values[[places[id_] for id_ in wanted]]
    order = ranking(replace(scored.scores, values=values)).tolist()
    return Reranked(found.query_id, tuple(wanted[i] for i in order), tuple(float(values[i]) for i in order),
                    scored.scores.type.value, found.release, scored.scores.release)


@dataclass(frozen=True)
class RecallReport:
    """candidate_recall : share of the relevant documents among the candidates, the ceiling of every order of them ·
    final_recall : share among the first k after the second stage · lost : relevant documents that no reranker can
    bring back, in the order given · k0, k : sizes of the two lists"""

    candidate_recall: float
    final_recall: float
    lost: tuple
    k0: int
    k: int


def recall_report(relevant: Sequence, found: Candidates, final: Reranked, k: int) -> RecallReport:
    """Recall before and after the second stage for one query.

    ReadoutError: no relevant document, the lists belong to different queries or stages, k larger than the candidates,
    or a final list that holds what the candidates do not (its recall could exceed the ceiling).
    """
    relevant = list(dict.fromkeys(relevant))
    require(relevant, "relevant", relevant, "at least one document")
    require(final.query_id == found.query_id, "final.query_id", final.query_id, f"{found.query_id!r}")
    require(final.parent == found.release, "final.parent", final.parent, f"{found.release}, the candidates'")
    kept = [c.document_id for c in found.found]
    require(0 < k <= len(kept), "k", k, f"1..{len(kept)} candidates")
    for id_ in final.document_ids:
        if id_ not in kept:
            raise ReadoutError("final.document_ids", id_, "candidates only")
    first = [id_ for id_ in relevant if id_ in kept]
    last = [id_ for id_ in relevant if id_ in final.document_ids[:k]]
    lost = tuple(id_ for id_ in relevant if id_ not in kept)
    return RecallReport(len(first) / len(relevant), len(last) / len(relevant), lost, len(kept), k)
