"""Heads over pooled rows: single label, regression, multilabel, multiple choice; label maps; admission."""
import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import heads
from slopes import check_slopes

f32 = np.float32
LABELS = heads.LabelMap(("negative", "neutral", "positive"))


def normal(rng, *shape, size=1.0):
    return (rng.standard_normal(shape) * size).astype(f32)


def refused(field, call, *args, **kwargs):
    """The call is refused, and says so of this field."""
    with pytest.raises(readout.ReadoutError) as caught:
        call(*args, **kwargs)
    assert caught.value.field == field, caught.value


def single(rng, labels=LABELS, width=5, **settings):
    return heads.SingleLabelHead(labels, normal(rng, len(labels), width), normal(rng, len(labels)), **settings)


def test_multiclass(rng):
    """Logits (B, C), one softmax over the labels, argmax: head, loss, gradient and decision."""
    head, r, y = single(rng), normal(rng, 4, 5), np.array([2, 0, -1, 1])
    logits = head.forward(r)
    exact = r.astype(np.float64) @ head.linear.weight.T.astype(np.float64) + head.linear.bias
    assert logits.shape == (4, 3) and np.abs(logits - exact).max() < 1e-6
    loss = head.loss(logits, y)
    e = np.exp(exact)
    p = e / e.sum(1, keepdims=True)
    kept = np.array([0, 1, 3])
    assert loss.denominator == 3 and abs(loss.numerator + np.log(p[kept, y[kept]]).sum()) < 1e-6
    dr, gradients = head.backward(logits, y, r, scale=0.5)
    error = np.where((y >= 0)[:, None], p - (np.arange(3) == y[:, None]), 0) * 0.5 / 3
    assert np.abs(dr - error @ head.linear.weight).max() < 1e-6  # W^T (p - e_y)
    assert dr[2].tolist() == [0] * 5
    check_slopes(lambda: 0.5 * head.loss(head.forward(r), y).value, [r, *head.parameters().values()],
                 [dr, gradients["weight"], gradients["bias"]])
    scores = head.scores(r, "release-1")
    assert scores.type is readout.ScoreType.LOGIT and scores.axis == LABELS.names
    p = readout.softmax(scores)
    assert np.array_equal(readout.top_k(p, 1)[:, 0], exact.argmax(1))
    assert np.abs(p.values.sum(1) - 1).max() < 1e-15
    assert sum(x.size for x in head.parameters().values()) == 3 * 5 + 3  # C D + C
    turned = head.with_labels(heads.LabelMap(LABELS.names[::-1]))  # label order moves rows, probabilities, decisions
    assert np.array_equal(turned.forward(r), logits[:, ::-1])


def test_label_order_is_identity(rng):
    """Another order of the labels permutes the rows, or is refused; the same shape says nothing."""
    head, other = single(rng), heads.LabelMap(("positive", "negative", "neutral"))
    moved, r = head.with_labels(other), normal(rng, 3, 5)
    a, b = head.scores(r, "r"), moved.scores(r, "r")
    for name in LABELS.names:
        assert np.array_equal(a.values[:, LABELS.id(name)], b.values[:, other.id(name)])
    assert not np.array_equal(a.values, b.values)
    refused("output.labels[0]", LABELS.same, other)
    refused("output.labels", head.with_labels, heads.LabelMap(("negative", "neutral", "good")))
    refused("scores.axis", a.same_scale, b)


def test_label_maps_are_bijective():
    assert heads.label_map({"a": 0, "b": 1}, {"0": "a", "1": "b"}).names == ("a", "b")
    refused("output.label2id", heads.label_map, {"a": 1, "b": 0}, {0: "a", 1: "b"})
    refused("output.id2label", heads.label_map, {"a": 0, "b": 2}, {0: "a", 2: "b"})
    refused("output.labels[1]", heads.LabelMap, ("a", "a"))
    refused("output.labels", heads.LabelMap, ())
    assert LABELS.id2label == {0: "negative", 1: "neutral", 2: "positive"} and LABELS.label2id["positive"] == 2


def test_dropout_is_part_of_the_head_and_off_in_evaluation(rng):
    head, r = single(rng, dropout=0.5), normal(rng, 3, 5)
    factors = f32(2) * (rng.random((3, 5)) < 0.5).astype(f32)
    assert np.array_equal(head.forward(r), single(np.random.default_rng(20)).forward(r))
    trained = head.forward(r, training=True, factors=factors)
    assert np.array_equal(trained, head.forward(r * factors)) and not np.array_equal(trained, head.forward(r))
    refused("factors", head.forward, r, factors=factors)
    refused("factors", head.forward, r, training=True)
    refused("factors", single(rng).forward, r, training=True, factors=factors)
    refused("head.dropout", single, rng, dropout=1.0)
    y = np.array([0, 1, 2])
    dr, gradients = head.backward(trained, y, r, factors=factors)
    check_slopes(lambda: head.loss(head.forward(r, training=True, factors=factors), y).value,
                 [r, *head.parameters().values()], [dr, gradients["weight"], gradients["bias"]])


def test_sequence_classification_pools_drops_and_scores(rng):
    head, hidden = single(rng, dropout=0.25), normal(rng, 2, 4, 5)
    mask = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], bool)

    def pool(h, m):
        return np.stack([h[b][m[b]][0] for b in range(len(h))])
    out = heads.sequence_classification(hidden, mask, pool, head)
    assert out["loss"] is None and np.array_equal(out["readout"], hidden[[0, 1], [0, 1]])
    assert np.array_equal(out["logits"], head.forward(out["readout"]))
    factors = np.full((2, 5), 4 / 3, f32)
    trained = heads.sequence_classification(hidden, mask, pool, head, [0, 2], training=True, factors=factors)
    assert trained["loss"] == head.loss(trained["logits"], [0, 2]) and trained["loss"].denominator == 2


TARGETS = heads.TargetScale(("amount", "days"), ("EUR", "d"), (100.0, 10.0), (50.0, 4.0))


def regression(rng, kind, **settings):
    width = 4 if kind == "gaussian" else 2
    return heads.RegressionHead(TARGETS, heads.RegressionObjective(kind, 0.8), normal(rng, width, 3),
                                normal(rng, width), **settings)


@pytest.mark.parametrize("kind", ["squared", "absolute", "huber", "gaussian"])
def test_regression(rng, kind):
    """Values (B, R), a loss for each coordinate, inverse transform and domain: no softmax couples them."""
    head, r = regression(rng, kind, domain=[(0.0, 160.0), None]), normal(rng, 5, 3)
    y = np.array([[150, 6], [80, np.nan], [40, 15], [200, 3], [np.nan, 11.0]])
    missing = np.isnan(y)
    prediction = head.forward(r)
    loss = head.loss(prediction, y, missing)
    assert loss.denominator == 8  # B R less the two missing
    dr, gradients = head.backward(prediction, y, r, missing)
    check_slopes(lambda: head.loss(head.forward(r), y, missing).value, [r, *head.parameters().values()],
                 [dr, gradients["weight"], gradients["bias"]], step=2.0**-9, tolerance=4e-3)
    values = head.values(prediction, "r")
    assert values.type is readout.ScoreType.VALUE and values.axis == ("amount", "days")
    restored = prediction[:, :2].astype(np.float64) * [50, 4] + [100, 10]
    assert np.array_equal(values.values[:, 1], restored[:, 1])
    assert np.array_equal(values.values[:, 0], np.clip(restored[:, 0], 0, 160))
    refused("scores.type", readout.softmax, values)
    if kind == "squared":
        e = (prediction - (y - [100, 10]) / [50, 4])[~missing]
        assert abs(loss.value - (e.astype(np.float64) ** 2).mean()) < 1e-7


def test_mean_squared_error_is_over_all_values(rng):
    """1 / (B R) and its gradient 2 / (B R) (prediction - target)."""
    head = heads.RegressionHead(heads.plain_scale("ab", "--"), heads.RegressionObjective(), np.eye(2, dtype=f32),
                                np.zeros(2, f32))
    r, y = np.array([[1, 2], [3, 5]], f32), np.array([[0, 0], [3, 1.0]])
    assert head.loss(head.forward(r), y) == heads.LocalLoss(21.0, 4.0)
    dr, _ = head.backward(head.forward(r), y, r)
    assert dr.tolist() == [[0.5, 1.0], [0.0, 2.0]]


def test_target_scaling_changes_the_gradient_and_is_released(rng):
    y, r = np.array([[150.0, 6.0]]), normal(rng, 1, 3)
    head = regression(rng, "squared")
    plain = heads.plain_scale(TARGETS.names, TARGETS.units)
    other = heads.RegressionHead(plain, head.objective, *head.parameters().values())
    assert head.loss(head.forward(r), y) != other.loss(other.forward(r), y)
    assert np.abs(TARGETS.restored(TARGETS.scaled(y)) - y).max() < 1e-12
    refused("output.targets.scale[0]", heads.TargetScale, ("a",), ("u",), (0.0,), (0.0,))
    refused("output.targets.units", heads.TargetScale, ("a",), (), (0.0,), (1.0,))


def test_an_undeclared_missing_target_is_refused(rng):
    head, r = regression(rng, "huber"), normal(rng, 1, 3)
    y = np.array([[np.nan, 1.0]])
    refused("targets[0, 0]", head.loss, head.forward(r), y)
    declared = head.loss(head.forward(r), y, np.array([[True, False]]))
    assert declared.denominator == 1 and np.isfinite(declared.numerator)
    assert head.loss(head.forward(r), y, np.array([[True, True]])) == heads.LocalLoss(0.0, 0.0)
    refused("objective.delta", heads.RegressionObjective, "huber", 0.0)
    refused("objective.kind", heads.RegressionObjective, "mse")
    refused("head.weight.shape", heads.RegressionHead, TARGETS, heads.RegressionObjective("gaussian"),
            normal(rng, 2, 3), normal(rng, 2))


def multilabel(rng, **settings):
    return heads.MultilabelHead(LABELS, normal(rng, 3, 4), normal(rng, 3), [0.2, 0.5, 0.9], **settings)


@pytest.mark.parametrize("settings", [{}, {"positive": [3.0, 1.0, 0.5]},
                                      {"gamma": 2.0, "positive": [0.25] * 3, "negative": [0.75] * 3}])
def test_multilabel(rng, settings):
    """Logits (B, C), a sigmoid term for each label, a threshold for each label; zero, one or many come out."""
    head, r = multilabel(rng, **settings), normal(rng, 6, 4, size=2.0)
    y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, -1, 1], [1, 0, 0], [-1, -1, -1]])
    logits = head.forward(r)
    loss = head.loss(logits, y)
    assert loss.denominator == 14
    dr, gradients = head.backward(logits, y, r)
    check_slopes(lambda: head.loss(head.forward(r), y).value, [r, *head.parameters().values()],
                 [dr, gradients["weight"], gradients["bias"]])
    scores = head.scores(r, "r")
    p = readout.sigmoid(scores)
    assert np.array_equal(head.decide(scores), p.values >= [0.2, 0.5, 0.9]) and not np.allclose(p.values.sum(1), 1)
    assert np.array_equal(head.decide(p), head.decide(scores))
    refused("scores.type", head.decide, readout.softmax(scores))
    order = heads.LabelMap(("positive", "negative", "neutral"))
    moved = head.with_labels(order)
    assert moved.thresholds == (0.9, 0.2, 0.5)
    assert np.array_equal(moved.decide(moved.scores(r, "r")), head.decide(scores)[:, [2, 0, 1]])
    assert moved.loss(moved.forward(r), y[:, [2, 0, 1]]).value == pytest.approx(loss.value, rel=1e-12)


def test_multilabel_needs_a_threshold_for_each_label(rng):
    refused("output.thresholds", heads.MultilabelHead, LABELS, normal(rng, 3, 4), normal(rng, 3), None)
    refused("output.thresholds", heads.MultilabelHead, LABELS, normal(rng, 3, 4), normal(rng, 3), [0.5])
    refused("output.thresholds[1]", heads.MultilabelHead, LABELS, normal(rng, 3, 4), normal(rng, 3), [0.5, 1.5, 0.5])


def test_multiple_choice(rng):
    """Logits (B, K), softmax over the candidates of one example, argmax over them."""
    head = heads.MultipleChoiceHead(normal(rng, 1, 4), normal(rng, 1))
    ids = rng.integers(0, 9, (3, 2, 7))
    assert np.array_equal(heads.flatten_candidates(ids)[3], ids[1, 1])
    r, examples, y = normal(rng, 6, 4), ["a", "a", "b", "b", "c", "c"], np.array([1, 0, -1])
    logits = head.forward(r, examples)
    assert logits.shape == (3, 2)
    p = np.exp(logits.astype(np.float64))
    p = p / p.sum(1, keepdims=True)
    loss = head.loss(logits, y)
    assert loss.denominator == 2 and abs(loss.numerator + np.log(p[[0, 1], [1, 0]]).sum()) < 1e-6
    dr, gradients = head.backward(logits, y, r)
    check_slopes(lambda: head.loss(head.forward(r, examples), y).value, [r, *head.parameters().values()],
                 [dr, gradients["weight"], gradients["bias"]])
    scores = head.scores(logits, "r", ("first", "second"))
    assert np.array_equal(readout.top_k(readout.softmax(scores), 1)[:, 0], p.argmax(1))
    admit = np.array([[True, True], [True, False], [False, True]])
    assert head.loss(logits, np.array([-1, 0, -1]), admit).numerator == 0  # the only candidate
    for wrong in ("ababcc", "aabbbc"):  # flattened rows are no independent examples, and all have equally many
        refused("examples", head.forward, r, list(wrong))


def test_candidates_keep_their_example_and_order(rng):
    head, r = heads.MultipleChoiceHead(normal(rng, 1, 4), normal(rng, 1)), normal(rng, 4, 4)
    refused("examples", head.forward, r, ["a", "b", "a", "b"])
    refused("examples", head.forward, r, ["a", "a", "a", "b"])
    refused("examples", head.forward, r, ["a", "a"])
    logits = head.forward(r, ["a", "a", "b", "b"])
    independent = sum(np.logaddexp(0, -z) for z in logits[:, 0].astype(float))  # as binary examples: another loss
    assert abs(head.loss(logits, np.array([0, 0])).numerator - independent) > 1e-3


def test_rows_of_a_batch_do_not_hear_each_other(rng):
    head, r = single(rng, width=33), normal(rng, 9, 33)
    together = head.forward(r)
    for i in range(9):
        assert np.array_equal(head.forward(r[i:i + 1])[0], together[i])


def batch(b=2, s=4, **changes):
    offsets = np.array([[(-1, -1), (0, 2), (2, 5), (-1, -1)]] * b)
    return heads.HeadBatch(**{"input_ids": np.zeros((b, s), int), "label_mask": offsets[..., 0] >= 0,
                              "context_mask": offsets[..., 0] >= 0, "offsets": offsets,
                              "emitted": offsets[..., 0] >= 0, **changes})


RIGHT = {
    "classification": (heads.HeadOutput("classification", 3, LABELS.names), 3, (2, 3)),
    "regression": (heads.HeadOutput("regression", 2, ("a", "b")), 4, (2, 2)),
    "multilabel": (heads.HeadOutput("multilabel", 3, LABELS.names, (0.1, 0.2, 0.3)), 3, (2, 3)),
    "token_classification": (heads.HeadOutput("token_classification", 3, LABELS.names), 3, (2, 4, 3)),
    "extractive_qa": (heads.HeadOutput("extractive_qa", 2, max_answer_length=8), 2, (2, 4, 2)),
}


@pytest.mark.parametrize("kind", sorted(RIGHT))
def test_admission_of_a_right_head(kind):
    output, features, shape = RIGHT[kind]
    heads.validate_task_head(output, features, batch(), np.zeros(shape))
    refused("output.shape", heads.validate_task_head, output, features, batch(), np.zeros((2, 9)))
    refused("head.out_features", heads.validate_task_head, output, features + 1, batch(), np.zeros(shape))


def test_admission_of_multiple_choice():
    output, b = heads.HeadOutput("multiple_choice", 5), heads.HeadBatch(np.zeros((2, 5, 4), int))
    heads.validate_task_head(output, 1, b, np.zeros((2, 5)))
    refused("batch.input_ids.shape", heads.validate_task_head, output, 1, batch(), np.zeros((2, 5)))
    refused("head.out_features", heads.validate_task_head, output, 5, b, np.zeros((2, 5)))


def test_admission_fails_closed_and_names_the_field():
    for kind, changes, field in (
            ("token_classification", {"label_mask": np.ones((2, 3), bool)}, "batch.label_mask"),
            ("token_classification", {"label_mask": None}, "batch.label_mask"),
            ("token_classification", {"offsets": None}, "batch.offsets"),
            ("token_classification", {"emitted": np.ones((2, 4), bool)}, "batch.offsets"),
            ("extractive_qa", {"context_mask": np.ones((1, 4), bool)}, "batch.context_mask"),
            ("extractive_qa", {"offsets": None}, "batch.offsets"),
            ("extractive_qa", {"context_mask": np.ones((2, 4), bool)}, "batch.offsets")):
        output, features, shape = RIGHT[kind]
        refused(field, heads.validate_task_head, output, features, batch(**changes), np.zeros(shape))
    for output, features, shape, field in (
            (heads.HeadOutput("extractive_qa", 2), 2, (2, 4, 2), "output.max_answer_length"),
            (heads.HeadOutput("multilabel", 3, LABELS.names, (0.5,)), 3, (2, 3), "output.thresholds"),
            (heads.HeadOutput("multilabel", 3, LABELS.names), 3, (2, 3), "output.thresholds"),
            (heads.HeadOutput("classification", 3, ("a", "b", "a")), 3, (2, 3), "output.labels[2]"),
            (heads.HeadOutput("classification", 3, ("a", "b")), 3, (2, 3), "output.labels"),
            (heads.HeadOutput("classification", 3), 3, (2, 3), "output.labels"),
            (heads.HeadOutput("embedding", 3), 3, (2, 3), "output.kind")):
        refused(field, heads.validate_task_head, output, features, batch(), np.zeros(shape))


def test_losses_of_parts_add_to_numerator_and_denominator():
    assert heads.LocalLoss(1.0, 2.0) + heads.LocalLoss(3.0, 2.0) == heads.LocalLoss(4.0, 4.0)
    assert heads.LocalLoss(0.0, 0.0).value == 0.0 and heads.LocalLoss(3.0, 2.0).value == 1.5
