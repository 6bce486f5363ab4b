"""Losses over a whole batch: order, bits, memory, derivatives, resume, and what is refused."""
import dataclasses

import dx_train
import numpy as np
import pytest
import tiny
from dx_train import (
    CoupledGradients,
    Coupling,
    DocExtractPasses,
    FineTune,
    Gradients,
    LossPart,
    Outputs,
    TrainingError,
    Workspace,
)

CONFIG = dataclasses.replace(tiny.CONFIG, doc_types=tuple(f"t{i}" for i in range(8)))
SETTINGS = dataclasses.replace(tiny.SETTINGS, batch=4, augment=0.5)
HEADS = ("doc",)


class Spread:
    """Each example's document logits as a vector: 1/B Σ_i log Σ_j≠i exp(v_i · v_j), so that all examples meet all."""

    weights = {"spread": 0.5}
    scale = 1.0

    def run(self, outputs, examples):
        v = np.array([out.doc for out in outputs], np.float64) * self.scale
        s = v @ v.T
        np.fill_diagonal(s, -np.inf)
        s_max = s.max(axis=1, keepdims=True)
        total = np.exp(s - s_max).sum(axis=1, keepdims=True)
        p = np.exp(s - s_max) / total
        count = len(outputs)
        dv = 0.5 * self.scale * (p @ v + p.T @ v) / count
        douts = [Outputs(doc=row.astype(np.float32)) for row in dv]
        return {"spread": LossPart(float((np.log(total) + s_max).sum()), float(count))}, douts

    def settings(self):
        return {"loss": "spread", "scale": self.scale}


def batch(count=5):
    return [tiny.example(k, tiny.CONFIG) for k in range(count)]


def model():
    found = tiny.model(config=CONFIG)
    rng = np.random.default_rng(3)
    found.parameters["doc_head.weight"][...] = rng.standard_normal((8, CONFIG.hidden_size)) / 2
    found.repack()
    return found


def run(examples, loss=None, keep=True, start=None):
    gradients = CoupledGradients(DocExtractPasses(start or model(), HEADS), loss or Spread(), keep)
    try:
        return gradients.run(examples), gradients.total.copy()
    finally:
        gradients.close()


def test_the_order_is_forwards_one_loss_backwards_added_in_example_order():
    examples, m = batch(), model()
    saved = [m.forward_saved(e.page, Workspace(), HEADS) for e in examples]
    parts, douts = Spread().run([s.outputs for s in saved], examples)
    total = None
    for one, dout in zip(saved, douts):
        own = Gradients(CONFIG)
        m.backward(one, dout, own)
        if total is None:
            total = own
        else:
            total.add(own)
    result, got = run(examples)
    assert got.flat.tobytes() == total.flat.tobytes() and got.flat.any()
    assert result.parts == [parts] and result.terms == {"spread": parts["spread"].value}
    assert result.loss == 0.5 * parts["spread"].value and result.words == sum(len(e.page) for e in examples)


@pytest.mark.parametrize("keep", [True, False])
def test_degree_and_second_forward_do_not_show(keep):
    want = run(batch())[1].digest()
    for degree in (1, 2, 3, 7):
        with dx_train.degree(degree):
            assert run(batch(), keep=keep)[1].digest() == want
    for path in dx_train.available_paths():
        with dx_train.kernel_path(path):
            assert run(batch(3), keep=keep)[1].digest() == run(batch(3))[1].digest()


def test_the_gradient_is_the_derivative():
    """Along the gradient itself the loss changes as it says."""
    m, examples = model(), batch()
    flat = run(examples, start=m)[1].flat.astype(np.float64)
    step = 2e-3 / np.sqrt((flat ** 2).sum())

    def loss(sign):
        moved = dx_train.DocExtract(m.parameters.copy())
        moved.parameters.flat[:] = m.parameters.flat + sign * step * flat
        moved.repack()
        return run(examples, start=moved)[0].loss

    slope = (loss(1) - loss(-1)) / (2 * step)
    assert slope == pytest.approx((flat ** 2).sum(), rel=2e-3)


def test_memory_is_bounded_without_kept_activations():
    sizes = {}
    for count in (4, 12):
        for keep in (True, False):
            gradients = CoupledGradients(DocExtractPasses(model(), HEADS), Spread(), keep)
            gradients.run([batch()[0]] * count)
            sizes[count, keep] = gradients.nbytes
    assert sizes[4, False] == sizes[12, False] < sizes[4, True] < sizes[12, True]


def test_an_example_without_a_gradient_adds_nothing():
    class First(Spread):
        def run(self, outputs, examples):
            parts, douts = super().run(outputs, examples)
            return parts, [douts[0]] + [None] * (len(douts) - 1)

    with_none = run(batch(3), First())[1]
    m = model()
    saved = m.forward_saved(batch()[0].page, Workspace(), HEADS)
    _, douts = First().run([m.forward(e.page, HEADS) for e in batch(3)], batch(3))
    only = Gradients(CONFIG)
    m.backward(saved, douts[0], only)
    assert np.array_equal(with_none.flat, only.flat) and only.flat.any()


def scales():
    return {spec.name: 1.0 for spec in model().parameters.specs
            if not spec.name.startswith(("tag", "role", "rel"))}


def train(folder=None, settings=SETTINGS, loss=None, keep=True, stop=None):
    coupling = Coupling(loss or Spread(), lambda m: DocExtractPasses(m, HEADS), keep)
    with FineTune(settings, scales=scales(), coupling=coupling).start(model(), batch(7), folder=folder,
                                                                       tell=tiny.quiet) as r:
        losses = []
        for record in r:
            losses.append(record.loss)
            if record.step == stop:
                return losses
        return r.finish(), losses


def test_a_coupled_run_learns_and_resumes_to_the_byte(tmp_path):
    straight, losses = train(tmp_path / "straight", keep=False)
    assert losses[-1] < losses[0] and straight.step == SETTINGS.steps
    train(tmp_path / "stopped", stop=7)
    resumed, _ = train(tmp_path / "stopped")
    assert resumed.digest == straight.digest


def test_another_loss_is_another_run(tmp_path):
    train(tmp_path, stop=4)
    other = Spread()
    other.scale = 2.0
    with pytest.raises(dx_train.CheckpointError, match="its loss differs"):
        train(tmp_path, loss=other)


def test_what_is_not_finite_is_named():
    class Infinite(Spread):
        def run(self, outputs, examples):
            return {"spread": LossPart(np.inf, 1.0)}, super().run(outputs, examples)[1]

    with pytest.raises(TrainingError, match="the spread loss over the examples r0#0, r1#0 is inf"):
        run(batch(2), Infinite())

    class Overflows(Spread):
        def run(self, outputs, examples):
            parts, douts = super().run(outputs, examples)
            douts[-1].doc[0] = np.inf
            return parts, douts

    with pytest.raises(TrainingError, match=r"step 1: example r\d#0: the gradient of tensor \S+ is not finite"):
        train(loss=Overflows())


def test_a_loss_that_breaks_the_protocol_is_refused():
    class Short(Spread):
        def run(self, outputs, examples):
            parts, douts = super().run(outputs, examples)
            return parts, douts[1:]

    with pytest.raises(ValueError, match="gave 1 gradients and the terms spread: expected 2 and spread"):
        run(batch(2), Short())
    with pytest.raises(ValueError, match="coupling needs scales"):
        FineTune(SETTINGS, coupling=Coupling(Spread(), lambda m: DocExtractPasses(m, HEADS)))
