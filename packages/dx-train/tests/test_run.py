"""Runs: bits across degrees and paths, contracts, cases of area train, errors."""
import dataclasses
import json
import math
import threading

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import (ContractError, DocExtract, FineTune, Gradients, TrainingError, TrainSettings, named_set,
                      trainable_set)

R = dataclasses.replace


def test_bits_across_paths_and_degrees():
    """Weights after every step of the run, with augmentation, variants and every loss."""
    first = None
    for path in dx_train.available_paths():
        for degree in (1, 2, 3, 4, 7):
            with dx_train.kernel_path(path), dx_train.degree(degree):
                digest = tiny.train().parameters.digest()
            first = first or digest
            assert digest == first, (path, degree)
    assert first != tiny.model().parameters.digest()


def test_it_learns(tmp_path):
    """The loss falls and the made-up fields of receipts never seen are found; a log entry a step."""
    settings = TrainSettings(steps=60, batch=6, learning_rate=5e-3, warmup=5, weight_decay=0.01, checkpoint_every=0)
    examples = [tiny.example(k) for k in range(24)]
    result = FineTune(settings).run(tiny.model(), examples, folder=tmp_path, tell=tiny.quiet)
    log = dx_train.read_log(tmp_path)
    assert [entry["step"] for entry in log] == list(range(1, 61))
    assert log[-1]["loss"] < 0.2 * log[0]["loss"] and tiny.score(DocExtract(result.parameters)) >= 0.95
    assert {"rate", "norm", "tag", "run", "words", "words_per_second", "epoch"} <= set(log[0])
    assert math.isclose(log[0]["loss"], log[0]["tag"] + log[0]["run"])


def test_the_model_passed_stays_as_it_is():
    model = tiny.model()
    before = model.parameters.digest()
    tiny.train(start=model)
    assert model.parameters.digest() == before


def test_own_loop():
    """Iterating over a run is the same as running it."""
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(variants=True)) as run:
        steps = [record.step for record in run]
        result = run.finish()
        with pytest.raises(ValueError, match="over after 12 steps"):
            run.advance()
    assert steps == list(range(1, 13)) and result.parameters.digest() == tiny.train().parameters.digest()


def test_it_runs_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(tiny.train().parameters.digest()))
    thread.start()
    thread.join()
    assert found == [tiny.train().parameters.digest()]


# --- what is trained ------------------------------------------------------------------------------------------------

def changed(result, start=None):
    start = start or tiny.model()
    return {name for name, array in result.parameters.items() if array.tobytes() != start.parameters[name].tobytes()}


def test_head_only_run_trains_the_tag_head_alone():
    result = tiny.train(settings=R(tiny.SETTINGS, backbone_scale=0.0))
    assert changed(result) == {"tag_head.weight", "tag_head.bias"}


def test_heads_train_only_when_their_loss_is_on():
    result = tiny.train(settings=R(tiny.SETTINGS, loss_weights={"tag": 1.0}))
    untouched = {name for name in tiny.model().parameters if name.startswith(("role_head", "doc_head", "rel_"))}
    assert untouched and not changed(result) & untouched
    assert {"char_emb.weight", "feat_proj.bias", "blocks.1.fc2.weight", "pair2.weight"} <= changed(result)


def test_backbone_scale_scales_the_rate_of_everything_but_the_heads():
    """One step without decay and clipping: the first update is rate * scale * g / (|g| + eps)."""
    plain = R(tiny.SETTINGS, steps=1, warmup=0, final_rate=1.0, clip_norm=0.0, weight_decay=0.0, eps=1e-12)
    start = tiny.model().parameters
    for scale in (1.0, 0.25):
        moved = tiny.train(settings=R(plain, backbone_scale=scale)).parameters
        for name, factor in (("tag_head.weight", 1.0), ("blocks.0.fc2.weight", scale)):
            step = np.abs(moved[name] - start[name]).max()
            assert math.isclose(step, tiny.SETTINGS.learning_rate * factor, rel_tol=1e-3), name


def test_named_sets_and_frozen_rows():
    """An allowlist, and rows of a table that stay: tra-07 in a run."""
    rows = {"pos_x0.weight": [0, 1, 5, 31]}
    result = tiny.train(scales={"pos_x0.weight": 0.5, "tag_head.bias": 1.0}, frozen_rows=rows)
    assert changed(result) == {"pos_x0.weight", "tag_head.bias"}
    before, after = tiny.model().parameters["pos_x0.weight"], result.parameters["pos_x0.weight"]
    same = [row for row in range(32) if before[row].tobytes() == after[row].tobytes()]
    assert same == rows["pos_x0.weight"]


def test_tra_07_frozen_rows_do_not_decay():
    """Case tra-07: a table of ones, rows 0 to 3 frozen, decay 0.1, rate 0.1, 10 steps."""
    config = R(tiny.CONFIG, position_buckets=5, hidden_size=2, num_attention_heads=1)
    parameters = dx_train.initial_parameters(config)
    parameters["pos_x0.weight"][...] = 1.0
    trainable = named_set(parameters, {"pos_x0.weight": 1.0}, {"pos_x0.weight": [0, 1, 2, 3]})
    optimizer = dx_train.AdamW(parameters, trainable, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1)
    for step in range(1, 11):
        optimizer.step(step, 0.1, Gradients(config))
    assert parameters["pos_x0.weight"][:4].tobytes() == np.ones((4, 2), np.float32).tobytes()
    assert np.allclose(parameters["pos_x0.weight"][4], 0.99 ** 10)
    trainable.verify(parameters)


def test_tra_08_the_padding_row_stays_zero(tmp_path):
    """Case tra-08: exactly 0.0 after training, in memory and in the file; a model that has it otherwise is refused."""
    result = tiny.train(tmp_path)
    model = DocExtract.from_pretrained(tmp_path)
    for parameters in (result.parameters, model.parameters):
        assert parameters["char_emb.weight"][0].tobytes() == bytes(4 * tiny.CONFIG.char_dim)
    model.parameters["char_emb.weight"][0, 3] = 1.0
    with pytest.raises(ValueError, match="row 0 of the starting model's char_emb.weight is padding"):
        tiny.train(start=model)


def test_contract_is_stated_before_and_verified_after(tmp_path, monkeypatch):
    settings = R(tiny.SETTINGS, loss_weights={"tag": 1.0})
    with FineTune(settings).start(tiny.model(), tiny.examples(), folder=tmp_path, tell=tiny.quiet) as run:
        stated = json.loads((tmp_path / "run.json").read_text())["contract"]
        assert (stated["first"], stated["last"]) == ("char_emb", "tag_head")
        assert stated["modes"] == {"dropout": "none", "statistics": "none"} and stated["reaches_backbone"] is True
        assert stated["frozen"] == [name for name in run.parameters if name.split(".")[0] in
                                    ("role_head", "doc_head", "rel_q", "rel_k")]
        assert {entry["name"] for entry in stated["trainable"]} == set(run.trainable.names)
        assert all(entry["decay"] == entry["name"].endswith("weight") for entry in stated["trainable"]
                   if "ln" not in entry["name"])
        run.parameters["role_head.bias"][0] = 1.0
        with pytest.raises(ContractError, match="outside the trainable set"):
            run.finish()
    assert not (tmp_path / "model.safetensors").exists()


def test_a_contract_that_was_stated_is_required(tmp_path):
    scales = {"blocks.1.fc1.weight": 0.5, "pair2.weight": 1.0, "tag_head.bias": 1.0}
    stated = named_set(tiny.model().parameters, scales).to_json()
    assert (stated["first"], stated["last"]) == ("pair2", "tag_head")
    FineTune(tiny.SETTINGS, scales=scales, contract=stated).run(tiny.model(), tiny.examples(), progress=False)
    other = {**stated, "trainable": [{**stated["trainable"][0], "scale": 1.0}, *stated["trainable"][2:],
                                     {"name": "tag_head.weight", "scale": 1.0, "decay": True}]}
    with pytest.raises(ContractError, match=r"pair2.weight is trainable and not stated; tag_head.weight is stated and "
                                            r"not trainable; blocks.1.fc1.weight has scale 0.5 and decay True, stated"):
        FineTune(tiny.SETTINGS, scales=scales, contract=other).run(tiny.model(), tiny.examples(), folder=tmp_path / "f")
    assert not (tmp_path / "f").exists()
    start = tiny.model()
    start.parameters["role_head.bias"][0] = 2.0  # another model: its frozen values differ
    for changed_contract, match in (({"frozen_digest": stated["frozen_digest"]}, "frozen_digest is"),
                                    ({"first": "emb_ln"}, "first is pair2, stated emb_ln"), ({"x": 1}, "no entry")):
        with pytest.raises(ContractError, match=match):
            FineTune(tiny.SETTINGS, scales=scales, contract=changed_contract).run(start, tiny.examples())


def test_a_mode_that_changes_during_a_run_breaks_the_contract():
    start = tiny.model()
    with FineTune(tiny.SETTINGS, scales={"tag_head.bias": 1.0}).start(start, tiny.examples()) as run:
        run.model.modes = {"dropout": "on", "statistics": "none"}
        with pytest.raises(ContractError, match="the modes are .*'on'.* the contract states .*'none'"):
            run.finish()


def test_a_tensor_that_no_loss_reaches_is_refused():
    """It would get decay and no gradient."""
    settings = R(tiny.SETTINGS, loss_weights={"tag": 1.0})
    with pytest.raises(ValueError, match=r"role_head.weight: none of the active losses \(tag\) reaches it"):
        FineTune(settings, scales={"role_head.weight": 1.0, "tag_head.bias": 1.0}).run(tiny.model(), tiny.examples())


@pytest.mark.parametrize("scales, rows, match", [
    ({"nothing": 1.0}, None, "'nothing' does not belong"),
    ({"tag_head.bias": 0.0}, None, "scale of tag_head.bias = 0.0"),
    ({}, None, "is empty"), ({"tag_head.bias": 1.0}, {"tag_head.weight": [0]}, "not a trainable tensor"),
    ({"tag_head.bias": 1.0}, {"tag_head.bias": [9]}, "expected 0 to 4"),
    ({"tag_head.bias": 1.0}, {"tag_head.bias": range(5)}, "every row")])
def test_wrong_sets_are_refused(scales, rows, match):
    with pytest.raises(ValueError, match=match):
        named_set(tiny.model().parameters, scales, rows)


def test_without_blocks_nothing_reads_the_pair_bias():
    config = R(tiny.CONFIG, num_hidden_layers=0)
    names = trainable_set(dx_train.initial_parameters(config), {"tag": 1.0}, 1.0).names
    assert not [name for name in names if name.startswith("pair")]
    assert trainable_set(dx_train.initial_parameters(config), {"tag": 1.0}, 0.0).names == (
        "tag_head.weight", "tag_head.bias")


# --- development, average -------------------------------------------------------------------------------------------

def test_early_stop_keeps_the_best_weights():
    scores, seen = iter([0.1, 0.5, 0.5, 0.2, 0.9, 1.0]), []

    def development(model):
        seen.append(model.parameters.digest())
        return next(scores)

    result = tiny.train(settings=R(tiny.SETTINGS, evaluate_every=2, patience=2), development=development)
    assert (result.step, result.best_step, result.best_score) == (8, 4, 0.5)
    assert result.parameters.digest() == seen[1] and len(seen) == 4


def test_development_scores_must_be_numbers():
    with pytest.raises(TrainingError, match="development score after step 3 is nan"):
        tiny.train(development=lambda model: float("nan"))


def test_moving_average():
    """Against its formula in binary64; frozen values are the model's."""
    settings = R(tiny.SETTINGS, ema_decay=0.5, loss_weights={"tag": 1.0}, augment=0.0)
    average = {name: array.astype(np.float64) for name, array in tiny.model().parameters.items()}
    with FineTune(settings).start(tiny.model(), tiny.examples()) as run:
        for record in run:
            keep = 1 - min(0.5, (1 + record.step) / (10 + record.step))
            for name, array in run.parameters.items():
                average[name] += (array - average[name]) * keep
        result = run.finish()
    for name, array in result.parameters.items():
        assert np.abs(array - average[name]).max() < 1e-6
    assert result.parameters["role_head.weight"].tobytes() == tiny.model().parameters["role_head.weight"].tobytes()
    assert result.parameters.digest() != run.parameters.digest()


def test_tra_10_evaluation_before_saving_and_after_loading(tmp_path):
    """Case tra-10: 20 steps; the logits of 10 pages from the result and from the file, every byte."""
    result = tiny.train(tmp_path, R(tiny.SETTINGS, steps=20))
    loaded = DocExtract.from_pretrained(tmp_path)
    for k in range(60, 70):
        page = tiny.example(k).page
        first = DocExtract(result.parameters).forward(page, ("tag", "role", "doc", "pointer"))
        second = loaded.forward(page, ("tag", "role", "doc", "pointer"))
        for name in ("tag", "role", "doc", "item", "key_value"):
            assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


def test_tra_11_learning_curve():
    """Case tra-11: how much 4, 8 and 24 pages give, the same every time it is asked."""
    def curve():
        settings = TrainSettings(steps=25, batch=4, learning_rate=5e-3, warmup=5, weight_decay=0.01)
        return [tiny.score(DocExtract(FineTune(settings).run(
            tiny.model(), [tiny.example(k) for k in range(count)]).parameters)) for count in (2, 24)]

    first = curve()
    assert first == curve() and first[-1] > first[0]


def test_mod_16_a_seed_gives_one_digest_and_one_score():
    """Case mod-16: the same pages and seed, on other paths and degrees: the same weights and the same score."""
    found = set()
    for path in (dx_train.available_paths()[0], dx_train.available_paths()[-1]):
        for degree in (1, 2):
            with dx_train.kernel_path(path), dx_train.degree(degree):
                parameters = tiny.train().parameters
                found.add((parameters.digest(), tiny.score(DocExtract(parameters))))
    assert len(found) == 1


# --- errors ---------------------------------------------------------------------------------------------------------

def test_a_loss_that_is_not_finite_names_the_example(tmp_path):
    """Nothing is overwritten: the checkpoint before stays the newest."""
    bad = tiny.examples()
    features = bad[4].page.features.copy()
    features[1, 2] = np.nan
    bad[4] = R(bad[4], page=R(bad[4].page, features=features))
    for degree in (1, 3):
        with dx_train.degree(degree), pytest.raises(TrainingError, match="example r4#0: the tag loss is nan"):
            FineTune(R(tiny.SETTINGS, checkpoint_every=1)).run(tiny.model(), bad, folder=tmp_path, tell=tiny.quiet)


def test_a_gradient_that_is_not_finite_names_example_and_tensor():
    """Losses may be finite where gradients overflow."""
    settings = R(tiny.SETTINGS, batch=2, augment=0.0, loss_weights={"tag": 1e39})
    with pytest.raises(TrainingError, match=r"step 1: example r\d#0: the gradient of tensor \S+ is not"):
        tiny.train(settings=settings)


def test_wrong_examples_are_refused():
    good = tiny.examples()
    with pytest.raises(ValueError, match="two examples have the id 'r0#0'"):
        FineTune(tiny.SETTINGS).run(tiny.model(), [good[0], good[0]])
    with pytest.raises(ValueError, match="no examples"):
        FineTune(tiny.SETTINGS).run(tiny.model(), [])
    targets = good[0].targets
    for wrong, match in ((R(targets, tag=targets.tag[:-1]), "tag is int32"), (R(targets, doc=2), "doc = 2"),
                         (R(targets, item=targets.item + 99), r"item\[0\] = 99"),
                         (R(targets, run_fields=np.array([0, 2], np.int32)), "run_fields")):
        with pytest.raises(ValueError, match=f"example r0#0: {match}"):
            FineTune(tiny.SETTINGS).run(tiny.model(), [R(good[0], targets=wrong)])
    with pytest.raises(ValueError, match="expected at most max_words = 4"):
        small = R(tiny.CONFIG, max_words=4)
        FineTune(tiny.SETTINGS).run(tiny.model(1, small), good)


def test_a_starting_model_with_a_nan_is_refused():
    model = tiny.model()
    model.parameters["tag_head.bias"][1] = np.inf
    with pytest.raises(ValueError, match="tensor tag_head.bias holds a value that is not finite"):
        tiny.train(start=model)


def test_weights_that_overflow_are_never_saved(tmp_path):
    with FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples(), folder=tmp_path, tell=tiny.quiet) as run:
        run.advance()
        run.parameters["tag_head.bias"][0] = np.inf
        with pytest.raises(TrainingError, match="weight of tensor tag_head.bias holds a value that is not finite"):
            run.save()
    assert not list(tmp_path.glob("checkpoint*"))


def test_memory_is_stated():
    """Two gradient sets a thread, the sum among them, and a workspace a thread; kept from batch to batch."""
    sizes = []
    for degree in (1, 3):
        with dx_train.degree(degree), FineTune(tiny.SETTINGS).start(tiny.model(), tiny.examples()) as run:
            run.advance()
            gradients = run.gradients
            one = gradients.total.flat.nbytes
            sets = 2 * degree
            assert len(gradients._sum.spaces) == degree
            sizes.append(gradients.nbytes - sets * one)
            run.advance()
            assert len(gradients._sum.free) == sets - 1
    assert 0 < sizes[0] <= sizes[1]
