"""Windows to sources: logits or probabilities, normalised before or after, and calibration after the aggregation."""
import numpy as np
import pytest
from dx_model.readout import CalibratorIdentity, ReadoutError, Scores, ScoreType, Temperature, softmax
from dx_model.runtime import VectorAggregation, WindowPolicy, aggregate_scores, aggregation_release, cut_windows
from readout_record import refused
from runtime_source import F, source

LABELS = ("yes", "no")


def logits(*rows, release="r1"):
    return [Scores(np.array([row], F), ScoreType.LOGIT, release, LABELS) for row in rows]


def test_mean_logits_and_mean_probabilities_are_two_policies():
    """[4, 0] and [0, 0]: softmax of the mean is 0.8808, mean of the softmaxes 0.7410; the winner is the same."""
    parts = logits([4, 0], [0, 0])
    p_logit = softmax(aggregate_scores(parts, "mean_logits"))
    p_prob = aggregate_scores([softmax(p) for p in parts], "mean_probabilities")
    assert np.abs(p_logit.values - [[0.8808, 0.1192]]).max() < 5e-5
    assert np.abs(p_prob.values - [[0.7410, 0.2590]]).max() < 5e-5
    assert p_logit.type is p_prob.type is ScoreType.SOFTMAX_PROBABILITY
    assert len({p_logit.release, p_prob.release, "r1"}) == 3 and p_prob.sources[-1] == "windows:mean_probabilities"
    with pytest.raises(ReadoutError, match="scores.release"):
        p_logit.same_scale(p_prob)
    largest = aggregate_scores(logits([4, 0], [0, 5], [4, 5]), "max_logits")
    assert largest.values.tolist() == [[4.0, 5.0]]


def test_only_scores_of_one_kind_are_aggregated():
    refused(lambda: aggregate_scores([], "mean_logits"), "windows.scores")
    refused(lambda: aggregate_scores(logits([1, 0]), "median"), "windows.aggregation")
    refused(lambda: aggregate_scores([*logits([1, 0]), *logits([1, 0], release="r2")], "mean_logits"), "scores.release")
    refused(lambda: aggregate_scores(logits([1, 0]), "mean_probabilities"), "windows.scores[0].type")
    refused(lambda: aggregate_scores([softmax(p) for p in logits([1, 0])], "mean_logits"), "scores.type")


def temperature(release, value=2.0):
    return Temperature(CalibratorIdentity(release, "calibration", "all", "pages", LABELS, "logits",
                                          "float64" if release != "r1" else "float32", "nll", "dx"), value)


def test_probabilities_averaged_after_calibration_are_refused():
    """A temperature fitted on windows is no temperature of documents: it refuses their scores, its own outputs are not
    averaged, and replaying both orders shows other numbers."""
    parts = logits([4, 0], [0, 0])
    of_windows = temperature("r1")
    calibrated = [of_windows(p) for p in parts]
    refused(lambda: aggregate_scores(calibrated, "mean_probabilities"), "windows.scores[0].type")
    document = aggregate_scores(parts, "mean_logits")
    refused(lambda: of_windows(document), "scores.release")
    of_documents = temperature(aggregation_release("r1", "mean_logits"))
    replayed = (calibrated[0].values + calibrated[1].values) / 2
    assert abs(float(of_documents(document).values[0, 0]) - float(replayed[0, 0])) > 0.03
    refused(lambda: of_documents(parts[0]), "scores.release")
    other = aggregate_scores(parts, "max_logits")
    refused(lambda: of_documents(other), "scores.release")


def records(n=9):
    return cut_windows("doc", source(range(10, 10 + n)), WindowPolicy(6, 2, "center", "vectors"), "rel")


def test_normalising_before_and_after_are_two_vectors():
    windows = records(6)
    vectors = np.array([[3, 4], [0, 1]], F)
    each = VectorAggregation("normalize_each", "windows")(windows, vectors)
    after = VectorAggregation("normalize_after", "windows")(windows, vectors)
    both = VectorAggregation("normalize_each_and_after", "windows")(windows, vectors)
    assert np.allclose(each, [0.3, 0.9]) and np.allclose(after, np.array([1.5, 2.5]) / np.sqrt(8.5))
    assert np.allclose(both, np.array([1, 3]) / np.sqrt(10)) and not np.allclose(both, after, atol=0.05)
    assert VectorAggregation("none", "windows")(windows, vectors).tolist() == [1.5, 2.5]
    weighted = VectorAggregation("none")(windows, vectors)
    assert [int(r.owned.sum()) for r in windows] == [3, 3] and weighted.tolist() == [1.5, 2.5]
    uneven = records(5)
    assert [int(r.owned.sum()) for r in uneven] == [3, 2]
    assert np.allclose(VectorAggregation("none")(uneven, vectors), [9 / 5, 14 / 5])
    digests = {VectorAggregation(s, w).digest() for s in ("none", "normalize_each", "normalize_after")
               for w in ("windows", "owned_rows")}
    assert len(digests) == 6


def test_vector_aggregation_is_checked():
    refused(lambda: VectorAggregation("before"), "windows.stage")
    refused(lambda: VectorAggregation("none", "rows"), "windows.weighting")
    windows, rule = records(), VectorAggregation("none")
    refused(lambda: rule(windows, np.ones((1, 2), F)), "vectors.shape")
    refused(lambda: rule(windows[::-1], np.ones((len(windows), 2), F)), "windows")
    with pytest.raises(ValueError, match="length|zero|norm"):
        VectorAggregation("normalize_after")(windows, np.zeros((len(windows), 2), F))
