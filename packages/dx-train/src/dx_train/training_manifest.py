"""The record of a readout's training, admitted before the first step: loss, trainable state, modes, identities."""
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from .below import canonical_bytes, read_container, write_container
from .modes import ModuleModes
from .multitask import allowed_denominators
from .parameter_groups import SCHEDULES, ParameterGroups, frozen_digest, trainable_names
from .reachability import Node, reach
from .trainable import ContractError

KIND = "dx-task-artifact"


@dataclass(frozen=True)
class TrainableModel:
    """What admission has to know of a model: its parameter groups, tensors, head's objective, stochastic modules and
    the nodes of its forward pass."""

    groups: ParameterGroups
    tensors: Mapping[str, np.ndarray]
    objective_kind: str
    stochastic_modules: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class TrainingContract:
    """Every field is stated, none is inferred from a batch. Digests and revisions are texts that the caller owns.

    unfrozen : backbone names that a gradual schedule has opened · no_gradient : nodes that run without keeping anything
    """

    dataset_revision: str
    split_hash: str
    example_id_namespace: str
    tokenizer_manifest: str
    readout_manifest: str
    head_manifest: str
    objective_kind: str
    label_schema: str
    ignored_row_policy: str
    numerator: str
    denominator_kind: str
    valid_supervised_count: int
    task_weights: Mapping[str, float]
    task_sampler: str
    schedule: str
    trainable_names: tuple[str, ...]
    frozen_names: tuple[str, ...]
    frozen_hash: str
    module_modes: Mapping[str, str]
    dropout_policy: str
    first_trainable_node: str
    last_trainable_node: str
    base_release: str
    readout_release: str
    head_release: str
    parent_checkpoint: str
    optimizer_procedure: str
    adapter_release: str | None = None
    unfrozen: tuple[str, ...] = ()
    no_gradient: tuple[str, ...] = field(default=())

    def to_json(self) -> dict:
        """Plain JSON of every field."""
        found = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else dict(v) if isinstance(v, Mapping) else v
                for name, v in found.items()}

    def digest(self) -> str:
        """SHA-256 (hex) of the record."""
        return hashlib.sha256(canonical_bytes(self.to_json())).hexdigest()


TEXTS = ("dataset_revision", "split_hash", "example_id_namespace", "tokenizer_manifest", "readout_manifest",
         "head_manifest", "label_schema", "ignored_row_policy", "numerator", "task_sampler", "dropout_policy",
         "base_release", "readout_release", "head_release", "parent_checkpoint", "optimizer_procedure")


def _need(holds, name, value, expected):
    if not holds:
        raise ContractError(f"{name} = {value!r}: expected {expected}")


def admit_training(c: TrainingContract, model: TrainableModel) -> None:
    """Proves that record and model agree before anything is updated; ContractError names what does not hold."""
    for name in TEXTS:
        _need(bool(getattr(c, name)), name, getattr(c, name), "a text: it is part of what the run is")
    _need(c.objective_kind == model.objective_kind, "objective_kind", c.objective_kind,
          f"{model.objective_kind}, the head's")
    allowed = allowed_denominators(c.objective_kind)
    _need(c.denominator_kind in allowed, "denominator_kind", c.denominator_kind, ", ".join(allowed))
    _need(c.valid_supervised_count > 0, "valid_supervised_count", c.valid_supervised_count, "more than 0")
    for task, weight in c.task_weights.items():
        _need(0 <= weight < float("inf"), f"task_weights[{task!r}]", weight, "a finite number >= 0")
    _admit_names(c, model)
    ModuleModes(c.module_modes).cover(model.stochastic_modules)
    found = reach(model.nodes, c.trainable_names, c.no_gradient)
    _need(c.first_trainable_node == found.first, "first_trainable_node", c.first_trainable_node, found.first)
    _need(c.last_trainable_node == found.last, "last_trainable_node", c.last_trainable_node, found.last)


def _admit_names(c, model):
    _need(c.schedule in SCHEDULES, "schedule", c.schedule, ", ".join(SCHEDULES))
    _need(c.schedule != "adapter" or c.adapter_release is not None, "adapter_release", c.adapter_release,
          "the adapter's release")
    wanted = trainable_names(model.groups, c.schedule, c.unfrozen)
    _need(tuple(c.trainable_names) == wanted, "trainable_names", list(c.trainable_names), f"{list(wanted)}, which is "
          f"what the schedule {c.schedule} trains")
    frozen = tuple(name for name in model.groups.all if name not in dict.fromkeys(wanted))
    _need(tuple(c.frozen_names) == frozen, "frozen_names", list(c.frozen_names), f"{list(frozen)}, all the others")
    digest = frozen_digest(model.tensors, wanted)
    _need(c.frozen_hash == digest, "frozen_hash", c.frozen_hash, f"{digest}, of the model's frozen tensors")


def save_task(path, tensors: Mapping[str, np.ndarray], contract: TrainingContract) -> str:
    """Writes the trained tensors (and nothing else) with the identities they belong to; returns the file's SHA-256."""
    if list(tensors) != list(contract.trainable_names):
        raise ContractError(f"the artifact holds {list(tensors)}: expected the trainable names "
                            f"{list(contract.trainable_names)}")
    config = {"base_release": contract.base_release, "readout_release": contract.readout_release,
              "head_release": contract.head_release, "adapter_release": contract.adapter_release,
              "contract": contract.digest()}
    return write_container(path, KIND, config, dict(tensors))


def load_task(path, *, base_release: str, readout_release: str) -> dict[str, np.ndarray]:
    """The trained tensors; ContractError when they were trained on another base or readout than the one at hand,
    however well the shapes fit."""
    config, tensors = read_container(path, KIND)
    for name, value in (("base_release", base_release), ("readout_release", readout_release)):
        _need(config[name] == value, name, value, f"{config[name]}, what the artifact was trained on")
    return tensors
