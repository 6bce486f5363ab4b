"""Local numerators and denominators, and their joint loss: each task normalised first, then weighted."""
import numpy as np
import pytest
from dx_model.readout import ReadoutError, heads
from dx_train import LocalLoss, allowed_denominators, effective_weights, joint_loss, local_loss
from dx_train.trainable import ContractError


def test_two_tasks_make_two_and_a_half():
    """Two sequence losses that sum to 4, four token losses that sum to 4, weights 1 and 0.5: 2 + 0.5 = 2.5."""
    sequence = local_loss("classification", [1.5, 2.5], np.ones(2, bool))
    token = local_loss("token_classification", [[1.0, 1.0], [0.5, 1.5]], np.ones((2, 2), bool))
    assert (sequence.numerator, sequence.denominator, token.numerator, token.denominator) == (4, 2, 4, 4)
    joint = joint_loss([("sequence", sequence), ("token", token)], {"sequence": 1.0, "token": 0.5})
    assert joint.loss == 2.5
    first, second = joint.shares
    assert (first.local, second.local, first.scale, second.scale) == (2.0, 1.0, 0.5, 0.125)


def test_raw_sums_are_another_mixture():
    """Adding all elements and dividing by their number lets the task with more rows dominate; the report of every
    S, D, L and weight is what shows it."""
    sequence, token = LocalLoss(4.0, 2.0), LocalLoss(40.0, 40.0)
    joint = joint_loss([("sequence", sequence), ("token", token)], {"sequence": 1.0, "token": 1.0})
    raw = (4.0 + 40.0) / (2.0 + 40.0)
    assert joint.loss == 3.0 and abs(raw - 1.0476) < 1e-4
    assert [(s.numerator, s.denominator, s.local, s.weight) for s in joint.shares] == [(4, 2, 2, 1), (40, 40, 1, 1)]


def test_the_sampler_weighs_too():
    assert effective_weights({"a": 1.0, "b": 0.5}, {"a": 1, "b": 2}) == {"a": 0.5, "b": 0.5}
    with pytest.raises(ContractError, match="task_sampler"):
        effective_weights({"a": 1.0}, {"b": 1})


ELEMENTS = {  # objective: losses, supervised, count
    "classification": ([1.0, 9.0, 3.0], [1, 0, 1], 2), "regression": ([1.0, 9.0, 3.0], [1, 0, 1], 2),
    "multilabel": ([[1.0, 9.0], [2.0, 3.0]], [[1, 0], [1, 1]], 3), "multiple_choice": ([2.0, 4.0], [1, 1], 2),
    "token_classification": ([[9.0, 1.0, 9.0, 2.0], [9.0, 3.0, 9.0, 9.0]], [[0, 1, 0, 1], [0, 1, 0, 0]], 3),
    "extractive_qa": ([[1.0, 3.0], [9.0, 9.0]], [[1, 1], [0, 0]], 2), "contrastive": ([1.0, 5.0], [1, 1], 2)}


def check(objective):
    losses, supervised, count = ELEMENTS[objective]
    supervised = np.array(supervised, bool)
    got = local_loss(objective, losses, supervised)
    assert got.denominator == count and got.numerator == np.array(losses)[supervised].sum()
    assert got.denominator < supervised.size or supervised.all()


def test_sequence_losses_count_examples():
    check("classification")
    check("regression")
    weights = local_loss("regression", [1.0, 3.0], np.ones(2, bool), np.array([1.0, 3.0]))
    assert weights.value == 2.5  # the sum of weights, where there are some


def test_multilabel_losses_count_cells():
    check("multilabel")


def test_multiple_choice_losses_count_examples():
    """The candidate axis is inside the logits: one loss an example, however many candidates it has."""
    check("multiple_choice")


def test_token_losses_count_supervised_rows():
    check("token_classification")


def test_answer_losses_count_examples_in_both_channels():
    """The mean over both channels is half the sum of the two cross-entropies, as trained."""
    check("extractive_qa")
    assert local_loss("extractive_qa", [[1.0, 3.0]], np.ones((1, 2), bool)).value == 0.5 * (1.0 + 3.0)


def test_contrastive_losses_count_anchors():
    check("contrastive")


def test_the_attention_mask_is_no_label_mask():
    """Special rows, second pieces and the question are visible and unsupervised: reusing the attention mask counts
    them, and comparing the two tables shows it."""
    attention = np.array([[1, 1, 1, 1, 1, 0]], bool)
    supervised = np.array([[0, 1, 0, 1, 0, 0]], bool)  # [CLS] play ##ing in [SEP] [PAD], first pieces
    losses = np.array([[5.0, 1.0, 5.0, 2.0, 5.0, 5.0]])
    assert (attention & ~supervised).sum() == 3
    wrong, right = (local_loss("token_classification", losses, mask) for mask in (attention, supervised))
    assert right.value == 1.5 and wrong.value == 18 / 5
    head = heads.TokenHead(heads.LabelMap(("O", "B-X")), np.eye(2, dtype=np.float32), np.zeros(2, np.float32))
    targets, logits = np.where(supervised, 1, -1), np.zeros((1, 6, 2), np.float32)
    assert head.loss(logits, targets, supervised).denominator == 2
    with pytest.raises(ReadoutError, match=r"targets\[0, 0\] = -1: expected a label"):
        head.loss(logits, targets, attention)  # caught: the mask says [CLS] bears a label, the targets that it does not


def test_the_padded_size_is_no_denominator():
    losses = np.array([[1.0, 2.0] + [0.0] * 6])
    supervised = np.array([[1, 1] + [0] * 6], bool)
    assert local_loss("token_classification", losses, supervised).value == 1.5
    for name in ("padded_size", "batch", "sequence_length", "examples"):
        with pytest.raises(ContractError, match=f"denominator_kind = '{name}'"):
            local_loss("token_classification", losses, supervised, denominator=name)
    shorter = local_loss("token_classification", losses[:, :3], supervised[:, :3])
    assert shorter == local_loss("token_classification", losses, supervised)  # padding does not shrink it


def test_what_local_and_joint_losses_refuse():
    for arguments, message in (
            (("classification", [1.0], np.zeros(1, bool)), "valid_supervised_count = 0"),
            (("classification", [1.0], np.ones(1, bool), np.array([-1.0])), "weight: expected numbers >= 0"),
            (("classification", [[1.0]], np.ones((1, 1), bool)), "expected 1 axes"),
            (("classification", [1.0], np.ones(1)), "a bool mask"),
            (("extractive_qa", [[1.0, 1.0]], np.array([[True, False]])), "supervised together"),
            (("ranking", [1.0], np.ones(1, bool)), "objective_kind = 'ranking'")):
        with pytest.raises(ContractError, match=message):
            local_loss(*arguments)
    one = LocalLoss(1.0, 1.0)
    for tasks, weights, message in (([("a", one)], {"b": 1.0}, "task_weights"), ([("a", one)], {"a": -1.0}, ">= 0"),
                                    ([("a", one), ("a", one)], {"a": 1.0}, "each task once"),
                                    ([("a", LocalLoss(1.0, 0.0))], {"a": 1.0}, "denominator 0.0")):
        with pytest.raises(ContractError, match=message):
            joint_loss(tasks, weights)
    assert allowed_denominators("contrastive") == ("anchors", "positives")
