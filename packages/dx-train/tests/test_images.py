"""A vision transformer in the same transaction: plain descent, order of sums, resume, what is learnt and refused."""
import dataclasses

import dx_train
import numpy as np
import pytest
from dx_train import (
    SGD,
    Accuracy,
    BatchGradients,
    ClassLoss,
    FineTune,
    ImageExample,
    TrainingError,
    TrainSettings,
    ViT,
    ViTConfig,
    ViTGradients,
    ViTPasses,
    Workspace,
    image_classification,
    scaled_set,
)

f32 = np.float32
CONFIG = ViTConfig(image_size=(8, 8), num_channels=1, patch_size=2, num_classes=3, hidden_size=12, num_hidden_layers=2,
                   num_attention_heads=3, intermediate_size=24)
SETTINGS = TrainSettings(seed=3, steps=10, batch=4, learning_rate=0.125, warmup=0, optimizer="sgd", clip_norm=0.0,
                         checkpoint_every=3)


def examples(count=9, seed=0):
    """Images of noise with a bright row, column or nothing: three classes."""
    rng, made = np.random.default_rng(seed), []
    for i in range(count):
        image = (rng.random((1, 8, 8)) * 0.5).astype(f32)
        at = int(rng.integers(8))
        if i % 3 == 0:
            image[0, at] += 1
        elif i % 3 == 1:
            image[0, :, at] += 1
        made.append(ImageExample(f"i{i}", image, i % 3))
    return made


def model(seed=1):
    """Random everywhere, no tensor of zeros or ones."""
    found, rng = ViT.initial(CONFIG, seed), np.random.default_rng(seed)
    for _, array in found.parameters.items():
        array[...] += (rng.standard_normal(array.shape) * 0.1).astype(f32)
    found.repack()
    return found


def quiet(text):
    """A message nobody reads."""


def train(settings=SETTINGS, **more):
    run = FineTune(settings, task=image_classification())
    return run.run(model(), examples(), tell=quiet, progress=False, **more)


def gradients_of(some, example, factor):
    gradients, space = ViTGradients(CONFIG), Workspace()
    saved = some.forward_saved(example.image, space)
    _, dlogits = ClassLoss().run(saved.outputs, example.label, factor, space)
    some.backward(saved, dlogits, gradients)
    return gradients


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_batch_is_its_examples_added_in_order(degree):
    some, batch = model(), examples(5)
    total = gradients_of(some, batch[0], 0.2)
    for example in batch[1:]:
        total.add(gradients_of(some, example, 0.2))
    sums = BatchGradients(some, ClassLoss(), passes=ViTPasses(some))
    with dx_train.degree(degree):
        result = sums.run(batch)
    sums.close()
    assert sums.total.flat.tobytes() == total.flat.tobytes() and result.words == 5
    assert sums.total["cls"].tobytes() == sums.total["pos"][0].tobytes()  # of a batch as of one image


def test_one_step_of_plain_descent_is_w_minus_rate_times_gradient():
    """The whole transaction over one image gives, in every tensor, W - lr G with two roundings."""
    before, example = model(), examples(1)
    gradients = gradients_of(before, example[0], 1.0)
    settings = dataclasses.replace(SETTINGS, steps=1, batch=1, final_rate=1.0)
    result = FineTune(settings, task=image_classification()).run(before, example, tell=quiet, progress=False)
    for name, array in before.parameters.items():
        assert result.parameters[name].tobytes() == (array - f32(0.125) * gradients[name]).tobytes(), name
        if "k.bias" not in name:  # a softmax does not see it: its gradient is rounding alone, below the weight's
            assert not np.array_equal(result.parameters[name], array), name


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_resumed_elsewhere_gives_the_same_bytes(tmp_path, optimizer):
    settings = dataclasses.replace(SETTINGS, optimizer=optimizer, learning_rate=0.01, ema_decay=0.9)
    whole = train(settings, folder=tmp_path / "whole")
    with FineTune(settings, task=image_classification()).start(model(), examples(), folder=tmp_path / "cut",
                                                               tell=quiet) as run:
        for _ in range(5):
            run.advance()  # the last checkpoint is that of step 3
    with dx_train.degree(3), dx_train.kernel_path("portable"):
        again = train(settings, folder=tmp_path / "cut")
    assert again.digest == whole.digest and again.step == 10
    kinds = {name.split("/")[0] for name in dx_train.read_checkpoint(
        sorted((tmp_path / "whole").glob("checkpoint-*"))[-1]).tensors}
    assert kinds == {"weight", "average"} | ({"first", "second"} if optimizer == "adamw" else set())
    assert ViT.from_pretrained(tmp_path / "cut").parameters.digest() == whole.parameters.digest()


def test_another_optimizer_or_task_is_another_run(tmp_path):
    train(folder=tmp_path)
    with pytest.raises(dx_train.CheckpointError, match="its settings differs"):
        train(dataclasses.replace(SETTINGS, optimizer="adamw"), folder=tmp_path)


def test_it_learns_and_the_best_weights_are_kept():
    settings = dataclasses.replace(SETTINGS, steps=0, epochs=30, batch=8, optimizer="adamw", learning_rate=5e-3,
                                   warmup=20, evaluate_every=20)
    held = Accuracy(examples(60, seed=9))
    result = FineTune(settings, task=image_classification()).run(model(), examples(120, seed=5), development=held,
                                                                 tell=quiet, progress=False)
    assert held(model()) < 0.7 and result.best_score > 0.9
    assert held(ViT(result.parameters)) == result.best_score


def test_heads_alone():
    settings = dataclasses.replace(SETTINGS, backbone_scale=0.0)
    result, before = train(settings), model()
    changed = [name for name, array in before.parameters.items()
               if result.parameters[name].tobytes() != array.tobytes()]
    assert changed == ["head.weight", "head.bias"]
    assert scaled_set(before.parameters, 0.5).scales == (0.5,) * (len(before.parameters) - 2) + (1.0, 1.0)


def test_frozen_rows_and_scales_in_plain_descent():
    before, example = model(), examples(1)
    gradients = gradients_of(before, example[0], 1.0)
    settings = dataclasses.replace(SETTINGS, steps=1, batch=1, final_rate=1.0)
    result = FineTune(settings, task=image_classification(), scales={"pos": 0.5}, frozen_rows={"pos": (0, 3)}).run(
        before, example, tell=quiet, progress=False)
    expected = before.parameters["pos"] - f32(0.0625) * gradients["pos"]
    expected[[0, 3]] = before.parameters["pos"][[0, 3]]
    assert result.parameters["pos"].tobytes() == expected.tobytes()


def test_what_does_not_fit_is_refused():
    good = examples(2)
    for bad, match in ((dataclasses.replace(good[0], label=3), "label = 3: expected 0 to 2"),
                       (dataclasses.replace(good[0], image=good[0].image[0]), r"the image is float32 \(8, 8\)"),
                       (good[1], "two examples have the id 'i1'")):
        with pytest.raises(ValueError, match=match):
            FineTune(SETTINGS, task=image_classification()).run(model(), [bad, good[1]], tell=quiet)
    with pytest.raises(ValueError, match="optimizer = 'lamb': expected one of 'adamw', 'sgd'"):
        TrainSettings(optimizer="lamb")
    with pytest.raises(ValueError, match="coupling and task are both given"):
        FineTune(SETTINGS, task=image_classification(), coupling=object(), scales={"cls": 1.0})


def test_an_image_that_is_not_finite_is_named():
    bad = examples(9)
    bad[4].image[0, 0, 0] = np.nan
    with pytest.raises(TrainingError, match="example i4: the class loss is nan"):
        FineTune(SETTINGS, task=image_classification()).run(model(), bad, tell=quiet, progress=False)


def test_descent_has_no_moments():
    some = model()
    optimizer = SGD(some.parameters, scaled_set(some.parameters, 1.0))
    assert optimizer.moments == {} and optimizer.names == list(some.parameters)
