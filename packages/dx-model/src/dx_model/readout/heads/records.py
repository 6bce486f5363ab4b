"""The record of a head: everything but its tensors that makes its outputs mean what they mean, and a digest of all."""
import hashlib
from dataclasses import asdict

import numpy as np

from ...canonical_json import canonical
from ..errors import ReadoutError
from .answers import AnswerabilityRule, AnswerHead, NullRule
from .classification import MultipleChoiceHead, SingleLabelHead
from .crf import CrfHead
from .multilabel import MultilabelHead
from .regression import RegressionHead
from .span_scores import BiaffineHead, SpanEnumerationHead
from .tokens import TokenHead

SCORES = {"regression": "values"}  # what a head gives before any activation; the others give logits


def _numbers(values):
    return None if values is None else [float(v) for v in values]


def _own(head) -> dict:
    """The settings of one kind of head."""
    if isinstance(head, RegressionHead):
        return {"targets": asdict(head.targets), "objective": asdict(head.objective),
                "domain": None if head.domain is None else [None if d is None else _numbers(d) for d in head.domain]}
    if isinstance(head, MultilabelHead):
        return {"thresholds": list(head.thresholds), "positive": _numbers(head.positive),
                "negative": _numbers(head.negative), "gamma": head.gamma}
    if isinstance(head, CrfHead):
        return {"tag_scheme": None if head.scheme is None else head.scheme.scheme}
    if isinstance(head, AnswerHead):
        rule = head.no_answer
        name = {NullRule: "null_row", AnswerabilityRule: "answerability", type(None): "none"}[type(rule)]
        return {"max_answer_length": head.max_answer_length, "no_answer": name,
                "rule": None if rule is None else asdict(rule)}
    if isinstance(head, BiaffineHead | SpanEnumerationHead):
        return {"max_length": head.max_length}
    if isinstance(head, SingleLabelHead | MultipleChoiceHead | TokenHead):
        return {}
    raise ReadoutError("head", type(head).__name__, "a task head")


def _jsonable(value):
    if isinstance(value, dict):
        return {k: _jsonable(v) for k, v in value.items()}
    return [_jsonable(v) for v in value] if isinstance(value, tuple | list) else value


def head_record(head) -> dict:
    """kind, ordered labels, type of the scores, dropout, shapes of the parameters, and the head's own settings."""
    own, labels = _own(head), getattr(head, "labels", None)
    dropout = getattr(head, "dropout", None)
    return _jsonable({"kind": head.kind, "labels": None if labels is None else labels.names,
                      "score_type": SCORES.get(head.kind, "logits"),
                      "dropout": 0.0 if dropout is None else dropout.rate,
                      "parameters": {name: list(p.shape) for name, p in head.parameters().items()}, **own})


def head_digest(head) -> str:
    """SHA-256 of the canonical record and of every parameter's bytes, in the parameters' order."""
    h = hashlib.sha256(canonical(head_record(head)))
    for parameter in head.parameters().values():
        h.update(np.ascontiguousarray(parameter, "<f4").tobytes())
    return h.hexdigest()
