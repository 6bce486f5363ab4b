"""Masked reconstruction: two views, a gradient through the sentence row, a release without the decoder."""
import dataclasses

import numpy as np
import pytest
from dx_model.readout import Lineage, ReadoutError, Stage, admit_lineage
from dx_train import CausalConfig, CausalEncoder, RetroMAE, RetroMAESettings, initial_tensors
from dx_train.retromae import masked_places
from dx_train.trainable import ContractError

F = np.float32
CONFIG = CausalConfig(vocabulary=20, positions=16, hidden=8, heads=2, inner=12, blocks=2, visibility="bidirectional")
DECODER = dataclasses.replace(CONFIG, blocks=1)
IDS = np.array([1, 7, 3, 9, 12, 5, 18, 4, 6, 11], np.int32)
SETTINGS = RetroMAESettings(mask_id=2, seed=4)


def made(settings=SETTINGS):
    encoder = CausalEncoder(CONFIG, initial_tensors(CONFIG.tensors(), 1))
    decoder = {n: s for n, s in DECODER.tensors().items() if n.startswith(("blocks.", "ln."))}
    tensors = initial_tensors(decoder, 2)
    rng = np.random.default_rng(0)
    for array in (*encoder.tensors.values(), *tensors.values()):
        array += (rng.standard_normal(array.shape) / 4).astype(F)
    encoder.repack()
    head = rng.standard_normal((20, 8)).astype(F)
    return RetroMAE(encoder, DECODER, tensors, head, settings)


def loss(model):
    step = model.step(IDS, example="e", step=0)
    return step.encoder[0] / step.encoder[1] + step.decoder[0] / step.decoder[1]


def test_two_views_of_one_text():
    (light, light_targets), (heavy, heavy_targets) = made().views(IDS, example="e", step=0)
    for view, targets in ((light, light_targets), (heavy, heavy_targets)):
        masked = targets >= 0
        assert (view[masked] == 2).all() and np.array_equal(targets[masked], IDS[masked])
        assert np.array_equal(view[~masked], IDS[~masked]) and not masked[0] and masked.any()
    assert not np.array_equal(light, heavy)
    again = made().views(IDS, example="e", step=0)
    assert np.array_equal(again[1][0], heavy)
    assert any(not np.array_equal(made().views(IDS, example=e, step=s)[1][0], heavy) for e, s in (("e", 1), ("f", 0)))


def test_the_decoder_masks_more():
    counts = [len(masked_places(200, rate, seed=1, example="e", step=0, view=view))
              for view, rate in (("encoder", 0.3), ("decoder", 0.5))]
    assert 40 < counts[0] < 80 < counts[1] < 120
    assert len(masked_places(2, 0.01, seed=1, example="e", step=0, view="encoder")) == 1  # never none
    with pytest.raises(ValueError, match="encoder_rate"):
        RetroMAESettings(mask_id=2, encoder_rate=0.6, decoder_rate=0.5)


def test_gradients_are_difference_quotients():
    model = made()
    gradients = model.step(IDS, example="e", step=0).gradients
    state = model.training_state()
    assert set(gradients) == set(state)
    for name, gradient in gradients.items():
        at = tuple(int(v) for v in np.unravel_index(np.abs(gradient).argmax(), gradient.shape))
        before, values = state[name][at], []
        for step in (2.0**-6, -(2.0**-6)):
            state[name][at] = before + F(step)
            model.encoder.repack()
            model.decoder.repack()
            values.append(loss(model))
        state[name][at] = before
        assert abs((values[0] - values[1]) * 2.0**5 - gradient[at]) < 2e-2 * max(0.1, abs(gradient[at])), name


def test_the_decoder_reaches_the_encoder_through_the_sentence_row():
    """With the encoder's own loss weighted away, its blocks still learn: the reconstruction needs the row."""
    model = made()
    both = model.step(IDS, example="e", step=0)
    rows, kept = model.encoder.forward_saved(both.views[0])
    from dx_train import language_loss
    _, drows, _ = language_loss(rows, model.head, model.views(IDS, example="e", step=0)[0][1])
    own = model.encoder.backward(both.views[0], kept, drows)
    through = both.gradients["blocks.0.qkv.weight"] - own["blocks.0.qkv.weight"]
    assert np.abs(through).max() > 1e-4


def test_a_release_holds_no_decoder():
    model = made()
    names = list(model.released())
    assert names == list(CONFIG.tensors())
    assert not any(n.startswith(("decoder.", "language_head")) for n in names)
    assert {n for n in model.training_state() if n not in names} == {"language_head.weight", *(
        "decoder." + n for n in DECODER.tensors() if n.startswith(("blocks.", "ln.")))}
    alone = CausalEncoder(CONFIG, model.released())  # and embeds without it
    assert alone.forward(IDS).tobytes() == model.encoder.forward(IDS).tobytes()
    lineage = Lineage((Stage("masked_reconstruction", ("data-1",), "procedure-1", "checkpoint-1"),))
    admit_lineage(lineage, "retromae", "checkpoint-1", names)
    for name in model.training_state():
        if name not in names:  # served with the encoder, each of them is refused
            with pytest.raises(ReadoutError, match=f"lineage.exported = '{name}'"):
                admit_lineage(lineage, "retromae", "checkpoint-1", [*names, name])


def test_both_need_full_visibility():
    encoder = CausalEncoder(dataclasses.replace(CONFIG, visibility="causal"), initial_tensors(CONFIG.tensors()))
    with pytest.raises(ContractError, match="encoder visibility = 'causal'"):
        RetroMAE(encoder, DECODER, {}, np.zeros((20, 8), F), SETTINGS)
