"""Score types, the geometry of embeddings, and what a monotone transform keeps and what it does not."""
import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import Scores, ScoreType
from test_heads import normal, refused

f32 = np.float32
LABELS = ("a", "b", "c")


def scores(values, kind=ScoreType.LOGIT, axis=LABELS, **settings):
    return Scores(np.asarray(values, np.float64), kind, "release-1", axis, **settings)


def test_raw_class_logit():
    """Any real number; larger wins within its own head alone; no probability."""
    z = scores([[6.0, 1.0, -3.0]])
    t = z.type
    assert (t.low, t.high, t.larger_wins, t.sums_to_one, t.claim) == (-np.inf, np.inf, True, False, "none")
    refused("threshold.type", readout.Threshold(0.5, ScoreType.SOFTMAX_PROBABILITY, "dev").accepts, z)
    refused("scores.axis", z.same_scale, scores([[1.0, 2.0, 3.0]], axis=("a", "c", "b")))
    other = Scores(z.values, ScoreType.LOGIT, "release-2", LABELS)
    refused("scores.release", z.same_scale, other)
    z.same_scale(scores([[0.0, 0.0, 1.0]]))


def test_softmax_probability():
    """[0, 1], larger wins, one over the axis."""
    p = readout.softmax(scores([[0.0, 0.0, 0.0], [1000.0, 0.0, -1000.0]]))
    t = p.type
    assert (t.low, t.high, t.larger_wins, t.sums_to_one) == (0.0, 1.0, True, True) and "not necessarily" in t.claim
    assert np.allclose(p.values, [[1 / 3] * 3, [1, 0, 0]], atol=1e-15)
    refused("scores.values", scores, [[0.5, 0.5, 0.5]], ScoreType.SOFTMAX_PROBABILITY)
    refused("scores.type", readout.softmax, p)
    refused("scores.axis", scores, [0.5, 0.5], ScoreType.SOFTMAX_PROBABILITY, None)


def test_sigmoid_probability():
    """[0, 1], larger wins, each label by itself: no sum."""
    p = readout.sigmoid(scores([[0.0, 4.0, -800.0]]))
    t = p.type
    assert (t.low, t.high, t.larger_wins, t.sums_to_one) == (0.0, 1.0, True, False) and "marginal" in t.claim
    assert p.values[0, 0] == 0.5 and p.values[0, 1] > 0.98 and 0 <= p.values[0, 2] < 1e-300
    assert scores([[0.9, 0.8, 0.7]], ScoreType.SIGMOID_PROBABILITY).values.sum() > 2
    refused("scores.values", scores, [[1.5, 0.0, 0.0]], ScoreType.SIGMOID_PROBABILITY)
    refused("scores.type", p.expect, ScoreType.SOFTMAX_PROBABILITY)
    refused("scores.type", readout.sigmoid, p)  # not squashed once more


def test_dot_and_cosine_similarity():
    """Real numbers, or [-1, 1]; larger wins; no sum and no probability."""
    d, c = ScoreType.DOT, ScoreType.COSINE
    assert (d.low, d.high, c.low, c.high) == (-np.inf, np.inf, -1.0, 1.0) and d.larger_wins and c.larger_wins
    assert d.claim == c.claim == "none" and not c.sums_to_one
    scores([[40.0, -3.0, 0.0]], d)
    refused("scores.values", scores, [[1.2, 0.0, 0.0]], c)
    refused("scores.type", readout.softmax, scores([[0.5, 0.1, 0.2]], c))
    refused("threshold.type", readout.Threshold(0.8, c, "dev").accepts, scores([[0.9, 0.1, 0.2]], d))
    refused("scores.type", readout.entropy, scores([[0.9, 0.1, 0.2]], c))


def test_l2_distance():
    """Not negative, and the smaller one wins."""
    t = ScoreType.SQUARED_L2
    assert (t.low, t.larger_wins, t.claim) == (0.0, False, "none")
    s = scores([[0.5, 0.1, 2.0]], t)
    assert readout.ranking(s).tolist() == [[1, 0, 2]]
    assert readout.Threshold(0.5, t, "dev").accepts(s).tolist() == [[True, True, False]]
    refused("scores.values", scores, [[-0.1, 0.0, 0.0]], t)
    cosine = readout.Threshold(0.8, ScoreType.COSINE, "dev-2")
    refused("threshold.type", cosine.accepts, s)  # cosine >= 0.8 is not distance <= 0.8
    assert cosine.as_squared_l2().value == pytest.approx(0.4, abs=1e-15)
    assert cosine.as_squared_l2().accepts(s).tolist() == [[False, True, False]]
    refused("threshold.type", readout.Threshold(0.8, ScoreType.DOT, "d").as_squared_l2)


def test_calibrated_probability():
    """[0, 1], larger wins, a claim on a population: only a calibrator makes one, and its digest stays with it."""
    identity = readout.CalibratorIdentity("release-1", "rev", "all", "invoices 2024", LABELS, "logits", "float64",
                                          "nll", "dx 0.1.0")
    calibrator = readout.Temperature(identity, 2.0)
    p = calibrator(scores([[2.0, 0.0, -2.0]]))
    assert p.type is ScoreType.CALIBRATED_PROBABILITY and p.exclusive and p.sources == (calibrator.digest(),)
    assert "population" in p.type.claim and p.type.sums_to_one is None and (p.type.low, p.type.high) == (0.0, 1.0)
    refused("threshold.type", readout.Threshold(0.5, ScoreType.SOFTMAX_PROBABILITY, "dev").accepts, p)
    assert scores([[0.9, 0.9, 0.1]], ScoreType.CALIBRATED_PROBABILITY).exclusive is False  # depends on the calibrator
    with pytest.raises(readout.ReadoutError, match="sum to 1"):
        Scores(np.array([[0.9, 0.9, 0.1]]), ScoreType.CALIBRATED_PROBABILITY, "r", LABELS, exclusive=True)


def test_bare_numbers_have_no_type():
    refused("scores.type", Scores, np.zeros(3), "cosine", "r")
    refused("scores.release", Scores, np.zeros(3), ScoreType.DOT, "")
    refused("scores.values", Scores, np.array([np.nan]), ScoreType.DOT, "r")
    refused("scores.values.dtype", Scores, np.zeros(3, int), ScoreType.DOT, "r")
    refused("scores.values.shape", Scores, np.zeros((2, 2)), ScoreType.DOT, "r", LABELS)
    fixed = scores([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError):
        fixed.values[0, 0] = 5


def test_rea_05_the_kind_of_a_pair_score_is_on_record():
    """Case rea-05: one-logit head; the activation is the saved head's, never a default of the caller."""
    z = Scores(np.array([-4.8, 0.0, 8.15]), ScoreType.LOGIT, "pairs-3")
    plain, squashed = readout.activate(z, "identity"), readout.activate(z, "sigmoid")
    assert plain.type is ScoreType.LOGIT and plain.sources == ("identity",) and np.array_equal(plain.values, z.values)
    assert squashed.type is ScoreType.SIGMOID_PROBABILITY and squashed.sources == ("sigmoid",)
    assert np.abs(squashed.values - [0.00816, 0.5, 0.99971]).max() < 6e-6
    refused("head.activation", readout.activate, z, None)
    refused("head.activation", readout.activate, z, "default")
    refused("scores.type", readout.activate, squashed, "sigmoid")


def test_rea_07_no_softmax_over_squashed_scores():
    """Case rea-07: logits [[6, 1, -3]], target 0, scale 10, with identity and with sigmoid; the choice is stored."""
    z = scores([[6.0, 1.0, -3.0]])
    refused("scores.type", readout.softmax, readout.activate(z, "sigmoid"))

    def loss(values):
        s = 10.0 * np.asarray(values)
        return float(np.log(np.exp(s - s[0]).sum()))
    identity = readout.softmax(scores(10.0 * z.values))
    assert -np.log(identity.values[0, 0]) == pytest.approx(loss(z.values[0]), abs=1e-15) and loss(z.values[0]) < 1e-20
    squashed = readout.sigmoid(z).values[0]
    assert loss(squashed) == pytest.approx(0.067374, abs=1e-6)  # bounded scores cannot say so much


def test_rea_28_top_k_does_not_depend_on_k():
    """Case rea-28: equal values, several k, NaN and signed zeros."""
    s = scores([1.0, 2.0, 5.0, 4.0, 5.0], axis=None)
    assert [readout.top_k(s, k).tolist() for k in range(1, 6)] == [[2, 4, 3, 1, 0][:k] for k in range(1, 6)]
    assert readout.top_k(scores([-1.0] * 4, axis=None), 3).tolist() == [0, 1, 2]
    assert readout.ranking(scores([-0.0, 0.0, -0.0], axis=None)).tolist() == [0, 1, 2]
    refused("scores.values", scores, [1.0, np.nan], axis=None)
    refused("k", readout.top_k, s, 6)


def test_rea_29_equal_keys_keep_their_order():
    """Case rea-29: ascending and descending."""
    values = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0]
    assert readout.ranking(scores(values, ScoreType.SQUARED_L2, None)).tolist() == [0, 5, 1, 4, 2, 3]
    assert readout.ranking(scores(values, ScoreType.DOT, None)).tolist() == [2, 3, 1, 4, 0, 5]


def test_unit_vectors_rank_alike_by_cosine_dot_and_distance(rng):
    q, d = normal(rng, 7, 24), normal(rng, 40, 24, size=3.0)
    (qn, _), (dn, _) = (readout.Normalization().forward(x) for x in (q, d))
    cosine = readout.PairScore("cosine").scores(q, d, "r")
    dot = readout.PairScore("dot").scores(qn, dn, "r")
    distance = readout.PairScore("squared_l2").scores(qn, dn, "r")
    assert np.array_equal(cosine.values, dot.values)  # the same bytes
    assert np.array_equal(readout.ranking(cosine), readout.ranking(dot))
    assert np.abs(distance.values - (2 - 2 * cosine.values)).max() < 1e-6  # not the same numbers
    assert (readout.top_k(distance, 5) == readout.top_k(cosine, 5)).all()
    raw = readout.PairScore("dot").scores(q, d, "r")
    assert not np.array_equal(readout.ranking(raw), readout.ranking(cosine))  # lengths speak in a raw dot
    norms = np.sqrt((d.astype(np.float64) ** 2).sum(1))
    assert np.abs(raw.values / norms - readout.PairScore("dot").scores(q, dn, "r").values).max() < 1e-5
    assert cosine.normalized and not raw.normalized and readout.unit_rows(qn) and not readout.unit_rows(q)
    assert readout.squared_l2_of_cosine(0.8) == pytest.approx(0.4, abs=1e-15)


@pytest.mark.parametrize("kind", ["dot", "cosine", "squared_l2"])
def test_pair_score_gradients(rng, kind):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    q, d, ds = normal(rng, 3, 10), normal(rng, 4, 10), normal(rng, 3, 4)
    score = readout.PairScore(kind)
    s, saved = score.forward(q, d)
    got = score.backward(ds, saved)
    tq, td = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, d))
    if kind == "cosine":
        value = torch.nn.functional.normalize(tq, dim=1) @ torch.nn.functional.normalize(td, dim=1).T
    else:
        value = tq @ td.T if kind == "dot" else ((tq[:, None] - td[None]) ** 2).sum(-1)
    value.backward(torch.tensor(ds, dtype=torch.float64))
    assert np.abs(s - value.detach().numpy()).max() < 1e-5
    for a, t in zip(got, (tq, td)):
        assert np.abs(a - t.grad.numpy()).max() < 1e-5


def test_normalising_at_deployment_is_not_training_through_it(rng):
    """The gradient through the unit row has no part along it; without the normalisation it has."""
    x, dy = normal(rng, 1, 8), normal(rng, 1, 8)
    y, norms = readout.Normalization().forward(x)
    through = readout.Normalization().backward(dy, y, norms)
    assert abs(float((through * y).sum())) < 1e-6 < abs(float((dy * y).sum()))
    near_zero, small = readout.Normalization().forward(x * f32(1e-6))
    assert np.abs(readout.Normalization().backward(dy, near_zero, small)).max() > 1e5 * np.abs(through).max()
    with pytest.raises(ValueError, match="has norm 0"):
        readout.Normalization().forward(np.zeros((1, 8), f32))
    assert not readout.Normalization(1e-12).forward(np.zeros((1, 8), f32))[0].any()


def test_monotone_transforms_keep_rankings_and_nothing_else():
    z = scores([2.0, 1.0, -1.0, 0.5], axis=None)
    p = readout.sigmoid(z)
    assert np.array_equal(readout.ranking(z), readout.ranking(p))
    # thresholds: the type refuses the number of the other scale
    assert readout.Threshold(0.9, ScoreType.LOGIT, "d").accepts(z).tolist() == [True, True, False, False]
    refused("threshold.type", readout.Threshold(0.9, ScoreType.LOGIT, "d").accepts, p)
    assert readout.Threshold(0.9, ScoreType.SIGMOID_PROBABILITY, "d").accepts(p).tolist() == [False] * 4
    # gaps: equal on one scale, not on the other
    assert z.values[0] - z.values[1] == 1.0 != p.values[0] - p.values[1]
    # fusion: a squashed part gives another order
    other = scores([0.0, 2.5, 0.0, 0.0], axis=None)
    fused = readout.fuse([z, other], [1.0, 0.1])
    squashed = 1.0 * p.values + 0.1 * other.values
    assert readout.ranking(fused)[0] == 0 != int(np.argmax(squashed))
    refused("fuse.scores[1].type", readout.fuse, [z, p], [1.0, 1.0])
    refused("fuse.scores.type", readout.fuse, [p, p], [0.5, 0.5])
    # floating point: distinct scores can become ties, which then go by position
    near = readout.sigmoid(scores([40.0, 41.0], axis=None))
    assert near.values[0] == near.values[1] and readout.ranking(near).tolist() == [0, 1]
    assert readout.ranking(scores([40.0, 41.0], axis=None)).tolist() == [1, 0]
