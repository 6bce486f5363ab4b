"""BertPooler and the wrappers for sequences, tokens and questions, on contextual rows; in evaluation (no dropout)."""
import numpy as np

from ..errors import ReadoutError, require
from ..heads.answers import AnswerHead
from ..heads.base import IGNORED, int32, mask8
from ..heads.classification import SingleLabelHead
from ..heads.multilabel import MultilabelHead
from ..heads.regression import RegressionHead
from ..heads.tokens import TokenHead
from ..pooling import Pooling

IGNORED_THERE = -100  # the default of the loss there
PROBLEM_TYPES = {"regression": RegressionHead, "single_label_classification": SingleLabelHead,
                 "multi_label_classification": MultilabelHead}


def bert_pooler(hidden, attention, weight, bias) -> np.ndarray:
    """tanh(W h + b) of physical row 0: (B, D) float32.

    Parameters
    ----------
    hidden : (B, S, D) float32 · attention : (B, S) bool · weight, bias : float32 (D, D), (D,)

    Raises
    ------
    ReadoutError
        An example whose row 0 is padding; shapes that do not fit.
    """
    attention = np.asarray(attention)
    require(attention.ndim == 2 and attention.dtype == np.bool_, "attention", f"{attention.dtype} {attention.shape}",
            "bool (B, S)")
    for b in np.flatnonzero(~attention[:, 0]):
        raise ReadoutError(f"attention[{b}, 0]", False, "True: BertPooler reads physical row 0 and searches no mask")
    return Pooling("bert_pooler").forward(hidden, attention, {"pooler.weight": weight, "pooler.bias": bias}).vectors


def guessed_problem_type(num_labels: int, dtype) -> str:
    """The problem type that the wrapper guesses from number of labels and dtype of the labels when its config has none.
    To be written into a manifest when such a checkpoint is taken over; nothing here calls it."""
    if num_labels == 1:
        return "regression"
    whole = np.dtype(dtype) in (np.dtype(np.int64), np.dtype(np.int32))
    return "single_label_classification" if whole else "multi_label_classification"


def bert_sequence_classification(hidden, attention, pooler, head, targets=None, *, problem_type: str) -> dict:
    """{"logits" (B, C), "loss" (LocalLoss, or None without targets), "readout" (B, D)}.

    Parameters
    ----------
    hidden, attention : as bert_pooler · pooler : (weight, bias)
    problem_type : "regression", "single_label_classification" or "multi_label_classification": declared, never guessed
    head : RegressionHead, SingleLabelHead or MultilabelHead, the one of the problem type
    targets : as the head's loss takes them; whole numbers for both classifications
    """
    require(problem_type in PROBLEM_TYPES, "output.problem_type", problem_type, ", ".join(PROBLEM_TYPES))
    require(type(head) is PROBLEM_TYPES[problem_type], "head", type(head).__name__,
            f"{PROBLEM_TYPES[problem_type].__name__}, for {problem_type}")
    readout = bert_pooler(hidden, attention, *pooler)
    logits = head.forward(readout)
    return {"logits": logits, "loss": None if targets is None else head.loss(logits, targets), "readout": readout}


def bert_token_classification(hidden, attention, head: TokenHead, targets=None) -> dict:
    """{"logits" (B, S, C), zeros in padding; "loss" (LocalLoss, or None without targets)}.

    targets : (B, S) whole numbers, -100: not counted. ReadoutError for a target on a row of padding.
    """
    logits = head.forward(hidden, attention)
    if targets is None:
        return {"logits": logits, "loss": None}
    targets = int32("targets", targets, logits.shape[:2])
    counted = targets != IGNORED_THERE
    for b, s in np.argwhere(counted & ~np.asarray(attention, bool)):
        raise ReadoutError(f"targets[{b}, {s}]", int(targets[b, s]), "-100: the row is padding")
    return {"logits": logits, "loss": head.loss(logits, np.where(counted, targets, IGNORED), counted)}


def bert_question_answering(hidden, candidates, head: AnswerHead, positions=None) -> dict:
    """{"start" (B, S), "end" (B, S), "loss" (LocalLoss, or None without positions)}.

    candidates : "physical", every row, padding too, as the wrapper has it; or the rows (B, S) bool that compete
    positions : (B, 2) first and last row, or (-1, -1): not counted. ReadoutError for a position that is no candidate
        and for a start after its end
    """
    hidden = np.asarray(hidden)
    require(hidden.ndim == 3, "hidden.shape", hidden.shape, "(B, S, D)")
    physical = isinstance(candidates, str) and candidates == "physical"
    mask = np.ones(hidden.shape[:2], np.bool_) if physical else mask8("candidates", candidates, hidden.shape[:2]) != 0
    logits = head.forward(hidden, mask)
    loss = None if positions is None else head.loss(logits, positions, mask)
    return {"start": np.ascontiguousarray(logits[:, :, 0]), "end": np.ascontiguousarray(logits[:, :, 1]), "loss": loss}
