"""Contrastive runs of token encoders over the transaction: bits, order, views, resume, and that they learn."""
import dataclasses

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import (CausalConfig, ContrastiveBatch, ContrastiveContract, CoupledGradients, Coupling, Dropout,
                      FineTune, ModuleModes, PairConfig, PairEncoder, PairExample)

F = np.float32
CONFIG = CausalConfig(vocabulary=30, positions=12, hidden=16, heads=2, inner=24, blocks=1)
CONTRACT = ContrastiveContract(temperature=0.2)


def model(tied=True, seed=0):
    return PairEncoder.start(PairConfig(CONFIG, tied), seed)


def examples(count=4, hard=False):
    rng, made = np.random.default_rng(5), []
    for i in range(count):
        query = tuple(int(t) for t in rng.integers(0, 30, 3 + i % 5))
        documents = [(f"d{i}", (7, *query))]
        if hard:
            documents.append((f"n{i}", tuple(int(t) for t in rng.integers(0, 30, 4))))
        made.append(PairExample(f"q{i}", query, tuple(documents)))
    return made


def run(batch, contract=CONTRACT, encoder=None, keep=True, **dropout):
    loss = ContrastiveBatch(contract, **dropout)
    gradients = CoupledGradients(loss.passes(encoder or model()), loss, keep)
    try:
        result = gradients.run(batch)
        return result.loss, gradients.total.copy()
    finally:
        gradients.close()


@pytest.mark.parametrize("tied", [True, False])
def test_gradients_are_difference_quotients(tied):
    encoder, batch = model(tied), examples(3, hard=True)
    rng = np.random.default_rng(1)
    encoder.parameters.flat += (rng.standard_normal(encoder.parameters.flat.shape) / 4).astype(F)
    encoder.repack()
    _, total = run(batch, encoder=encoder)
    for name, array in encoder.parameters.items():
        gradient = total[name]
        at = tuple(int(v) for v in np.unravel_index(np.abs(gradient).argmax(), gradient.shape))
        before, values = array[at], []
        for step in (2.0**-8, -(2.0**-8)):
            array[at] = before + F(step)
            encoder.repack()
            values.append(run(batch, encoder=encoder)[0])
        array[at] = before
        encoder.repack()
        assert abs((values[0] - values[1]) * 2.0**7 - gradient[at]) < 3e-2 * max(0.1, abs(gradient[at])), name


def test_untied_sides_have_encoders_of_their_own():
    """A dual encoder's spaces meet only because they are trained to: after a step the sides give other vectors."""
    tied, untied = model(), model(tied=False)
    assert len(untied.parameters.flat) == 2 * len(tied.parameters.flat)
    ids = [3, 4, 5]
    assert np.array_equal(untied.encode("query", ids), untied.encode("document", ids))  # the same start
    _, total = run(examples(4), encoder=untied)
    untied.parameters.flat -= F(0.5) * total.flat
    untied.repack()
    assert not np.array_equal(untied.encode("query", ids), untied.encode("document", ids))
    assert np.array_equal(tied.encode("query", ids), tied.encode("document", ids))
    with pytest.raises(dx_train.trainable.ContractError, match="side = 'passage'"):
        tied.encode("passage", ids)


def test_bits_do_not_depend_on_path_degree_or_memory():
    seen = set()
    for path in dx_train.available_paths():
        for degree in (1, 3):
            for keep in (True, False):
                with dx_train.kernel_path(path), dx_train.degree(degree):
                    loss, total = run(examples(5, hard=True), keep=keep)
                    seen.add((loss, total.flat.tobytes()))
    assert len(seen) == 1


def test_every_example_meets_every_document():
    """One document changed changes the losses of the others: the denominators couple the batch."""
    batch = examples(3)
    changed = [*batch[:2], dataclasses.replace(batch[2], documents=(("d2", (1, 2, 3)),))]
    assert run(batch)[0] != run(changed)[0]
    own = dataclasses.replace(CONTRACT, in_batch_negatives=False)
    assert run(batch, own)[0] == run(changed, own)[0] == 0.0  # nothing to tell apart


def test_two_views_need_training_mode():
    batch = [dataclasses.replace(e, documents=(), views=2) for e in examples(4)]
    drop = Dropout("readout", 0.3)
    losses = {mode: run(batch, dropout=drop, modes=ModuleModes({"readout": mode}), seed=3)[0]
              for mode in ("train", "eval")}
    again = run(batch, dropout=drop, modes=ModuleModes({"readout": "train"}), seed=3)[0]
    assert losses["train"] == again > losses["eval"]  # without masks the two views of a text coincide
    later = [e.at(1, None, None) for e in batch]
    assert run(later, dropout=drop, modes=ModuleModes({"readout": "train"}), seed=3)[0] != losses["train"]


SETTINGS = dataclasses.replace(tiny.SETTINGS, batch=4, learning_rate=0.01, steps=40)


def fine_tune(contract=CONTRACT, tied=True, **dropout):
    loss = ContrastiveBatch(contract, **dropout)
    scales = dict.fromkeys(model(tied).parameters, 1.0)
    return FineTune(SETTINGS, scales=scales, coupling=Coupling(loss, loss.passes))


def test_a_run_learns_and_its_model_comes_back(tmp_path):
    batch = examples(8)
    first = run(batch)[0]
    result = fine_tune().run(model(), batch, folder=tmp_path, progress=False, tell=lambda text: None)
    again = PairEncoder.from_pretrained(tmp_path, result.digest)
    assert again.parameters.flat.tobytes() == result.parameters.flat.tobytes()
    assert run(batch, encoder=again)[0] < 0.7 * first


def test_a_killed_run_goes_on_in_the_same_bits(tmp_path):
    drop = {"dropout": Dropout("readout", 0.2), "modes": ModuleModes({"readout": "train"}), "seed": 1}
    whole = fine_tune(**drop).run(model(), examples(8), progress=False, tell=lambda text: None)
    with fine_tune(**drop).start(model(), examples(8), folder=tmp_path, tell=lambda text: None) as started:
        for _ in range(3):
            started.advance()
        started.save()
    rest = fine_tune(**drop).run(model(), examples(8), folder=tmp_path, progress=False, tell=lambda text: None)
    assert rest.parameters.flat.tobytes() == whole.parameters.flat.tobytes()
    with pytest.raises(dx_train.CheckpointError, match="loss"):  # another margin of the objective is another run
        fine_tune(dataclasses.replace(CONTRACT, hard_weight=2.0), **drop).run(
            model(), examples(8), folder=tmp_path, progress=False, tell=lambda text: None)


def test_the_contract_is_part_of_a_runs_settings():
    assert ContrastiveBatch(CONTRACT).settings()["temperature"] == 0.2
    others = [ContrastiveBatch(dataclasses.replace(CONTRACT, hard_weight=2.0)),
              ContrastiveBatch(CONTRACT, Dropout("readout", 0.1), ModuleModes({"readout": "train"})),
              ContrastiveBatch(CONTRACT, Dropout("readout", 0.1), ModuleModes({"readout": "eval"}))]
    seen = [str(loss.settings()) for loss in (ContrastiveBatch(CONTRACT), *others)]
    assert len(set(seen)) == 4


@pytest.mark.parametrize("change, message", [
    ({"documents": ()}, "expected documents, or two views"), ({"views": 2}, "expected documents, or two views"),
    ({"query": ()}, "has 0 tokens"), ({"query": (30,)}, "each below 30"), ({"query": (1,) * 13}, "has 13 tokens")])
def test_examples_that_do_not_fit_are_named(change, message):
    bad = dataclasses.replace(examples(2)[1], **change)
    with pytest.raises(ValueError, match=f"example q1.*{message}"):
        fine_tune().run(model(), [examples(2)[0], bad], progress=False)
