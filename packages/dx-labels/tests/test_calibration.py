"""Fitting of calibrators on a disjoint split, conformal sets, and calibration figures; the cases rea-14 to rea-19."""
import math
import subprocess
import sys

import numpy as np
import pytest
from dx_labels import calibration as c
from dx_labels.below import ReadoutError, Scores, ScoreType

LABELS = ("a", "b", "c")


def split(n, **changes):
    ids = [f"page-{i}" for i in range(n)]
    return c.calibration_split(**{"ids": ids, "train": ["t"], "test": ["u"], "inclusion": "all", "population": "p",
                                  **changes})


def logits(z, kind=ScoreType.LOGIT, axis=LABELS):
    return Scores(np.asarray(z, np.float64), kind, "release-1", axis)


def scalar(s, kind=ScoreType.DOT):
    return logits(s, kind, None)


def made(rng, n=400, scale=2.0):
    """Logits that are `scale` times too sure, and labels drawn from their true distribution."""
    true = rng.standard_normal((n, 3)) * 1.5
    p = np.exp(true) / np.exp(true).sum(1, keepdims=True)
    y = (rng.random(n)[:, None] > np.cumsum(p, 1)).sum(1)
    return true * scale, np.minimum(y, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def nll(z, y):
    z = z - z.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]))


def refused(field, call, *args, **kwargs):
    with pytest.raises(ReadoutError) as caught:
        call(*args, **kwargs)
    assert caught.value.field == field, caught.value


def test_temperature_is_the_best_one(rng):
    z, y = made(rng)
    fitted = c.fit_temperature(logits(z), y, split(400), software="dx")
    t = fitted.temperature
    assert 1.5 < t < 2.6  # the logits were made twice too sure
    for other in (t * 0.999, t * 1.001, 1.0, 4.0):
        assert nll(z / other, y) > nll(z / t, y)
    assert np.array_equal(fitted(logits(z)).values.argmax(1), z.argmax(1))
    assert c.negative_log_likelihood(fitted(logits(z)).values, y) == pytest.approx(nll(z / t, y), rel=1e-12)
    assert fitted.identity.data == split(400).revision and fitted.identity.labels == LABELS


def test_temperature_without_a_best_value_is_refused(rng):
    z = np.eye(3)[[0, 1, 2, 0]] * 3
    refused("calibration.temperature", c.fit_temperature, logits(z), [0, 1, 2, 0], split(4), software="dx")
    refused("calibration.temperature", c.fit_temperature, logits(z), [1, 2, 0, 1], split(4), software="dx")
    refused("scores.type", c.fit_temperature, logits([[0.2, 0.3, 0.5]], ScoreType.SOFTMAX_PROBABILITY), [0], split(1),
            software="dx")
    refused("labels[0]", c.fit_temperature, logits(z), [3, 0, 0, 0], split(4), software="dx")
    refused("scores.values.shape", c.fit_temperature, logits(z), [0, 1, 2, 0], split(3), software="dx")


def test_vector_and_matrix_scaling_are_stationary(rng):
    """The gradient of the stated objective is zero; a class-conditional error is repaired that a temperature cannot."""
    z, y = made(rng, 600)
    z = z + [2.0, 0.0, -1.0]
    vector = c.fit_vector_scaling(logits(z), y, split(600), software="dx")
    matrix = c.fit_matrix_scaling(logits(z), y, split(600), software="dx")

    def objective(w, b):
        return nll(z @ w.T + b, y) + 0.0005 * (((w - np.eye(3)) ** 2).sum() + (b ** 2).sum())
    w, b = np.array(matrix.matrix), np.array(matrix.shift)
    d, e = np.diag(vector.scale), np.array(vector.shift)
    for i in range(3):
        for step in (1e-4, -1e-4):
            assert objective(w, b + step * np.eye(3)[i]) > objective(w, b)
            assert objective(d, e + step * np.eye(3)[i]) > objective(d, e)
            assert objective(d + step * np.diag(np.eye(3)[i]), e) > objective(d, e)
            for j in range(3):
                moved = w.copy()
                moved[i, j] += step
                assert objective(moved, b) > objective(w, b)
    temperature = c.fit_temperature(logits(z), y, split(600), software="dx")
    losses = [c.negative_log_likelihood(f(logits(z)).values, y) for f in (temperature, vector, matrix)]
    assert losses[0] > losses[1] + 0.05 and losses[1] > losses[2] - 1e-3
    refused("calibration.ids", c.fit_matrix_scaling, logits(z[:5]), y[:5], split(5), software="dx")
    refused("calibration.ids", c.fit_vector_scaling, logits(z[:5]), y[:5], split(5), software="dx")


def test_platt_is_the_best_line(rng):
    s = rng.standard_normal(300) * 3 + 5
    y = (rng.random(300) < 1 / (1 + np.exp(-(0.8 * s - 4)))).astype(int)
    fitted = c.fit_platt(scalar(s), y, split(300), software="dx")
    target = np.where(y, (y.sum() + 1) / (y.sum() + 2), 1 / (len(y) - y.sum() + 2))

    def value(a, b):
        u = a * s + b
        return float((np.logaddexp(0, u) - target * u).sum())
    a, b = fitted.slope, fitted.shift
    assert 0.5 < a < 1.2
    for da, db in ((1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4)):
        assert value(a + da, b + db) > value(a, b)
    p = fitted(scalar(s)).values
    assert np.array_equal(np.argsort(p, kind="stable"), np.argsort(s, kind="stable"))


def test_platt_of_a_reversed_score_is_refused():
    s, y = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0, 0, 1, 1])
    refused("calibrator.slope", c.fit_platt, scalar(s), y, split(4), software="dx")
    assert c.fit_platt(scalar(s, ScoreType.SQUARED_L2), y, split(4), software="dx").slope < 0
    separated = c.fit_platt(scalar(s), 1 - y, split(4), software="dx")
    assert 0 < separated.slope < 100  # Platt's targets keep it finite
    refused("scores.values.shape", c.fit_platt, logits([[1.0, 2.0, 3.0]]), [1], split(1), software="dx")
    refused("labels", c.fit_platt, scalar(s), [0, 1, 2, 1], split(4), software="dx")
    refused("calibration.hessian", c.fit_platt, scalar([1.0] * 4), y, split(4), software="dx")


def test_platt_agrees_with_scikit_learn(rng):
    calibration = pytest.importorskip("sklearn.calibration", reason="scikit-learn is not installed")
    s = rng.standard_normal(200)
    y = (rng.random(200) < 1 / (1 + np.exp(-2 * s))).astype(int)
    peer = calibration._SigmoidCalibration().fit(s, y)
    fitted = c.fit_platt(scalar(s), y, split(200), software="dx")
    assert np.abs(fitted(scalar(s)).values - peer.predict(s)).max() < 1e-4
    # a stated difference: the peer gives a reversed slope without a word
    assert calibration._SigmoidCalibration().fit(-s, y).a_ > 0
    refused("calibrator.slope", c.fit_platt, scalar(-s), y, split(200), software="dx")


def test_rea_14_isotonic_stays_within_zero_and_one():
    """Case rea-14: scores that are equal or nearly so, subnormal ones, and queries far outside."""
    s, y = [0.1, 0.1 + 1e-17, 0.1, 0.9, 1e-320, 1.0], [0, 1, 0, 1, 0, 1]
    fitted = c.fit_isotonic(scalar(s), y, split(6), software="dx")
    assert fitted.scores == (1e-320, 0.1, np.nextafter(0.1, 1), 1.0) and fitted.levels == (0.0, 0.0, 1.0, 1.0)
    queries = [-5.0, 1e-320, 5e-320, 0.05, 0.1, np.nextafter(0.1, 1), 0.5, 0.9, 1.0, 5.0]
    p = fitted(scalar(queries)).values
    assert ((0 <= p) & (p <= 1)).all() and (np.diff(p) >= 0).all()
    assert p[0] == p[1] == p[4] == 0.0 and p[5] == p[-1] == 1.0
    equal = c.fit_isotonic(scalar([0.1, 0.1, 0.1, 0.9, 0.05, 1.0]), y, split(6), software="dx")
    assert equal.scores == (0.05, 0.1, 0.9, 1.0) and equal.levels == (0.0, 1 / 3, 1.0, 1.0)  # one point of three


def test_isotonic_is_the_pool_of_adjacent_violators(rng):
    """Against the minimax formula: the level at i is max over j <= i of min over k >= i of the mean of j..k."""
    for _ in range(20):
        s = np.round(rng.standard_normal(25), 1)
        y = rng.integers(0, 2, 25)
        fitted = c.fit_isotonic(scalar(s), y, split(25), software="dx")
        x = np.unique(s)
        groups = [y[s == v] for v in x]
        exact = [max(min(np.concatenate(groups[j:k + 1]).mean() for k in range(i, len(x))) for j in range(i + 1))
                 for i in range(len(x))]
        assert np.abs(fitted(scalar(x)).values - exact).max() < 1e-15
        falling = c.fit_isotonic(scalar(3.0 - s, ScoreType.SQUARED_L2) if s.max() <= 3 else scalar(
            9.0 - s, ScoreType.SQUARED_L2), y, split(25), software="dx")
        assert (np.diff(falling.levels) <= 0).all()


def test_isotonic_agrees_with_scikit_learn(rng):
    peer = pytest.importorskip("sklearn.isotonic", reason="scikit-learn is not installed")
    s = np.round(rng.standard_normal(120), 2)
    y = (rng.random(120) < 1 / (1 + np.exp(-s))).astype(int)
    fitted = c.fit_isotonic(scalar(s), y, split(120), software="dx")
    model = peer.IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(s, y)
    queries = np.linspace(-4, 4, 81)
    assert np.abs(fitted(scalar(queries)).values - model.predict(queries)).max() < 1e-12


def test_the_split_is_disjoint_and_on_record():
    refused("calibration.ids", c.calibration_split, ["a", "b"], ["b"], [], inclusion="i", population="p")
    refused("calibration.ids", c.calibration_split, ["a", "b"], [], ["a"], inclusion="i", population="p")
    refused("calibration.ids", c.calibration_split, ["a", "a"], [], [], inclusion="i", population="p")
    refused("calibration.ids", c.calibration_split, [], [], [], inclusion="i", population="p")
    with pytest.raises(ReadoutError, match="'b': expected examples that are not in training"):
        c.calibration_split(["a", "b"], ["b"], [], inclusion="i", population="p")
    one, other = split(3), split(3, ids=["page-2", "page-0", "page-1"])
    assert one.revision == other.revision != split(3, population="q").revision != split(2).revision


def test_conformal_sets_cover(rng):
    z, y = made(rng, 1000, 1.0)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    scores = [logits(p[half], ScoreType.SOFTMAX_PROBABILITY) for half in (slice(0, 500), slice(500, 1000))]
    fitted = c.fit_conformal(scores[0], y[:500], split(500), coverage="0.9")
    own = fitted.sets(scores[0])[np.arange(500), y[:500]]
    assert np.count_nonzero(own) >= math.ceil(501 * 0.9)
    assert fitted.sets(scores[1])[np.arange(500), y[500:]].mean() > 0.86
    misses = np.sort(1 - p[np.arange(500), y[:500]])
    assert fitted.quantile == misses[math.ceil(501 * 0.9) - 1]
    few = c.fit_conformal(logits(p[:5], ScoreType.SOFTMAX_PROBABILITY), y[:5], split(5), coverage="0.9")
    assert few.quantile == 1.0 and few.sets(scores[1]).all()  # 6 * 0.9 > 5: five pages promise nothing smaller
    refused("coverage", c.fit_conformal, scores[0], y[:500], split(500), coverage="1")
    refused("scores.type", c.fit_conformal, logits(z[:500]), y[:500], split(500), coverage="0.9")


def test_rea_16_a_constant_predictor_has_one_quantile_bin():
    """Case rea-16."""
    p, y = [0.9] * 20, [1] * 10 + [0] * 10
    assert c.calibration_error(p, y, strategy="quantile") == pytest.approx(0.4, abs=1e-15)
    (only,) = c.reliability(p, y, strategy="quantile")
    assert (only.count, only.right, only.frequency) == (20, 10, 0.5)


def test_rea_17_perfect_predictions_have_no_error():
    """Case rea-17: against the mean of a bin, not its centre; 1.0 falls in the last bin."""
    assert c.calibration_error([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0]) == 0.0
    assert [(b.low, b.count) for b in c.reliability([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0])] == [(0.0, 2), (1.0, 2)]


def test_rea_19_two_errors_with_two_names():
    """Case rea-19: published values of both, with ten bins and with one."""
    p, y = [0.2, 0.3, 0.8, 0.9], [0, 0, 1, 0]
    assert c.positive_class_error(p, y) == pytest.approx(0.4, abs=1e-15)
    assert c.top_class_error(p, y) == pytest.approx(0.4, abs=1e-15)
    assert c.positive_class_error(p, y, bins=1) == pytest.approx(0.3, abs=1e-15)
    assert c.top_class_error(p, y, bins=1) == pytest.approx(0.05, abs=1e-15)
    assert c.top_class_error(np.stack([1 - np.array(p), p], 1), y, bins=1) == c.top_class_error(p, y, bins=1)


def test_proper_scores_see_what_accuracy_does_not():
    y = np.array([0, 1, 0])
    modest, sure = np.array([[0.7, 0.3], [0.3, 0.7], [0.4, 0.6]]), np.array([[0.99, 0.01], [0.01, 0.99], [0.02, 0.98]])
    assert (modest.argmax(1) == y).mean() == (sure.argmax(1) == y).mean()
    assert c.negative_log_likelihood(modest, y) < c.negative_log_likelihood(sure, y)
    assert c.brier_score(modest, y) < c.brier_score(sure, y)
    assert c.brier_score(modest, y) == pytest.approx((0.09 * 4 + 0.36 * 2) / 3, rel=1e-14)
    assert c.negative_log_likelihood(np.array([[0.0, 1.0]]), [0]) == math.inf


def test_a_shift_of_prevalence_breaks_calibration_and_keeps_the_ranking(rng):
    """So a claim names its population, and is watched on the population that it is used for."""
    s = rng.standard_normal(4000) * 2
    y = (rng.random(4000) < 1 / (1 + np.exp(-s))).astype(int)
    fitted = c.fit_platt(scalar(s[:2000]), y[:2000], split(2000), software="dx")
    s, y = s[2000:], y[2000:]
    p = fitted(scalar(s)).values
    kept = (y == 0) | (rng.random(2000) < 0.15)  # positives become rare
    usual, shifted = c.positive_class_error(p, y), c.positive_class_error(p[kept], y[kept])
    assert usual < 0.05 and shifted > 0.15

    def auc(p, y):
        return float((p[y == 1][:, None] > p[y == 0][None, :]).mean())
    assert abs(auc(p, y) - auc(p[kept], y[kept])) < 0.02
    assert fitted.identity.population == "p"


def test_binned_errors_depend_on_the_binning(rng):
    p = rng.random(500)
    y = (rng.random(500) < 0.5).astype(int)  # too low below one half, too high above
    found = [c.calibration_error(p, y, bins=b, strategy=s) for s in ("uniform", "quantile") for b in (1, 2, 20)]
    assert found[0] == pytest.approx(found[3], rel=1e-12) and found[0] < 0.05 and min(found[1], found[4]) > 0.2
    assert len({round(v, 9) for v in found}) >= 4
    assert sum(b.count for b in c.reliability(p, y, bins=7, strategy="quantile")) == 500
    refused("bins", c.calibration_error, p, y, bins=0)
    refused("strategy", c.calibration_error, p, y, strategy="equal")
    refused("confidences", c.calibration_error, [1.5], [1])
    refused("labels", c.calibration_error, [0.5], [2])
    assert c.calibration_error([], []) == 0.0


def test_fits_are_the_same_bytes_in_another_process(rng):
    """Another hash seed, thread count and kernel path."""
    code = """if True:
        import numpy as np
        from dx_labels import calibration as c, kernel_path, degree, available_paths
        from dx_labels.below import Scores, ScoreType
        n = 120
        z = np.array([[((7 * i + 3 * j) % 23) / 4 - 2 * (j == 1) for j in range(3)] for i in range(n)])
        y = [(5 * i) % 3 for i in range(n)]
        s = c.calibration_split([str(i) for i in range(n)], [], [], inclusion="i", population="p")
        a = Scores(z, ScoreType.LOGIT, "r", ("a", "b", "c"))
        b = Scores(z[:, 0] + np.array(y), ScoreType.DOT, "r")
        with kernel_path(available_paths()[PATH]), degree(DEGREE):
            for f in (c.fit_vector_scaling, c.fit_matrix_scaling):
                print(f(a, y, s, software="dx").digest())
            for f in (c.fit_platt, c.fit_isotonic):
                print(f(b, [int(v > 1) for v in y], s, software="dx").digest())
    """
    outputs = set()
    for path, degree, seed in ((0, 1, "1"), (-1, 3, "2")):
        done = subprocess.run([sys.executable, "-c", code.replace("PATH", str(path)).replace("DEGREE", str(degree))],
                              capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed})
        outputs.add(done.stdout)
    assert len(outputs) == 1 and len(outputs.pop().split()) == 4
