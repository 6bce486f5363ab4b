"""Trainable state of a readout: schedules, reachability, modes, unfreezing, rates."""
import numpy as np
import pytest
from dx_train import (CausalConfig, Dropout, GradualUnfreezing, ModuleModes, Node, ParameterGroups, check_optimizer,
                      discriminative_rates, initial_tensors, reach, retained, trainable_names)
from dx_train.checkpoint import CheckpointError
from dx_train.parameter_groups import frozen_digest
from dx_train.trainable import ContractError
from readout_case import GROUPS, NODES, START, chain, modes, tensors

F = np.float32


def test_the_scalar_chain():
    """x = 2, theta = 3, a = 0, phi = 0.5, w = 4, y = 10: every value, every derivative, and its difference quotient."""
    (h, r, z, loss), gradients = chain(tensors())
    assert (h, r, z, loss) == (6, 3, 12, 2)
    want = {"head.w": 6, "readout.phi": 48, "backbone.theta": 8, "adapter.a": 8}
    assert {n: g[0] for n, g in gradients.items()} == want
    for name in START:
        values = []
        for step in (2.0**-10, -(2.0**-10)):
            t = tensors()
            t[name] = t[name] + F(step)
            values.append(chain(t)[0][3])
        assert abs((values[0] - values[1]) * 2.0**9 - gradients[name][0]) < 1e-3


@pytest.mark.parametrize("schedule, kept", [
    ("head_only", ["head.w"]), ("readout_head", ["readout.phi", "head.w"]),
    ("full", ["backbone.theta", "readout.phi", "head.w"]), ("adapter", ["adapter.a", "readout.phi", "head.w"])])
def test_a_schedule_keeps_its_gradients_and_changes_nothing_else(schedule, kept):
    t, (_, gradients) = tensors(), chain(tensors())
    names = trainable_names(GROUPS, schedule)
    assert list(names) == kept and list(retained(gradients, names)) == kept
    before = frozen_digest(t, names)
    for name, gradient in retained(gradients, names).items():
        t[name] -= F(0.0005) * gradient
    assert frozen_digest(t, names) == before
    assert {n for n in START if t[n][0] != START[n]} == set(kept)
    assert chain(t)[0][3] < chain(tensors())[0][3]


def test_a_frozen_module_passes_the_gradient_on():
    """Under "adapter" the gradient passes head and readout, beside a frozen backbone."""
    _, gradients = chain(tensors())
    assert retained(gradients, trainable_names(GROUPS, "adapter"))["adapter.a"][0] == 8
    found = reach(NODES, trainable_names(GROUPS, "adapter"))
    assert found.first == "backbone" and found.kept == ("backbone", "readout", "head")


def test_bitfit_trains_bias_terms_alone():
    config = CausalConfig(vocabulary=5, positions=5, hidden=4, heads=1, inner=4, blocks=1)
    backbone = tuple(config.tensors())
    names = trainable_names(ParameterGroups(backbone, (), (), ("head.weight", "head.bias")), "bitfit")
    assert names[-2:] == ("head.weight", "head.bias")
    assert all(n.endswith(".bias") for n in names[:-2]) and len(names) == 2 + 7
    t = initial_tensors(config.tensors())
    assert sum(t[n].size for n in names[:-2]) < sum(a.size for a in t.values()) / 5


def test_base_weights_in_an_adapters_optimizer_are_refused():
    names = trainable_names(GROUPS, "adapter")
    check_optimizer(names, names)
    with pytest.raises(ContractError, match=r"holds \['backbone.theta'\] beyond the trainable set"):
        check_optimizer((*names, "backbone.theta"), names)
    with pytest.raises(ContractError, match=r"lacks \['readout.phi'\]"):
        check_optimizer(("adapter.a", "head.w"), names)
    with pytest.raises(ContractError, match="the model has no adapter"):
        trainable_names(ParameterGroups(("b",), (), (), ("h",)), "adapter")


def test_what_must_be_kept_follows_the_first_trainable_node():
    """A small adapter inside still keeps everything after it; a head alone keeps nothing of the backbone."""
    nodes = [Node("embed", ("e",)), Node("block 0", ("b0",)), Node("adapter", ("a",)), Node("block 1", ("b1",)),
             Node("pool"), Node("head", ("w",))]
    assert reach(nodes, ["w"]).kept == ("head",)
    assert reach(nodes, ["w"]).detached == ("embed", "block 0", "adapter", "block 1", "pool")
    inner = reach(nodes, ["a", "w"])
    assert inner.kept == ("adapter", "block 1", "pool", "head") and (inner.first, inner.last) == ("adapter", "head")
    assert reach(nodes, ["w"], no_gradient=["embed", "block 1"]).first == "head"


def test_a_trainable_adapter_under_no_gradient_is_refused():
    """The forward pass would look the same and the adapter would learn nothing."""
    nodes = [Node("block 0", ("b0",)), Node("adapter", ("a",)), Node("block 1", ("b1",)), Node("head", ("w",))]
    for cut in ("adapter", "block 1"):
        with pytest.raises(ContractError, match=f"node '{cut}' runs without gradient"):
            reach(nodes, ["a", "w"], no_gradient=["block 0", cut])
    with pytest.raises(ContractError, match="belongs to no node"):
        reach(nodes, ["x"])
    with pytest.raises(ContractError, match="no node has a trainable"):
        reach(nodes, [])
    with pytest.raises(ContractError, match="no gradient of the trainable parameter 'adapter.a'"):
        retained({"head.w": np.zeros(1, F)}, ["adapter.a"])


def test_freezing_and_evaluation_mode_are_two_switches():
    """A frozen backbone in training mode gives other features at every step; in evaluation mode always the same."""
    drop, x = Dropout("backbone", 0.5), np.ones((4, 16), F)
    names = trainable_names(GROUPS, "head_only")  # the backbone is frozen in both cases
    assert "backbone.theta" not in names
    runs = {}
    for mode in ("train", "eval"):
        made = modes(backbone=mode)
        made.cover(("backbone", "head"))
        runs[mode] = [drop.apply(x, made, seed=1, example="e", step=step) for step in (0, 1, 0)]
    assert all(a is x for a in runs["eval"])
    assert runs["train"][0].tobytes() != runs["train"][1].tobytes()  # replaying a batch at another step shows it
    assert runs["train"][0].tobytes() == runs["train"][2].tobytes()  # and it is a function of its counter
    assert ModuleModes({"backbone": "train"}).to_json() != ModuleModes({"backbone": "eval"}).to_json()


def test_modes_cover_every_stochastic_module():
    for made, message in ((ModuleModes({"head": "train"}), "module 'backbone' draws random numbers and has no mode"),
                          (modes(backbone="on"), "has the mode 'on'"), (modes(pool="eval"), "module 'pool'")):
        with pytest.raises(ContractError, match=message):
            made.cover(("backbone", "head"))
    with pytest.raises(ContractError, match="has no mode"):
        Dropout("pool", 0.1).apply(np.ones(3, F), modes(), seed=0, example="e", step=0)


LAYERS = ParameterGroups(("l0.weight", "l1.weight", "l2.weight"), (), ("pool.v",), ("head.w",))
UNFREEZING = GradualUnfreezing(LAYERS, (("l2.weight",), ("l1.weight",), ("l0.weight",)), (10, 20, 30))


def test_gradual_unfreezing_opens_layers_from_the_head_down():
    assert [UNFREEZING.phase(s) for s in (0, 9, 10, 19, 20, 30, 99)] == [0, 0, 1, 1, 2, 3, 3]
    assert UNFREEZING.names(0) == ("pool.v", "head.w")
    assert UNFREEZING.names(15) == ("l2.weight", "pool.v", "head.w")
    assert UNFREEZING.names(30) == LAYERS.backbone + ("pool.v", "head.w")
    with pytest.raises(ValueError, match="ascending steps"):
        GradualUnfreezing(LAYERS, (("l2.weight",), ("l1.weight",)), (5, 5))


def test_a_restart_in_the_wrong_phase_is_refused():
    state = UNFREEZING.state(20)
    assert UNFREEZING.resume(dict(state), 20) == UNFREEZING.names(20)
    other = GradualUnfreezing(LAYERS, UNFREEZING.order, (10, 25, 30))  # a schedule that is one phase behind at step 20
    reordered = GradualUnfreezing(LAYERS, UNFREEZING.order[::-1], UNFREEZING.starts)  # the same phase, other layers
    for schedule, at, name in ((other, 20, "phase"), (reordered, 20, "trainable"), (UNFREEZING, 5, "step")):
        with pytest.raises(CheckpointError, match=f"unfreezing has {name}"):
            schedule.resume(dict(state), at)


def test_the_phase_is_in_the_checkpoint(tmp_path):
    """Written and read back; the schedule that comes to it decides whether it may go on."""
    from dx_train.checkpoint import Checkpoint, latest_checkpoint, write_checkpoint
    made = Checkpoint(20, {"run": "r"}, {"unfreezing": UNFREEZING.state(20)}, {"w": np.ones(2, F)})
    write_checkpoint(tmp_path, made)
    found = latest_checkpoint(tmp_path, {"run": "r"})
    assert UNFREEZING.resume(found.state["unfreezing"], found.step) == UNFREEZING.names(20)
    behind = GradualUnfreezing(LAYERS, UNFREEZING.order, (10, 25, 30))
    with pytest.raises(CheckpointError, match="unfreezing has phase 2: expected 1"):
        behind.resume(found.state["unfreezing"], found.step)


def test_rates_fall_by_layer():
    rates = discriminative_rates([("l0.w", "l0.b"), ("l1.w",), ("head.w",)], 0.026, 2.6)
    assert list(rates) == ["l0.w", "l0.b", "l1.w", "head.w"] and rates["head.w"] == 0.026
    assert rates["l1.w"] == 0.026 / 2.6 and rates["l0.w"] == rates["l0.b"] == 0.026 / 2.6 / 2.6
    with pytest.raises(ValueError, match="factor"):
        discriminative_rates([("a",)], 0.1, 0.5)


def test_schedules_name_what_they_refuse():
    with pytest.raises(ContractError, match="schedule = 'all'"):
        trainable_names(GROUPS, "all")
    with pytest.raises(ContractError, match="unfrozen names 'head.w'"):
        trainable_names(GROUPS, "gradual", ("head.w",))
    with pytest.raises(ContractError, match="stands in two groups"):
        ParameterGroups(("a",), (), (), ("a",))
