"""Token losses over contextual rows: next-token readout offset or the masked row itself, which are two objectives."""
import numpy as np

from ..below import cross_entropy_backward, linear_backward, linear_forward
from ..readout.errors import require


def language_loss(rows: np.ndarray, weight: np.ndarray, targets: np.ndarray, scale: float = 1.0):
    """Cross-entropy of a vocabulary projection.

    Parameters
    ----------
    rows : float32 (S, hidden) · weight : float32 (vocabulary, hidden) · targets : int32 (S,), -1: not supervised

    Returns
    -------
    (numerator, denominator), drows, dweight : the sum of losses and the number of supervised rows; gradients of
    scale * numerator / denominator
    """
    logits = np.empty((len(rows), len(weight)), np.float32)
    dlogits = np.empty_like(logits)
    linear_forward(rows, weight, None, logits)
    totals = cross_entropy_backward(logits, np.asarray(targets, np.int32), None, None, dlogits, scale=scale)
    drows, dweight = np.empty_like(rows), np.empty_like(weight)
    linear_backward(dlogits, rows, weight, drows, dweight, None)
    return totals, drows, dweight


def masked_next_token_loss(rows: np.ndarray, weight: np.ndarray, ids, masked, scale: float = 1.0):
    """Masked next-token prediction: the masked token at place i is read from row i - 1, where a causal checkpoint's
    vocabulary projection expects its next token. (Reading it from row i is masked-language modelling, another loss.)

    ids : the original token ids (S,) · masked : places that were masked in the input, each at least 1
    Returns as language_loss. ReadoutError: no place, one out of range, or place 0, which no row precedes.
    """
    ids, masked = np.asarray(ids, np.int32), np.asarray(masked, np.int64)
    require(len(masked) > 0, "masked", [], "at least one place")
    for place in masked.tolist():
        require(1 <= place < len(ids), "masked", place, f"1..{len(ids) - 1}: row {place} - 1 predicts it")
    targets = np.full(len(ids), -1, np.int32)
    targets[masked - 1] = ids[masked]
    return language_loss(rows, weight, targets, scale)
