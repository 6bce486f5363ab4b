"""Contrastive training of vectors: who is a positive of whom, who takes part, and the loss with its gradients."""
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from .below import (canonical_bytes, contrastive_backward, l2_normalize_backward, l2_normalize_forward, linear_backward,
                    linear_forward)
from .examples import TrainingError

GATHERS = ("attached", "detached")
SIMILARITIES = ("cosine", "dot")


@dataclass(frozen=True)
class ContrastiveContract:
    """Everything of a contrastive objective that decides a bit; `digest` joins the fingerprint of a run.

    temperature : divides the scores, in training only · similarity : "cosine" (both sides normalized here, and the
    gradient goes through it) or "dot" · symmetric : adds the document → query term, each with weight one half ·
    in_batch_negatives : whether candidates of other anchors are negatives (False: an anchor's own candidates only) ·
    miner : revision of where hard negatives come from · hard_weight : multiplies a hard negative's term · gather :
    whether vectors of other workers get gradients
    """

    temperature: float
    similarity: str = "cosine"
    symmetric: bool = False
    in_batch_negatives: bool = True
    miner: str = "none"
    hard_weight: float = 1.0
    gather: str = "attached"

    def __post_init__(self):
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature = {self.temperature}: expected a finite number > 0")
        if self.similarity not in SIMILARITIES:
            raise ValueError(f"similarity = {self.similarity!r}: expected one of {', '.join(SIMILARITIES)}")
        if self.gather not in GATHERS:
            raise ValueError(f"gather = {self.gather!r}: expected one of {', '.join(GATHERS)}")
        if not 0 < self.hard_weight < float("inf"):
            raise ValueError(f"hard_weight = {self.hard_weight}: expected a finite number > 0")

    def digest(self) -> str:
        """SHA-256 (hex) of the contract's canonical JSON."""
        return hashlib.sha256(canonical_bytes(asdict(self))).hexdigest()


@dataclass(frozen=True, eq=False)
class Relations:
    """Masks over (anchors, candidates), uint8, made from ids: positive, admitted; weight float64 or None (ones)."""

    anchors: tuple
    candidates: tuple
    positive: np.ndarray
    admitted: np.ndarray
    weight: np.ndarray | None


def relations(anchors: Sequence, candidates: Sequence, positives: Iterable[tuple], contract: ContrastiveContract, *,
              groups: Mapping | None = None, hard: Iterable[tuple] = ()) -> Relations:
    """The masks of a batch, from stable ids, after its final layout: nothing is assumed about places.

    Parameters
    ----------
    anchors : different ids · candidates : ids, a document that stands twice has its id twice and is a positive twice
    positives, hard : pairs (anchor id, candidate id) of known matches and of mined negatives
    groups : id → semantic group; a candidate of its anchor's group that is no declared positive is a likely match: it
        is not admitted, instead of being pushed away

    Raises
    ------
    TrainingError
        An anchor without a positive among the candidates; a pair that is both positive and hard; a repeated anchor.
    """
    anchors, candidates, groups = tuple(anchors), tuple(candidates), dict(groups or {})
    if len(dict.fromkeys(anchors)) != len(anchors):
        raise TrainingError("an anchor id stands twice: expected different ids")
    wanted, mined = dict.fromkeys(positives), dict.fromkeys(hard)
    for pair in wanted:
        if pair in mined:
            raise TrainingError(f"the pair {pair!r} is a positive and a hard negative")
    shape = len(anchors), len(candidates)
    positive, admitted, weight = np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), np.ones(shape)
    for i, anchor in enumerate(anchors):
        for j, candidate in enumerate(candidates):
            pair, group = (anchor, candidate), groups.get(anchor)
            positive[i, j] = pair in wanted
            same = group is not None and groups.get(candidate) == group
            admitted[i, j] = pair in wanted or pair in mined or (contract.in_batch_negatives and not same)
            weight[i, j] = contract.hard_weight if pair in mined else 1.0
        if not positive[i].any():
            raise TrainingError(f"anchor {anchor!r} has no positive among the candidates")
    return Relations(anchors, candidates, positive, admitted, weight if mined and contract.hard_weight != 1 else None)


def reversed_relations(found: Relations) -> Relations:
    """The document → query relation of the same masks: documents that are no query's positive have no term.

    The reverse is a statement of its own: a document of several queries has all of them as positives."""
    keep = np.flatnonzero(found.positive.any(axis=0))
    turn = lambda mask: np.ascontiguousarray(mask.T[keep])  # noqa: E731
    return Relations(tuple(found.candidates[j] for j in keep), found.anchors, turn(found.positive),
                     turn(found.admitted), None if found.weight is None else turn(found.weight))


@dataclass(frozen=True, eq=False)
class ContrastiveResult:
    """terms : name → (numerator, denominator) of "query_to_document" and, when symmetric, "document_to_query" · loss :
    the means, added with their weights · dquery, ddocument : float32 gradients of scale * loss · losses : float64, one
    an anchor"""

    terms: dict[str, tuple[float, int]]
    loss: float
    dquery: np.ndarray
    ddocument: np.ndarray
    losses: np.ndarray


def unit_rows(x: np.ndarray, name: str):
    """(unit rows, norms); TrainingError for a row of norm 0: an all-padding readout has no direction."""
    y, norms = np.empty_like(x), np.empty(len(x), np.float32)
    try:
        l2_normalize_forward(x, y, norms)
    except ValueError as error:
        raise TrainingError(f"{name}: {error}") from None
    return y, norms


def contrastive_loss(query: np.ndarray, document: np.ndarray, found: Relations, contract: ContrastiveContract, *,
                     scale: float = 1.0, denominator: int | None = None) -> ContrastiveResult:
    """Multi-positive contrastive loss of vectors, with gradients.

    query : float32 (anchors, d) · document : float32 (candidates, d) · scale : the loss's one factor · denominator :
    anchors of the whole batch when this is a part of it (not with symmetric)

    Order: both sides normalized (cosine); scores by dot16; the loss kernel; gradients of the scores, the reverse term's
    added to the first's, each with half the scale; products; the normalization's adjoint.
    """
    if (len(query), len(document)) != found.positive.shape:
        raise ValueError(f"{len(query)} queries and {len(document)} documents: expected {found.positive.shape}")
    if contract.symmetric and denominator is not None:
        raise ValueError("denominator is given with symmetric = True: the reverse term has its own count")
    q, d, undo = query, document, None
    if contract.similarity == "cosine":
        (q, q_norms), (d, d_norms) = unit_rows(query, "query"), unit_rows(document, "document")
        undo = q_norms, d_norms
    scores = np.empty(found.positive.shape, np.float32)
    linear_forward(q, d, None, scores)
    part = 0.5 if contract.symmetric else 1.0
    total, dscores, losses = _term(scores, found, contract, part * scale, denominator)
    terms = {"query_to_document": total}
    loss = part * (total[0] / (denominator or total[1]))
    if contract.symmetric:
        back = reversed_relations(found)
        keep = np.flatnonzero(found.positive.any(axis=0))
        reverse, dreverse, _ = _term(np.ascontiguousarray(scores.T[keep]), back, contract, part * scale, None)
        dscores[:, keep] += dreverse.T
        terms["document_to_query"] = reverse
        loss = loss + part * (reverse[0] / reverse[1])
    dq, dd = np.empty_like(q), np.empty_like(d)
    linear_backward(dscores, q, d, dq, dd, None)
    if undo is not None:
        l2_normalize_backward(dq.copy(), q, undo[0], dq)
        l2_normalize_backward(dd.copy(), d, undo[1], dd)
    return ContrastiveResult(terms, loss, dq, dd, losses)


def _term(scores, found, contract, scale, denominator):
    dscores, losses = np.empty_like(scores), np.empty(len(scores))
    total = contrastive_backward(scores, found.positive, dscores, temperature=contract.temperature,
                                 admit=found.admitted, weight=found.weight, scale=scale, denominator=denominator,
                                 losses=losses)
    return total, dscores, losses
