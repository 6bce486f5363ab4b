"""The training record: complete, and true of the model at hand."""
import dataclasses

import pytest
from dx_train import admit_training, load_task, save_task
from dx_train.trainable import ContractError
from readout_case import contract, model, tensors


@pytest.mark.parametrize("schedule", ["head_only", "readout_head", "full", "adapter", "bitfit", "gradual"])
def test_a_true_record_is_admitted(schedule):
    made = contract(schedule)
    admit_training(made, model())
    assert made.digest() == contract(schedule).digest()


@pytest.mark.parametrize("change, field", [
    ({"objective_kind": "classification"}, "objective_kind"), ({"denominator_kind": "padded_size"}, "denominator_kind"),
    ({"valid_supervised_count": 0}, "valid_supervised_count"), ({"task_weights": {"value": -0.5}}, "task_weights"),
    ({"trainable_names": ("head.w", "readout.phi")}, "trainable_names"), ({"trainable_names": ()}, "trainable_names"),
    ({"frozen_names": ("backbone.theta",)}, "frozen_names"), ({"frozen_hash": "0" * 64}, "frozen_hash"),
    ({"schedule": "some"}, "schedule"), ({"first_trainable_node": "backbone"}, "first_trainable_node"),
    ({"last_trainable_node": "readout"}, "last_trainable_node"), ({"module_modes": {"head": "train"}}, "backbone"),
    ({"no_gradient": ("head",)}, "runs without gradient"),
    *[({name: ""}, name) for name in ("dataset_revision", "split_hash", "example_id_namespace", "tokenizer_manifest",
                                      "readout_manifest", "head_manifest", "label_schema", "ignored_row_policy",
                                      "numerator", "task_sampler", "dropout_policy", "base_release", "readout_release",
                                      "head_release", "parent_checkpoint", "optimizer_procedure")]])
def test_admission_names_what_does_not_hold(change, field):
    with pytest.raises(ContractError, match=field):
        admit_training(dataclasses.replace(contract(), **change), model())


def test_schedules_are_proved_by_the_names():
    """A head-only run that trains the readout, an adapter run with base weights or without its release, a full run that
    leaves the backbone: the record says one thing and the names another."""
    head, adapter, full = contract(), contract("adapter"), contract("full")
    for made, change, field in (
            (head, {"trainable_names": ("readout.phi", "head.w")}, "trainable_names"),
            (adapter, {"adapter_release": None}, "adapter_release"),
            (adapter, {"trainable_names": ("backbone.theta", *adapter.trainable_names)}, "trainable_names"),
            (full, {"trainable_names": ("readout.phi", "head.w")}, "trainable_names")):
        with pytest.raises(ContractError, match=field):
            admit_training(dataclasses.replace(made, **change), model())


def test_frozen_values_are_part_of_the_record():
    changed = tensors()
    changed["backbone.theta"] += 1
    with pytest.raises(ContractError, match="frozen_hash"):
        admit_training(contract(), model(changed))


def test_every_field_is_in_the_digest():
    seen = {contract().digest()}
    for field in dataclasses.fields(contract()):
        value = getattr(contract(), field.name)
        other = {str: "other", int: 7, dict: {"x": 1.0}, tuple: ("x",), type(None): "x"}[type(value)]
        seen.add(dataclasses.replace(contract(), **{field.name: other}).digest())
    assert len(seen) == 1 + len(dataclasses.fields(contract()))


def test_a_head_does_not_load_onto_another_base_or_readout(tmp_path):
    """The shapes fit; the identities do not."""
    made, t = contract("readout_head"), tensors()
    file = tmp_path / "head.safetensors"
    save_task(file, {name: t[name] for name in made.trainable_names}, made)
    kept = load_task(file, base_release="base-1", readout_release="readout-1")
    assert list(kept) == ["readout.phi", "head.w"] and kept["head.w"].tobytes() == t["head.w"].tobytes()
    with pytest.raises(ContractError, match="base_release = 'base-2': expected base-1"):
        load_task(file, base_release="base-2", readout_release="readout-1")
    with pytest.raises(ContractError, match="readout_release"):
        load_task(file, base_release="base-1", readout_release="readout-2")
    with pytest.raises(ContractError, match="expected the trainable names"):
        save_task(file, t, made)
