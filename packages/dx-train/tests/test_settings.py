"""Settings, schedule and stream."""
import math

import pytest
from dx_train import ExampleStream, TrainSettings, learning_rate


def test_schedule():
    """Peak at step warmup - 1, a tenth at the last step, linear between; against the seed's words."""
    rates = [learning_rate(step, 50, 2.0, 10, 0.1) for step in range(50)]
    assert rates[9] == max(rates) == 2.0 and math.isclose(rates[-1], 0.2)
    assert all(math.isclose(b - a, 0.2) for a, b in zip(rates[:9], rates[1:10]))
    assert all(math.isclose(a - b, 1.8 / 40) for a, b in zip(rates[9:], rates[10:]))
    assert learning_rate(0, 1, 1.0, 0, 0.1) == pytest.approx(0.1)
    assert learning_rate(3, 4, 1.0, 8, 0.1) == 0.5  # a warm-up longer than the run
    with pytest.raises(ValueError, match="step = 4: expected 0 to 3"):
        learning_rate(4, 4, 1.0, 1, 0.1)


@pytest.mark.parametrize("values, match", [
    ({"seed": -1}, "seed = -1"), ({"seed": 2 ** 32}, "less than 2"), ({"batch": 0}, "batch = 0"),
    ({"batch": True}, "batch = True"), ({"learning_rate": float("nan")}, "learning_rate = nan"),
    ({"learning_rate": "1"}, "learning_rate = '1'"), ({"beta2": 1.0}, "beta2 = 1.0"), ({"eps": 0.0}, "eps = 0.0"),
    ({"augment": 1.5}, "augment = 1.5"), ({"epochs": 0}, "steps = 0 and epochs = 0"),
    ({"loss_weights": {"tags": 1.0}}, "term 'tags'"), ({"loss_weights": {"tag": -1.0}}, "finite number of at least 0"),
    ({"loss_weights": (("tag", 1), ("tag", 2))}, "a term twice"),
    ({"loss_weights": {"tag": 0.0}}, "at least one term")])
def test_wrong_settings(values, match):
    with pytest.raises(ValueError, match=match):
        TrainSettings(**values)


def test_head_only_runs_need_the_tag_loss():
    assert TrainSettings(backbone_scale=0.0).active_losses() == {"tag": 1.0}
    with pytest.raises(ValueError, match="tag term above 0"):
        TrainSettings(backbone_scale=0.0, loss_weights={"run": 1.0}).active_losses()


def test_bits_hold_everything_but_intervals():
    plain = TrainSettings().bits()
    assert TrainSettings(checkpoint_every=1, digest_every=2).bits() == plain
    for name, value in (("seed", 1), ("batch", 4), ("augment", 0.5), ("ema_decay", 0.9), ("patience", 2),
                        ("loss_weights", {"tag": 2.0}), ("variant_share", 0.1), ("evaluate_every", 3)):
        assert TrainSettings(**{name: value}).bits() != plain
    assert TrainSettings(learning_rate=1).bits() == TrainSettings(learning_rate=1.0).bits()


def test_steps_of_a_run():
    assert TrainSettings(epochs=3, batch=8).total_steps(10) == 4 and TrainSettings(steps=7).total_steps(1) == 7
    assert TrainSettings(batch=8).evaluation_interval(17) == 3


def test_a_batch_larger_than_the_examples_takes_them_again():
    stream = ExampleStream(3, 8, 1)
    assert len(stream.step(0)) == 8 and [epoch for epoch, _ in stream.step(0)] == [0, 0, 0, 1, 1, 1, 2, 2]
    with pytest.raises(ValueError, match="count = 0"):
        ExampleStream(0, 1, 1)
