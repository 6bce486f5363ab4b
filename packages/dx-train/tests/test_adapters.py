"""Bottlenecks and low-rank updates: they start as the base, leave it alone, and get the right gradients."""
import dataclasses

import numpy as np
import pytest
from dx_train import AdaptedEncoder, AdapterRelease, CausalConfig, CausalEncoder, LoRA, initial_tensors
from dx_train.trainable import ContractError

F = np.float32
CONFIG = CausalConfig(vocabulary=9, positions=8, hidden=8, heads=2, inner=12, blocks=3)
IDS = np.array([1, 4, 2, 8, 5], np.int32)


def base():
    tensors, rng = initial_tensors(CONFIG.tensors(), 2), np.random.default_rng(0)
    for array in tensors.values():
        array += (rng.standard_normal(array.shape) / 4).astype(F)
    return CausalEncoder(CONFIG, tensors)


def bottleneck(encoder, targets=(0, 1), rank=3):
    return AdapterRelease("bottleneck", encoder.digest(), targets, rank)


def shaken(tensors, seed=1):
    rng = np.random.default_rng(seed)
    for array in tensors.values():
        array += (rng.standard_normal(array.shape) / 4).astype(F)


def quotients(run, tensors, gradients, bound=5e-3):
    """Every gradient against the difference quotient of its largest element."""
    for name, gradient in gradients.items():
        at = tuple(int(v) for v in np.unravel_index(np.abs(gradient).argmax(), gradient.shape))
        before, values = tensors[name][at], []
        for step in (2.0**-7, -(2.0**-7)):
            tensors[name][at] = before + F(step)
            values.append(run())
        tensors[name][at] = before
        assert abs((values[0] - values[1]) * 2.0**6 - gradient[at]) < bound * max(1, abs(gradient[at])), name


@pytest.mark.parametrize("targets", [(0,), (2,), (0, 1), (0, 1, 2)])
def test_bottlenecks_start_as_the_base_and_learn_beside_it(targets):
    encoder = base()
    before, rows = encoder.digest(), encoder.forward(IDS)
    adapted = AdaptedEncoder(encoder, bottleneck(encoder, targets))
    assert np.array_equal(adapted.forward(IDS), rows)
    shaken(adapted.tensors)
    drows = np.random.default_rng(3).standard_normal(rows.shape).astype(F)
    _, kept = adapted.forward_saved(IDS)
    gradients = adapted.backward(kept, drows)
    assert list(gradients) == list(adapted.tensors) and len(gradients) == 4 * len(targets)
    quotients(lambda: float((adapted.forward(IDS).astype(np.float64) * drows).sum()), adapted.tensors, gradients, 2e-2)
    assert encoder.digest() == before and not np.array_equal(adapted.forward(IDS), rows)


def test_a_bottleneck_keeps_nothing_of_the_blocks_before_it():
    encoder = base()
    counts = {at: len(AdaptedEncoder(encoder, bottleneck(encoder, (at,))).forward_saved(IDS)[1][0][1][0])
              for at in (0, 1, 2)}
    assert counts[0] == 2 * counts[1] and counts[2] == 0  # activations of two blocks, of one, of none


def test_low_rank_updates_start_as_the_base():
    encoder = base()
    release = AdapterRelease("lora", encoder.digest(), ("blocks.0.qkv.weight", "blocks.2.fc1.weight"), 2, alpha=4.0)
    lora = LoRA(encoder.tensors, release)
    for name, used in lora.used().items():
        assert np.array_equal(used, encoder.tensors[name])
    assert lora.tensors["lora.blocks.0.qkv.weight.a"].any() and not lora.tensors["lora.blocks.0.qkv.weight.b"].any()
    assert sum(t.size for t in lora.tensors.values()) == 2 * (24 + 8) + 2 * (12 + 8)


def test_low_rank_gradients_and_merged_weights():
    encoder = base()
    before = encoder.digest()
    release = AdapterRelease("lora", before, ("blocks.0.qkv.weight", "blocks.2.fc1.weight"), 2, alpha=4.0)
    lora = LoRA(encoder.tensors, release)
    shaken(lora.tensors)
    drows = np.random.default_rng(3).standard_normal((5, 8)).astype(F)

    def rows():
        return CausalEncoder(CONFIG, lora.used()).forward(IDS)
    running = CausalEncoder(CONFIG, lora.used())
    _, kept = running.forward_saved(IDS)
    gradients = lora.backward(running.backward(IDS, kept, drows))
    assert list(gradients) == list(lora.tensors)
    quotients(lambda: float((rows().astype(np.float64) * drows).sum()), lora.tensors, gradients, 2e-2)
    a, b = (lora.tensors[f"lora.blocks.2.fc1.weight.{part}"].astype(np.float64) for part in "ab")
    merged = encoder.tensors["blocks.2.fc1.weight"] + 2.0 * (b @ a)
    assert np.abs(lora.used()["blocks.2.fc1.weight"] - merged).max() < 1e-5
    assert lora.used()["blocks.0.proj.weight"] is encoder.tensors["blocks.0.proj.weight"]
    assert encoder.digest() == before


def test_an_adapter_belongs_to_its_base():
    encoder = base()
    other = CausalEncoder(CONFIG, initial_tensors(CONFIG.tensors(), 3))
    release = bottleneck(encoder)
    with pytest.raises(ContractError, match="base_release"):
        AdaptedEncoder(other, release)
    assert len({release.digest(), *(dataclasses.replace(release, **change).digest() for change in
                                    ({"rank": 4}, {"targets": (1,)}, {"base": "b"}, {"alpha": 2.0}))}) == 5


def test_what_adapters_refuse():
    encoder = base()
    for change, message in (({"kind": "prefix"}, "adapter_kind"), ({"rank": 0}, "rank 0"), ({"targets": ()}, "targets"),
                            ({"targets": (1, 1)}, "different targets")):
        with pytest.raises(ContractError, match=message):
            dataclasses.replace(bottleneck(encoder), **change)
    with pytest.raises(ContractError, match="expected a block, 0..2"):
        AdaptedEncoder(encoder, bottleneck(encoder, (3,)))
    with pytest.raises(ContractError, match="a matrix of the base"):
        LoRA(encoder.tensors, AdapterRelease("lora", encoder.digest(), ("ln.weight",), 2))
    with pytest.raises(ContractError, match="expected bottleneck"):
        AdaptedEncoder(encoder, AdapterRelease("lora", encoder.digest(), ("ln.weight",), 2))
