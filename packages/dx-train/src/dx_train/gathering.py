"""Candidates of several workers: laid out by worker, found again by id, with or without gradients for the others."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .contrastive import ContrastiveContract, ContrastiveResult, Relations, contrastive_loss
from .examples import TrainingError


@dataclass(frozen=True, eq=False)
class WorkerSide:
    """One worker's vectors: query_ids, query float32 (queries, d), document_ids, document float32 (documents, d)."""

    query_ids: tuple
    query: np.ndarray
    document_ids: tuple
    document: np.ndarray


@dataclass(frozen=True, eq=False)
class WorkerGradients:
    """Gradients of one worker's own vectors, and its share of the loss."""

    result: ContrastiveResult
    dquery: np.ndarray
    ddocument: np.ndarray


def gathered_contrastive(workers: Sequence[WorkerSide], relate: Callable[[tuple, tuple], Relations],
                         contract: ContrastiveContract, scale: float = 1.0) -> list[WorkerGradients]:
    """Each worker's anchors against the candidates of all workers, in the order of the workers.

    relate(anchor ids, candidate ids) gives the masks of a worker's anchors for the gathered layout: positives are found
    by id there, wherever they came to lie. The loss is the mean over all workers' anchors.

    A candidate takes part in the denominators of other workers' anchors in both modes. Under "attached" their gradients
    come back to it, added in the order of the workers (plain additions, the first worker's as it is); under "detached"
    it gets its own worker's alone: equal losses, another training.
    """
    if contract.symmetric:
        raise TrainingError("a symmetric term needs all anchors of a document: compute the loss over the whole batch")
    candidates = tuple(id_ for worker in workers for id_ in worker.document_ids)
    documents = np.ascontiguousarray(np.concatenate([worker.document for worker in workers]))
    count = sum(len(worker.query_ids) for worker in workers)  # exact: whole numbers
    results = [contrastive_loss(worker.query, documents, relate(worker.query_ids, candidates), contract, scale=scale,
                                denominator=count) for worker in workers]
    found, at = [], 0
    for own, worker in enumerate(workers):
        mine = slice(at, at + len(worker.document_ids))
        at = mine.stop
        senders = results if contract.gather == "attached" else [results[own]]
        ddocument = senders[0].ddocument[mine].copy()
        for sender in senders[1:]:
            ddocument += sender.ddocument[mine]
        found.append(WorkerGradients(results[own], results[own].dquery, ddocument))
    return found
