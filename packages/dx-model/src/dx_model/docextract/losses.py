"""The local losses of docextract's heads: numerators, denominators and gradients of the logits.

What belongs to a whole batch (scales, sums over examples) is the caller's: each term is scaled by one binary64 factor,
term weight / batch size, inside its single rounding to binary32 (numerics.md).
"""
from dataclasses import dataclass, field

import numpy as np

from ..below import cross_entropy_backward, cross_entropy_forward, ieee_mode, run_loss
from ..loss_part import LossPart
from ..workspace import Workspace
from .config import DocExtractConfig
from .model import Outputs

TERMS = ("tag", "run", "role", "doc", "item", "key_value")
HEAD_OF = {"tag": "tag", "run": "tag", "role": "role", "doc": "doc", "item": "pointer", "key_value": "pointer"}


def _none():
    return np.zeros(0, np.int32)


@dataclass
class Targets:
    """What one window should give; int32 arrays, -1 where nothing is known.

    tag, role (n,): classes of the tag and role heads · doc: document type · item, key_value (n,): the word each word
    points at · run_fields (m,) and run_places (q, 3) of (term, first word, last word): for each field whose value is
    known, every run of words where it stands (none: the field has no value), terms ascending.
    """

    tag: np.ndarray | None = None
    role: np.ndarray | None = None
    doc: int = -1
    item: np.ndarray | None = None
    key_value: np.ndarray | None = None
    run_fields: np.ndarray = field(default_factory=_none)
    run_places: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int32))


class Losses:
    """The active loss terms of a run.

    weights: term → weight above 0 (tag, run, role, doc, item, key_value) · field_weight: cross-entropy weight of B- and
    I- tags; O weighs 1
    """

    def __init__(self, config: DocExtractConfig, weights: dict[str, float], field_weight: float = 3.0):
        unknown = [name for name in weights if name not in TERMS]
        if unknown:
            raise ValueError(f"weights has the term {unknown[0]!r}: expected some of {', '.join(TERMS)}")
        self.config = config
        self.weights = {name: float(weights[name]) for name in TERMS if weights.get(name)}
        self.heads = tuple(dict.fromkeys(HEAD_OF[name] for name in self.weights))
        self.tag_weight = np.full(config.num_tags, float(field_weight))
        self.tag_weight[0] = 1.0
        self.repeated = config.repeated_mask()

    @ieee_mode()
    def run(self, outputs: Outputs, targets: Targets, factor: float | None,
            workspace: Workspace) -> tuple[dict[str, LossPart], Outputs]:
        """Terms of one example and, unless factor is None, the gradients of its logits.

        factor: 1 / batch size; each term's gradient carries weight * factor as its one scale. Terms whose targets
        count nothing give 0 and zero gradients. The tag logits' gradient is that of tag plus that of run.
        """
        parts, douts = {}, Outputs()
        for name, weight in self.weights.items():
            scale = None if factor is None else weight * factor
            logits = getattr(outputs, "tag" if name == "run" else name)
            out = None if scale is None else workspace.take(f"dlogits_{name}", np.atleast_2d(logits).shape)
            if name == "run":
                parts[name] = self._run_term(logits, targets, scale, out)
                if out is None:
                    continue
                if douts.tag is not None:
                    np.add(douts.tag, out, out=out)
                douts.tag = out
                continue
            target = np.array([targets.doc], np.int32) if name == "doc" else getattr(targets, name)
            if target is None:
                target = np.full(len(logits), -1, np.int32)
            parts[name] = self._class_term(np.atleast_2d(logits), target, self.tag_weight if name == "tag" else None,
                                           scale, out)
            if out is not None:
                setattr(douts, name, out)
        return parts, douts

    def _class_term(self, logits, target, weight, scale, out) -> LossPart:
        if scale is None:
            return LossPart(*cross_entropy_forward(logits, target, weight))
        return LossPart(*cross_entropy_backward(logits, target, weight, None, out, scale=scale))

    def _run_term(self, logits, targets: Targets, scale, out) -> LossPart:
        count = len(targets.run_fields)
        losses = np.empty(count)
        inner = 1.0 if scale is None or not count else scale / count
        return LossPart(*run_loss(logits, self.repeated, targets.run_fields, targets.run_places, losses, out,
                                  scale=inner))

    @ieee_mode()
    def total(self, parts: dict[str, LossPart]) -> float:
        """Weighted sum of the terms of one example, in the order of TERMS, in binary64."""
        total = 0.0
        for name, part in parts.items():
            total += self.weights[name] * part.value
        return total
