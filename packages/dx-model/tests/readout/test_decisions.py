"""Calibrators applied, thresholds with their costs, abstention, sets, capacity, and the admission of a decision."""
import math
from dataclasses import replace

import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import Scores, ScoreType
from test_heads import refused

LABELS = ("a", "b", "c")


def identity(**changes):
    return readout.CalibratorIdentity(**{
        "parent_release": "release-1", "data": "sha-of-split", "inclusion": "every page of the split",
        "population": "invoices 2024", "labels": LABELS, "score_type": "logits", "score_dtype": "float64",
        "objective": "negative log likelihood", "software": "dx 0.1.0", **changes})


def logits(values, axis=LABELS, release="release-1", kind=ScoreType.LOGIT):
    return Scores(np.asarray(values, np.float64), kind, release, axis)


def probabilities(values, axis=LABELS):
    return Scores(np.asarray(values, np.float64), ScoreType.SOFTMAX_PROBABILITY, "release-1", axis)


def test_temperature_keeps_the_argmax_and_changes_confidence(rng):
    z = rng.standard_normal((50, 3)) * 4
    cold, warm = (readout.Temperature(identity(), t)(logits(z)) for t in (0.5, 3.0))
    plain = readout.softmax(logits(z))
    for p in (cold, warm):
        assert np.array_equal(p.values.argmax(1), z.argmax(1))
    assert (readout.entropy(cold) < readout.entropy(plain)).all()
    assert (readout.entropy(plain) < readout.entropy(warm)).all()
    assert (cold.values.max(1) >= 0.9).sum() > (warm.values.max(1) >= 0.9).sum()  # another threshold crossing
    exact = np.exp(z / 3.0) / np.exp(z / 3.0).sum(1, keepdims=True)
    assert np.abs(warm.values - exact).max() < 1e-15
    step, y = 1e-6, 1  # d(-log p_y(T)) / dz = (p(T) - onehot) / T
    for c in range(3):
        moved = [z[:1] + step * s * (np.arange(3) == c) for s in (1, -1)]
        up, down = (-math.log(readout.Temperature(identity(), 3.0)(logits(m)).values[0, y]) for m in moved)
        assert abs((up - down) / (2 * step) - (warm.values[0, c] - (c == y)) / 3.0) < 1e-8
    refused("calibrator.temperature", readout.Temperature, identity(), 0.0)
    refused("calibrator.temperature", readout.Temperature, identity(), -1.0)
    refused("calibrator.score_type", readout.Temperature, identity(score_type="cosine_similarity"), 1.0)


def test_vector_and_matrix_scaling_can_change_the_order(rng):
    z = rng.standard_normal((20, 3))
    vector = readout.VectorScaling(identity(), (1.0, -2.0, 0.5), (0.1, 0.0, -0.3))
    matrix = readout.MatrixScaling(identity(), ((1.0, 0.5, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 2.0)), (0.0, 0.2, 0.0))

    def exact(u):
        return np.exp(u) / np.exp(u).sum(1, keepdims=True)
    assert np.abs(vector(logits(z)).values - exact(z * [1, -2, 0.5] + [0.1, 0, -0.3])).max() < 1e-15
    assert np.abs(matrix(logits(z)).values - exact(z @ np.array(matrix.matrix).T + matrix.shift)).max() < 1e-15
    assert not np.array_equal(vector(logits(z)).values.argmax(1), z.argmax(1))
    refused("calibrator.scale", readout.VectorScaling, identity(), (1.0,), (0.0, 0.0, 0.0))
    refused("calibrator.matrix", readout.MatrixScaling, identity(), ((1.0, 0.0), (0.0, 1.0)), (0.0, 0.0, 0.0))


def scalar(**changes):
    return identity(labels=None, score_type="dot_similarity", **changes)


def test_platt_keeps_the_order_and_refuses_a_reversed_one():
    s = logits([3.0, -1.0, 0.5], None, kind=ScoreType.DOT)
    p = readout.Platt(scalar(), 2.0, -1.0)(s)
    assert np.abs(p.values - 1 / (1 + np.exp(-(2.0 * s.values - 1)))).max() < 1e-15
    assert np.array_equal(readout.ranking(p), readout.ranking(s))
    refused("calibrator.slope", readout.Platt, scalar(), -2.0, 0.0)
    refused("calibrator.slope", readout.Platt, scalar(), 0.0, 0.0)
    distance = replace(scalar(), score_type="squared_l2_distance")
    refused("calibrator.slope", readout.Platt, distance, 2.0, 0.0)
    near_first = readout.Platt(distance, -2.0, 1.0)(logits([0.1, 2.0], None, kind=ScoreType.SQUARED_L2))
    assert near_first.values[0] > near_first.values[1]


def test_isotonic_is_monotone_and_stays_in_its_levels():
    iso = readout.Isotonic(scalar(), (0.0, 1.0, 3.0), (0.1, 0.5, 0.9))
    s = logits([-1e308, 0.0, 0.5, 1.0, 2.0, 3.0, 1e308], None, kind=ScoreType.DOT)
    assert np.abs(iso(s).values - [0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 0.9]).max() < 1e-15
    huge = readout.Isotonic(scalar(), (-1.7e308, 1.7e308), (0.0, 1.0))
    assert huge(logits([0.0], None, kind=ScoreType.DOT)).values[0] == 0.5
    tiny = readout.Isotonic(scalar(), (0.0, 5e-324), (0.25, 0.75))
    assert tiny(logits([0.0, 5e-324], None, kind=ScoreType.DOT)).values.tolist() == [0.25, 0.75]
    one = readout.Isotonic(scalar(), (0.5,), (0.4,))
    assert one(logits([-9.0, 9.0], None, kind=ScoreType.DOT)).values.tolist() == [0.4, 0.4]
    refused("calibrator.scores[1]", readout.Isotonic, scalar(), (1.0, 1.0), (0.1, 0.2))
    refused("calibrator.levels[1]", readout.Isotonic, scalar(), (0.0, 1.0), (0.5, 0.2))
    refused("calibrator.levels[0]", readout.Isotonic, scalar(), (0.0,), (1.5,))


def test_a_calibrator_refuses_what_it_was_not_fitted_on():
    calibrator, z = readout.Temperature(identity(), 1.5), [[1.0, 2.0, 3.0]]
    refused("scores.release", calibrator, logits(z, release="release-2"))
    refused("scores.axis", calibrator, logits(z, ("b", "a", "c")))
    refused("scores.type", calibrator, readout.softmax(logits(z)))
    refused("scores.values.dtype", calibrator, Scores(np.array(z, np.float32), ScoreType.LOGIT, "release-1", LABELS))
    refused("calibrator.population", identity, population="")
    refused("calibrator.score_type", identity, score_type="score")
    refused("calibrator.score_dtype", identity, score_dtype="float16")


def test_the_identity_holds_all_that_a_claim_rests_on():
    """Any part changed is another digest; JSON gives the same calibrator back."""
    first = readout.Temperature(identity(), 1.5)
    digests = {first.digest(), readout.Temperature(identity(), 1.25).digest()}
    for name, value in {"parent_release": "x", "data": "x", "inclusion": "x", "population": "x", "objective": "x",
                        "software": "x", "labels": ("a", "c", "b"), "score_dtype": "float32"}.items():
        digests.add(readout.Temperature(identity(**{name: value}), 1.5).digest())
    assert len(digests) == 10
    for calibrator in (first, readout.VectorScaling(identity(), (1.0, 2.0, 3.0), (0.0, 0.5, 1.0)),
                       readout.MatrixScaling(identity(), ((1.0, 0.0, 0.0),) * 3, (0.0, 0.0, 0.0)),
                       readout.Platt(scalar(), 2.0, 1.0), readout.Isotonic(scalar(), (0.0, 1.0), (0.1, 0.2))):
        again = readout.calibrator_from_json(calibrator.to_json())
        assert again == calibrator and again.digest() == calibrator.digest()
    refused("calibrator.family", readout.calibrator_from_json, {**first.to_json(), "family": "magic"})
    refused("calibrator.temperature", readout.calibrator_from_json,
            {**first.to_json(), "parameters": {"temperature": 0}})
    refused("calibrator", readout.calibrator_from_json, {"family": "platt"})


def test_costs_make_the_threshold():
    """Positive when p >= C_FP / (C_FP + C_FN): where the expected costs cross; 0.5 only for equal costs."""
    t = readout.cost_threshold(1.0, 4.0, "costs-2")
    assert t.value == 0.2 and readout.cost_threshold(3.0, 3.0, "c").value == 0.5
    positive, negative = readout.expected_costs(0.2, 1.0, 4.0)
    assert positive == pytest.approx(negative) == pytest.approx(0.8)
    for p in (0.1, 0.19, 0.21, 0.9):
        positive, negative = readout.expected_costs(p, 1.0, 4.0)
        assert (positive <= negative) == (p >= t.value)
    refused("threshold.type", t.accepts, logits([0.3], None, kind=ScoreType.DOT))
    refused("cost", readout.cost_threshold, 0.0, 0.0, "c")
    refused("cost.false_negative", readout.cost_threshold, 1.0, -1.0, "c")
    refused("threshold.revision", readout.cost_threshold, 1.0, 1.0, "")


def test_every_label_has_its_own_threshold():
    t = readout.LabelThresholds(LABELS, tuple(readout.Threshold(v, ScoreType.SIGMOID_PROBABILITY, "dev")
                                              for v in (0.1, 0.5, 0.9)))
    p = logits([[0.3, 0.4, 0.95], [0.05, 0.1, 0.2]], kind=ScoreType.SIGMOID_PROBABILITY)
    assert t.accepts(p).tolist() == [[True, False, True], [False, False, False]]
    refused("scores.axis", t.accepts, logits([[0.3, 0.4, 0.95]], ("b", "a", "c"), kind=ScoreType.SIGMOID_PROBABILITY))
    refused("threshold.type", t.accepts, probabilities([[0.3, 0.3, 0.4]]))
    refused("thresholds[1].type", readout.LabelThresholds, ("a", "b"), (
        readout.Threshold(0.5, ScoreType.SIGMOID_PROBABILITY, "d"), readout.Threshold(0.5, ScoreType.DOT, "d")))


P = [[0.9, 0.05, 0.05], [0.5, 0.45, 0.05], [0.4, 0.3, 0.3], [0.2, 0.1, 0.7]]


@pytest.mark.parametrize("rule, value, abstains", [
    ("maximum", 0.6, [0, 1, 1, 0]), ("margin", 0.2, [0, 1, 1, 0]), ("margin", 0.08, [0, 1, 0, 0]),
    ("entropy", 0.9, [0, 0, 1, 0]), ("entropy", 0.5, [0, 1, 1, 1])])
def test_abstention_of_probabilities(rule, value, abstains):
    rule = readout.Abstention(rule, "dev-1", value)
    assert rule.abstains(probabilities(P)).astype(int).tolist() == abstains
    refused("scores.type", rule.abstains, logits([[0.9, 0.05, 0.05]]))


def test_abstention_by_score_gap_and_by_reject_class():
    gap = readout.Abstention("gap", "dev-1", 0.5)
    assert gap.abstains(logits([[9.0, 8.8, 1.0], [3.0, 1.0, 2.0]], kind=ScoreType.DOT)).tolist() == [True, False]
    assert gap.abstains(logits([[0.1, 0.2, 9.0], [0.1, 0.9, 3.0]], kind=ScoreType.SQUARED_L2)).tolist() == [True, False]
    refused("scores.type", gap.abstains, probabilities(P))
    reject = readout.Abstention("reject_class", "dev-1", label="c")
    assert reject.abstains(probabilities(P)).tolist() == [False, False, False, True]
    refused("abstention.label", readout.Abstention("reject_class", "d", label="z").abstains, probabilities(P))
    refused("abstention.label", readout.Abstention, "reject_class", "d")
    refused("abstention.rule", readout.Abstention, "doubt", "d")
    refused("abstention.revision", readout.Abstention, "maximum", "")


def test_entropy_is_exact_at_the_borders():
    h = readout.entropy(probabilities([[1.0, 0.0, 0.0], [1 / 3] * 3, [0.5, 0.5, 0.0]]))
    assert h[0] == 0 and abs(h[1] - math.log(3)) < 1e-15 and abs(h[2] - math.log(2)) < 1e-15


def test_abstention_is_judged_by_coverage_and_risk():
    y = np.array([0, 1, 2, 2])
    found = []
    for value in (0.0, 0.45, 0.6, 1.1):
        contract = contract_of(abstention=readout.Abstention("maximum", "dev", value),
                               expected_score_type=ScoreType.SOFTMAX_PROBABILITY)
        r = readout.coverage_and_risk(readout.decide(probabilities(P), contract).choice, y)
        found.append((r.coverage, r.risk))
    assert found == [(1.0, 0.5), (0.75, 1 / 3), (0.5, 0.0), (0.0, None)]
    assert readout.coverage_and_risk([], []).coverage is None


def test_conformal_sets_hold_what_is_not_excluded():
    sets = readout.ConformalSets(0.6, "0.9", "split-1").sets(probabilities(P))
    assert sets.astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert readout.ConformalSets(1.0, "0.9", "s").sets(probabilities(P)).all()
    refused("conformal.quantile", readout.ConformalSets, 1.5, "0.9", "s")
    refused("scores.type", readout.ConformalSets(0.5, "0.9", "s").sets, logits(P))


def contract_of(**changes):
    return readout.DecisionContract(**{"expected_score_type": ScoreType.LOGIT, "threshold_revision": "dev-1",
                                       "tie_rule": "lowest_index", **changes})


def test_capacity_keeps_the_best_and_orders_equal_ones_by_id():
    p = logits([0.9, 0.8, 0.8, 0.95, 0.1], None, kind=ScoreType.CALIBRATED_PROBABILITY)
    contract = contract_of(expected_score_type=ScoreType.CALIBRATED_PROBABILITY,
                           threshold=readout.Threshold(0.5, ScoreType.CALIBRATED_PROBABILITY, "dev-1"),
                           capacity=readout.Capacity(3, "queue-2"))
    ids = ["e", "d", "c", "b", "a"]
    assert readout.decide(p, contract, ids).accepted.tolist() == [True, False, True, True, False]
    order = [4, 2, 0, 1, 3]  # the batch in another order: the same ids
    moved = logits(p.values[order], None, kind=ScoreType.CALIBRATED_PROBABILITY)
    kept = readout.decide(moved, contract, [ids[i] for i in order]).accepted
    assert {ids[i] for i, k in zip(order, kept) if k} == {"e", "c", "b"}
    refused("ids", readout.decide, p, contract)
    refused("capacity.most", readout.Capacity, -1, "r")


def test_top_k_gives_k_also_where_nothing_is_relevant():
    """A capacity is no relevance: a cut on the same type refuses what top k would return."""
    poor = logits([[0.11, 0.1, 0.05]], kind=ScoreType.COSINE)
    assert readout.top_k(poor, 2).tolist() == [[0, 1]]
    cut = contract_of(expected_score_type=ScoreType.COSINE, threshold=readout.Threshold(0.6, ScoreType.COSINE, "dev"))
    assert readout.decide(poor, cut).choice.tolist() == [-1]


def test_decide_admits_calibrates_and_cuts():
    z = logits([[3.0, 0.0, 0.0], [0.1, 0.0, 0.0]])
    calibrator = readout.Temperature(identity(), 2.0)
    contract = contract_of(calibrator=calibrator,
                           threshold=readout.Threshold(0.5, ScoreType.CALIBRATED_PROBABILITY, "dev-1"))
    done = readout.decide(z, contract)
    assert done.choice.tolist() == [0, -1] and done.abstained.tolist() == [False, True]
    assert done.scores.type is ScoreType.CALIBRATED_PROBABILITY
    assert readout.decide(logits([[1.0, 1.0, 1.0]]), contract_of()).choice.tolist() == [0]  # the tie rule


def test_decide_fails_closed():
    z = logits([[3.0, 0.0, 0.0]])
    refused("scores.type", readout.decide, readout.softmax(z), contract_of())
    other = readout.Temperature(identity(parent_release="release-0"), 2.0)
    refused("calibrator.parent_release", readout.decide, z, contract_of(calibrator=other))
    refused("contract.threshold_revision", readout.decide, z, contract_of(threshold_revision=""))
    refused("contract.tie_rule", readout.decide, z, contract_of(tie_rule=""))
    refused("contract.tie_rule", readout.decide, z, contract_of(tie_rule="random"))
    cut = readout.Threshold(0.5, ScoreType.SOFTMAX_PROBABILITY, "dev")
    refused("threshold.type", readout.decide, z, contract_of(threshold=cut))
    dot = logits([[0.9, 0.1, 0.2]], kind=ScoreType.DOT)
    refused("scores.normalized", readout.decide, dot, contract_of(expected_score_type=ScoreType.DOT, metric="cosine"))
    unsure = logits([[0.9, 0.1, 0.2]], kind=ScoreType.COSINE)
    cosine = contract_of(expected_score_type=ScoreType.COSINE, metric="cosine")
    refused("scores.normalized", readout.decide, unsure, cosine)
    unit = readout.PairScore("cosine").scores(np.eye(2, 3, dtype=np.float32), np.eye(3, dtype=np.float32), "r", LABELS)
    done = readout.decide(unit, cosine)
    assert done.choice.tolist() == [0, 1]


@pytest.mark.parametrize("field", ["backbone", "tokenizer", "layer", "pool", "projection", "normalization",
                                   "score_metric", "output_dtype"])
def test_a_semantic_change_invalidates_calibration_and_thresholds(field):
    found = readout.invalidated([field])
    assert found[:2] == ("calibration", "thresholds") and ("document_vectors" in found) == (field != "score_metric")
    assert readout.invalidated([field], equivalence_test="sha-of-proof") == ()
    assert readout.invalidated([field], stores_documents=False) == ("calibration", "thresholds")
    refused("changed", readout.invalidated, ["weather"])
    assert readout.invalidated([]) == ()


def test_labels_are_decided_one_by_one():
    t = readout.LabelThresholds(LABELS, tuple(readout.Threshold(v, ScoreType.SIGMOID_PROBABILITY, "dev")
                                              for v in (0.1, 0.5, 0.9)))
    p = logits([[0.3, 0.4, 0.95]], kind=ScoreType.SIGMOID_PROBABILITY)
    done = readout.decide(p, contract_of(expected_score_type=ScoreType.SIGMOID_PROBABILITY, threshold=t))
    assert done.accepted.tolist() == [[True, False, True]] and done.choice is None
