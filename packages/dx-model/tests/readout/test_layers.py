"""Layer choice: one, the mean of a set, the learned mixture with its gradients."""
import numpy as np
import pytest
from dx_model import readout

F32 = np.float32


def states(rng, count=4, batch=2, length=5, d=3):
    return [rng.standard_normal((batch, length, d)).astype(F32) for _ in range(count)]


VALID = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)


def test_one_layer(rng):
    h = states(rng)
    for k in (-1, 3, 0, -4):
        got, saved = readout.LayerChoice((k,)).forward(h)
        assert np.array_equal(got, h[k])
        dh = rng.standard_normal(got.shape).astype(F32)
        gradients, parameters = readout.LayerChoice((k,)).backward(dh, saved, VALID)
        assert list(gradients) == [k % 4] and np.array_equal(gradients[k % 4], dh) and parameters == {}


def test_mean_of_a_set(rng):
    h = states(rng)
    choice = readout.LayerChoice((-1, 1, 2), "mean")
    got, saved = choice.forward(h)
    assert np.abs(got - (h[3].astype(float) + h[1] + h[2]) / 3).max() < 1e-6
    gradients, _ = choice.backward(np.ones_like(got), saved, VALID)
    assert sorted(gradients) == [1, 2, 3] and all((g == F32(1) / F32(3)).all() for g in gradients.values())


def mixture(h, logits, gamma):
    e = np.exp(logits - logits.max())
    return gamma * sum(w * x for w, x in zip(e / e.sum(), h, strict=True))


def test_learned_mixture_and_its_gradients(rng):
    """alpha = softmax(logits), H = gamma * sum of alpha_k H_k: every gradient by central differences."""
    h, choice = states(rng, 3), readout.LayerChoice((0, 1, 2), "mixture")
    p = {"layers.logits": np.array([0.5, -1, 0.25], F32), "layers.gamma": np.array([1.5], F32)}
    assert choice.parameter_shapes() == {"layers.logits": (3,), "layers.gamma": (1,)}
    got, saved = choice.forward(h, p)
    exact = [x.astype(float) for x in h]
    logits, gamma = p["layers.logits"].astype(float), 1.5
    assert np.abs(got - mixture(exact, logits, gamma)).max() < 1e-6
    dh = np.where(VALID[..., None], rng.standard_normal(got.shape), 0).astype(F32)
    dstates, dp = choice.backward(dh, saved, VALID)

    def slope(change):
        ends = []
        for e in (1e-6, -1e-6):
            a, g, x = logits.copy(), np.array([gamma]), [s.copy() for s in exact]
            change(a, g, x, e)
            ends.append((mixture(x, a, g[0]) * dh).sum())
        return (ends[0] - ends[1]) / 2e-6

    for k in range(3):
        assert abs(slope(lambda a, g, x, e, k=k: a.__setitem__(k, a[k] + e)) - dp["layers.logits"][k]) < 1e-4
        for i in np.ndindex(got.shape):
            def change(a, g, x, e, k=k, i=i):
                x[k][i] += e
            assert abs(slope(change) - dstates[k][i]) < 1e-5
    assert abs(slope(lambda a, g, x, e: g.__iadd__(e)) - dp["layers.gamma"][0]) < 1e-4


def test_a_mixture_is_not_the_last_layer(rng):
    """The same shape, other rows: the logits and the scale travel with the head."""
    h, choice = states(rng), readout.LayerChoice((1, 2, 3), "mixture")
    p = {"layers.logits": np.zeros(3, F32), "layers.gamma": np.ones(1, F32)}
    assert not np.array_equal(choice.forward(h, p)[0], readout.LayerChoice().forward(h)[0])
    for missing in p:
        with pytest.raises(readout.ReadoutError) as caught:
            choice.forward(h, {n: v for n, v in p.items() if n != missing})
        assert caught.value.field == f"parameters.{missing}"


def test_padding_changes_no_bit_of_the_mixtures_gradients(rng):
    h, choice = states(rng, 3, 1, 5), readout.LayerChoice((0, 1, 2), "mixture")
    p = {"layers.logits": rng.standard_normal(3).astype(F32), "layers.gamma": np.array([0.7], F32)}
    dh = rng.standard_normal((1, 5, 3)).astype(F32)

    def run(before, after):
        def pad(x):
            return np.pad(x, ((0, 0), (before, after), (0, 0)), constant_values=9)
        got, saved = choice.forward([pad(x) for x in h], p)
        valid = (np.arange(before + 5 + after) >= before) & (np.arange(before + 5 + after) < before + 5)
        dstates, dp = choice.backward(pad(dh), saved, valid[None])
        return [got[:, valid], *(g[:, valid] for g in dstates.values()), *dp.values()]

    want = run(0, 0)
    for sides in ((3, 0), (0, 7), (16, 2)):
        assert all(np.array_equal(a, b) for a, b in zip(run(*sides), want, strict=True))


@pytest.mark.parametrize("arguments, field", [
    (((1, 2),), "contextual_state.layers"), (((), "mean"), "contextual_state.layers"),
    (((1.0,),), "contextual_state.layers"), (((1,), "sum"), "contextual_state.layers.kind")])
def test_wrong_choices_are_named(rng, arguments, field):
    with pytest.raises(readout.ReadoutError) as caught:
        readout.LayerChoice(*arguments)
    assert caught.value.field == field


def test_layers_outside_or_twice_are_named(rng):
    h = states(rng)
    for layers in ((4,), (-5,)):
        with pytest.raises(readout.ReadoutError, match="contextual_state.layers"):
            readout.LayerChoice(layers).forward(h)
    with pytest.raises(readout.ReadoutError, match="different layers"):
        readout.LayerChoice((3, -1), "mean").forward(h)
    with pytest.raises(readout.ReadoutError, match=r"states\[2\]"):
        readout.LayerChoice((1, 2), "mean").forward([*h[:2], h[2][:1], h[3]])
