"""A scalar model whose every derivative can be seen, and the training record of it."""
import numpy as np
from dx_train import ModuleModes, Node, ParameterGroups, TrainableModel, TrainingContract, trainable_names
from dx_train.parameter_groups import frozen_digest

F = np.float32
GROUPS = ParameterGroups(("backbone.theta",), ("adapter.a",), ("readout.phi",), ("head.w",))
NODES = (Node("backbone", ("backbone.theta", "adapter.a")), Node("readout", ("readout.phi",)),
         Node("head", ("head.w",)))
START = {"backbone.theta": 3.0, "adapter.a": 0.0, "readout.phi": 0.5, "head.w": 4.0}


def tensors():
    return {name: np.full(1, value, F) for name, value in START.items()}


def chain(t, x=2.0, y=10.0):
    """(values of h, r, z, loss, gradients of all four parameters): h = (theta + a) x, r = phi h, z = w r,
    loss = (z - y)^2 / 2."""
    theta, a, phi, w = (t[name].astype(np.float64)[0] for name in START)
    h = (theta + a) * x
    r = phi * h
    z = w * r
    g = z - y
    inner = g * w * phi * x
    gradients = {"head.w": g * r, "readout.phi": g * w * h, "backbone.theta": inner, "adapter.a": inner}
    return (h, r, z, 0.5 * g * g), {name: np.full(1, gradients[name], F) for name in START}


def model(t=None, **changes):
    settings = {"groups": GROUPS, "tensors": t or tensors(), "objective_kind": "regression",
                "stochastic_modules": ("backbone", "head"), "nodes": NODES}
    return TrainableModel(**(settings | changes))


def contract(schedule="head_only", t=None, **changes):
    names = trainable_names(GROUPS, schedule, changes.get("unfrozen", ()))
    here = [node.name for node in NODES if any(p in names for p in node.parameters)]
    settings = {
        "dataset_revision": "d1", "split_hash": "s1", "example_id_namespace": "made", "tokenizer_manifest": "t1",
        "readout_manifest": "r1", "head_manifest": "h1", "objective_kind": "regression", "label_schema": "one value",
        "ignored_row_policy": "none", "numerator": "half squared error", "denominator_kind": "examples",
        "valid_supervised_count": 1, "task_weights": {"value": 1.0}, "task_sampler": "all", "schedule": schedule,
        "trainable_names": names, "frozen_names": tuple(n for n in GROUPS.all if n not in names),
        "frozen_hash": frozen_digest(t or tensors(), names), "module_modes": {"backbone": "eval", "head": "train"},
        "dropout_policy": "by counter", "first_trainable_node": here[0], "last_trainable_node": here[-1],
        "base_release": "base-1", "readout_release": "readout-1", "head_release": "head-1", "parent_checkpoint": "none",
        "optimizer_procedure": "adamw", "adapter_release": "adapter-1" if schedule == "adapter" else None}
    return TrainingContract(**(settings | changes))


def modes(**changes):
    return ModuleModes({"backbone": "eval", "head": "train"} | changes)
