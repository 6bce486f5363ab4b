"""CrossEncoder.predict: pairs in any order, scored in batches of like length, scores in the order of the input."""
from collections.abc import Callable, Sequence

import numpy as np

from ..errors import require
from ..scores import Scores, ScoreType, activate


def default_activation(num_labels: int) -> str:
    """What predict applies when nothing is configured: "sigmoid" for one output, "identity" for more. To be written
    into a release when such a checkpoint is taken over; nothing here calls it."""
    require(type(num_labels) is int and num_labels > 0, "num_labels", num_labels, "1 or more")
    return "sigmoid" if num_labels == 1 else "identity"


def predict_pairs(score: Callable[[list], np.ndarray], pairs: Sequence, ids: Sequence, *, activation: str, release: str,
                  outputs: Sequence[str] | None = None, batch: int = 32) -> tuple[tuple, Scores]:
    """(ids, Scores) in the order of the input; values (pairs,), or (pairs, outputs) where there are several.

    Parameters
    ----------
    score : callable (list of pairs) → float32 logits (pairs, outputs), of a model that is in evaluation
    pairs : (query, document) texts · ids : a stable id a pair, all different
    activation : "identity", "sigmoid" or "softmax" (predict's apply_softmax), stated and never guessed
    release : id of the release that scores · outputs : names of several outputs, None for one
    batch : pairs of one call; they are sorted by the number of characters, longest first, equal ones in their order

    Raises
    ------
    ReadoutError
        Ids that are not all different or of another number; a softmax over one output; logits of another shape.
    """
    pairs, ids = list(pairs), tuple(ids)
    require(len(ids) == len(pairs) == len(dict.fromkeys(ids)), "ids", list(ids), f"{len(pairs)} different ids")
    require(type(batch) is int and batch > 0, "batch", batch, "1 or more")
    require(outputs is None or len(outputs) > 1, "outputs", outputs, "two names or more, or None for one output")
    width = 1 if outputs is None else len(outputs)
    schedule = sorted(range(len(pairs)), key=lambda i: (-(len(pairs[i][0]) + len(pairs[i][1])), i))
    values = np.empty((len(pairs), width), np.float32)
    for at in range(0, len(pairs), batch):
        places = schedule[at:at + batch]
        found = np.asarray(score([pairs[i] for i in places]))
        require(found.dtype == np.float32 and found.shape == (len(places), width), "score",
                f"{found.dtype} {found.shape}", f"float32 ({len(places)}, {width})")
        values[places] = found  # the inverse permutation
    logits = Scores(values[:, 0] if outputs is None else values, ScoreType.LOGIT, release, outputs)
    return ids, activate(logits, activation)
