"""Which parameters a readout's training may change: schedules over four groups, bias terms, rates by depth."""
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .trainable import ContractError

SCHEDULES = ("head_only", "readout_head", "full", "adapter", "bitfit", "gradual")


@dataclass(frozen=True)
class ParameterGroups:
    """Names of a model's parameters in forward order: backbone, adapter (inserted or beside), readout, head.

    Freezing says which gradients are kept and applied. It says nothing about evaluation mode (modes.py), and it does
    not cut the gradient that passes through a frozen module to a trainable one before it (reachability.py).
    """

    backbone: tuple[str, ...] = ()
    adapter: tuple[str, ...] = ()
    readout: tuple[str, ...] = ()
    head: tuple[str, ...] = ()

    def __post_init__(self):
        if len(dict.fromkeys(self.all)) != len(self.all):
            raise ContractError("a parameter stands in two groups: expected each name once")

    @property
    def all(self) -> tuple[str, ...]:
        """Every name, group after group."""
        return (*self.backbone, *self.adapter, *self.readout, *self.head)


def trainable_names(groups: ParameterGroups, schedule: str, unfrozen: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names that a schedule trains, in the groups' order.

    head_only: the head · readout_head: readout and head · full: backbone, readout, head · adapter: adapter, readout,
    head, the base left as it is · bitfit: the backbone's bias terms, readout, head · gradual: the backbone's names in
    `unfrozen` (unfreezing.py), readout, head
    """
    if schedule not in SCHEDULES:
        raise ContractError(f"schedule = {schedule!r}: expected one of {', '.join(SCHEDULES)}")
    if schedule == "adapter" and not groups.adapter:
        raise ContractError("schedule = 'adapter': the model has no adapter")
    for name in unfrozen:
        if schedule != "gradual" or name not in groups.backbone:
            raise ContractError(f"unfrozen names {name!r}: expected names of the backbone, under 'gradual' alone")
    backbone = {"full": groups.backbone, "bitfit": tuple(n for n in groups.backbone if n.endswith("bias")),
                "gradual": tuple(n for n in groups.backbone if n in unfrozen)}.get(schedule, ())
    adapter = groups.adapter if schedule == "adapter" else ()
    return (*backbone, *adapter, *(() if schedule == "head_only" else groups.readout), *groups.head)


def frozen_digest(tensors: Mapping[str, np.ndarray], trainable) -> str:
    """SHA-256 (hex) over name and bytes of every tensor that is not trained, in the mapping's order."""
    chosen, h = dict.fromkeys(trainable), hashlib.sha256()
    for name, array in tensors.items():
        if name not in chosen:
            h.update(name.encode() + b"\0" + np.ascontiguousarray(array).astype("<f4").tobytes())
    return h.hexdigest()


def retained(gradients: Mapping[str, np.ndarray], trainable) -> dict[str, np.ndarray]:
    """The gradients that a schedule keeps, in its order; ContractError when one of them was not computed."""
    for name in trainable:
        if name not in gradients:
            raise ContractError(f"no gradient of the trainable parameter {name!r} arrived")
    return {name: gradients[name] for name in trainable}


def check_optimizer(names, trainable) -> None:
    """ContractError unless an optimizer holds exactly the trainable parameters: a base weight among an adapter's would
    change the base that others share."""
    extra = [name for name in names if name not in dict.fromkeys(trainable)]
    missing = [name for name in trainable if name not in dict.fromkeys(names)]
    if extra or missing:
        raise ContractError(f"the optimizer holds {extra} beyond the trainable set and lacks {missing} of it")


def discriminative_rates(layers: list[tuple[str, ...]], rate: float, factor: float) -> dict[str, float]:
    """name → learning rate: `rate` for the last layer, divided by `factor` for each layer below (binary64 divisions,
    one after the other).

    layers : names by layer, from the input to the head · factor : at least 1
    """
    if not (0 < rate < float("inf") and 1 <= factor < float("inf")):
        raise ValueError(f"rate = {rate}, factor = {factor}: expected a finite rate > 0 and a finite factor >= 1")
    rates, now = {}, rate
    for names in reversed(layers):
        rates |= dict.fromkeys(names, now)
        now = now / factor
    return {name: rates[name] for names in layers for name in names}
