"""Metrics of each kind of output: worked figures, what stands beside them, and peers where they agree."""
import math
import random

import pytest
from dx_labels.entities import tag_entities
from dx_labels.evidence.kinds import measure
from dx_labels.evidence.roles import EvidenceError
from dx_labels.metrics.common import MetricError

from dx_labels import metrics

GOLD, PREDICTED, LABELS = list("aabbcc"), list("aabccb"), list("abc")


def random_classes(seed, n=200):
    draw = random.Random(seed)
    gold = [draw.choice("abcd") for _ in range(n)]
    return gold, [g if draw.random() < 0.6 else draw.choice("abcd") for g in gold], draw


# --- the rows of the table -------------------------------------------------------------------------------------------

def test_single_label_class():
    """Six examples whose classes have F1 1, 1/2, 1/2: macro 2/3, micro = accuracy = 4/6."""
    found = metrics.class_scores(GOLD, PREDICTED, LABELS, costs={"b": {"c": 5.0}})
    assert [found["classes"][c]["f1"] for c in LABELS] == [1.0, 0.5, 0.5]
    assert found["macro"]["f1"] == 2 / 3 and found["micro"]["f1"] == found["accuracy"]["value"] == 4 / 6
    assert found["confusion"]["b"] == {"a": 0, "b": 1, "c": 1, "": 0} and found["classes"]["a"]["gold"] == 2
    assert found["cost"]["sum"] == 6.0 and found["calibration"] is None
    shy = metrics.class_scores(GOLD, [*PREDICTED[:3], None, "c", None], LABELS)
    assert shy["coverage"]["k"] == 4 and shy["selective_risk"]["value"] == 0.0 and shy["confusion"]["b"][""] == 1
    p = [[0.7, 0.2, 0.1]] * 2 + [[0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.0, 0.1, 0.9], [0.0, 0.9, 0.1]]
    figures = metrics.class_scores(GOLD, PREDICTED, LABELS, probabilities=p, bins=5)["calibration"]
    assert figures["nll"] == pytest.approx(-(2 * math.log(.7) + math.log(.6) + math.log(.2) + math.log(.9)
                                             + math.log(.1)) / 6)
    assert figures["brier"] == pytest.approx((2 * .14 + .24 + (.01 + .64 + .49) + .02 + (.81 + .81)) / 6)
    assert figures["binning"]["bins"] == 5 and [b["count"] for b in figures["bins"]] == [4, 2]
    assert figures["ece"] == pytest.approx(4 / 6 * abs(0.75 - 0.675) + 2 / 6 * abs(0.5 - 0.9))


def test_multilabel():
    gold, predicted = [["a", "b"], [], ["a"], []], [["a"], [], ["a", "c"], ["c"]]
    found = metrics.label_scores(gold, predicted, LABELS, scores=[[3, 1, 0], [0, 0, 0], [2, 0, 1], [1, 0, 2]],
                                 thresholds={"a": 1.5})
    assert [found["labels"][c]["f1"] for c in LABELS] == [1.0, 0.0, 0.0] and found["macro"]["f1"] == 1 / 3
    assert found["micro"]["f1"] == 4 / 7 != found["exact"]["value"] == 1 / 4  # no identity here
    assert found["labels"]["a"]["average_precision"] == 1.0 and found["labels"]["c"]["average_precision"] is None
    assert found["labels"]["a"]["prevalence"]["k"] == 2 and found["cardinality"] == {"gold": 0.75, "predicted": 1.0}
    assert found["empty"] == {"gold": 2, "predicted": 1, "both": 1} and found["thresholds"] == {"a": 1.5}
    assert metrics.average_precision([1, 1, 0], [1, 0, 1]) == 0.5 * 0.5 + 0.5 * 2 / 3  # equal scores count together


def test_regression():
    found = metrics.value_scores([1, 2, None, 4], [1.5, 2.0, 9.0, 7.0], clip=(0, 5), bands=2)
    assert (found["n"], found["missing"], found["clipped"], found["target"]) == (3, 1, 1, [1.0, 4.0])
    assert (found["mae"], found["mse"], found["bias"]) == (0.5, 1.25 / 3, 0.5)
    assert found["rmse"] == math.sqrt(1.25 / 3) and found["spearman"] == 1.0
    assert [b["mae"] for b in found["bands"]] == [0.5, 0.5] and found["bands"][1]["n"] == 2
    assert metrics.pearson([1, 2, 3], [3, 2, 1]) == -1.0 and metrics.pearson([1, 1], [1, 2]) is None
    assert metrics.ranks([5, 1, 5, 0]) == [3.5, 2.0, 3.5, 1.0]
    assert metrics.pearson([0.1] * 3, [1, 2, 3]) is None
    with pytest.raises(MetricError, match="nan"):
        metrics.value_scores([1.0], [math.nan])


def test_token_or_entity_labels():
    """One border wrong: 7 of 8 tokens are right, and only half of the entities."""
    gold = [["B-A", "I-A", "O", "B-B"], ["O", "I-A", "I-A", "O"]]
    predicted = [["B-A", "I-A", "O", "B-B"], ["O", "I-A", "B-A", "O"]]
    strict = metrics.tag_scores(gold, predicted, scheme="IOB2", repair="drop")
    lenient = metrics.tag_scores(gold, predicted, scheme="IOB2", repair="begin")
    assert strict["tokens"]["value"] == 7 / 8 and strict["entities"]["f1"] == 4 / 5 and lenient["entities"]["tp"] == 2
    assert lenient["entities"]["f1"] == 4 / 7 and strict["scorer"]["repair"] == "drop"
    assert strict["illegal"] == {"O > I-A": 1} and lenient["errors"]["boundary"] == 1
    assert metrics.illegal_tags([["B-A", "O"], ["S-A", "E-A"]], "IOBES") == {"B-A > O": 1, "S-A > E-A": 1}
    spans = metrics.span_errors([("A", 0, 1), ("A", 3, 4), ("B", 6, 6), ("A", 8, 9)],
                                [("A", 0, 1), ("B", 3, 4), ("B", 5, 6), ("B", 9, 9), ("A", 20, 21)])
    assert spans == {"right": 1, "type": 1, "boundary": 1, "both": 1, "missed": 0, "spurious": 1}
    with pytest.raises(TypeError):
        metrics.tag_scores(gold, predicted)  # there is no F1 of entities without a named scorer


def test_extractive_question_answering():
    assert metrics.normalize_answer("  The Blue-River,  Co. ") == "blueriver co"
    assert metrics.token_f1("the blue river", "Blue lake") == 0.5 and metrics.token_f1("", "a") == 1.0
    found = metrics.answer_scores([["The cat", "a dog"], [], ["x y"], []], ["dog", "", "y z", "no"],
                                  covered=[True, False, False, True], null_rule="best span - null > 0")
    assert found["answerable"] == {"n": 2, "exact": 0.5, "f1": 0.75}
    assert found["unanswerable"] == {"n": 2, "exact": 0.5, "f1": 0.5} and found["null_rule"]
    assert found["windows"] == {"answerable": 2, "not_covered": 1, "covered": {"n": 1, "exact": 1.0, "f1": 1.0}}


def test_sequence_similarity():
    cases = [{"case": str(i), "gold": g, "score": s} for i, (g, s) in enumerate([(1, .1), (3, .5), (2, .4)])]
    found = measure("similarity", cases, {"metric": "cosine", "normalization": "l2 after the pool"})
    assert found["spearman"] == 1.0 and found["scores"] == [.1, .5] and found["metric"] == "cosine"
    with pytest.raises(EvidenceError, match="'normalization' is missing"):
        measure("similarity", cases, {"metric": "cosine"})


def test_retrieval_and_reranking():
    found = metrics.ranking_scores([{"a": 1.0, "b": 3.0}, {"c": 1.0}, {}], [list("xab"), list("xyz"), ["a"]],
                                   cuts=(1, 3), corpus="digest")
    assert (found["n"], found["without_relevant"]) == (2, 1) and found["cuts"]["1"]["recall"] == 0.0
    three = found["cuts"]["3"]
    assert three["recall"] == 0.5 and three["mrr"] == 0.25 and three["map"] == (1 / 2 + 2 / 3) / 2 / 2
    best = 3 + 1 / math.log2(3)
    assert three["ndcg"] == pytest.approx((1 / math.log2(3) + 3 / 2) / best / 2, rel=1e-14)
    for wrong in ({"corpus": ""}, {"corpus": "d", "relevant": [{"a": 0.0}]}, {"corpus": "d", "ranked": [["a", "a"]]}):
        with pytest.raises(MetricError):
            metrics.ranking_scores(wrong.get("relevant", [{"a": 1.0}]), wrong.get("ranked", [["a"]]),
                                   corpus=wrong["corpus"])


# --- peers -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(3))
def test_classes_and_labels_agree_with_scikit_learn(seed):
    """Equal over a stated label map; with labels left out scikit-learn averages over those that occur, ours never."""
    peer = pytest.importorskip("sklearn.metrics", reason="scikit-learn is a peer")
    gold, predicted, draw = random_classes(seed)
    labels = list("abcde")  # e has no support: F1 0 there, in both
    found = metrics.class_scores(gold, predicted, labels)
    for average in ("macro", "micro"):
        p, r, f, _ = peer.precision_recall_fscore_support(gold, predicted, labels=labels, average=average,
                                                          zero_division=0)
        assert [found[average][k] for k in ("precision", "recall", "f1")] == pytest.approx([p, r, f], rel=1e-14)
    assert found["accuracy"]["value"] == peer.accuracy_score(gold, predicted)
    occurring = peer.f1_score(gold, predicted, average="macro", zero_division=0)
    assert found["macro"]["f1"] == pytest.approx(occurring * 4 / 5)
    confusion = peer.confusion_matrix(gold, predicted, labels=labels).tolist()
    assert [[found["confusion"][g][p] for p in labels] for g in labels] == confusion
    scores = [round(draw.random(), 1) for _ in gold]
    positive = [g == "a" for g in gold]
    assert metrics.average_precision(scores, positive) == pytest.approx(peer.average_precision_score(positive, scores))


def test_probabilities_values_and_rankings_agree_with_scikit_learn_and_scipy():
    """Brier differs by name: ours sums over classes, so two classes give twice the binary figure."""
    peer = pytest.importorskip("sklearn.metrics", reason="scikit-learn is a peer")
    stats = pytest.importorskip("scipy.stats", reason="scipy is a peer")
    draw = random.Random(3)
    x, y = [round(draw.gauss(0, 1), 1) for _ in range(99)], [round(draw.gauss(0, 1), 1) for _ in range(99)]
    found = metrics.value_scores(x, y)
    assert found["mae"] == pytest.approx(peer.mean_absolute_error(x, y))
    assert found["mse"] == pytest.approx(peer.mean_squared_error(x, y))
    assert found["pearson"] == pytest.approx(stats.pearsonr(x, y)[0]) and found["spearman"] == pytest.approx(
        stats.spearmanr(x, y)[0])
    p, right = [draw.random() for _ in range(50)], [draw.random() < .5 for _ in range(50)]
    rows = [[1 - a, a] for a in p]
    figures = metrics.class_scores([str(int(r)) for r in right], ["0"] * 50, ["0", "1"], probabilities=rows)
    assert figures["calibration"]["nll"] == pytest.approx(peer.log_loss(right, p))
    assert figures["calibration"]["brier"] == pytest.approx(2 * peer.brier_score_loss(right, p))
    gains, scores = [draw.choice([0, 0, 1, 2]) for _ in range(30)], draw.sample(range(1000), 30)
    order = sorted(range(30), key=lambda i: -scores[i])
    ours = metrics.ranking_scores([{str(i): float(g) for i, g in enumerate(gains) if g}],
                                  [[str(i) for i in order]], cuts=(5, 30), corpus="d")["cuts"]
    assert [ours[k]["ndcg"] for k in ("5", "30")] == pytest.approx(
        [peer.ndcg_score([gains], [scores], k=5), peer.ndcg_score([gains], [scores])])
    assert ours["30"]["map"] == pytest.approx(peer.average_precision_score([g > 0 for g in gains], scores))


def test_entities_agree_with_seqeval():
    """repair "begin" is seqeval's default mode, "drop" its strict IOB2; it has no name for "as-is" and no support for
    what it leaves out: a broken gold entity counts for neither side there and here."""
    peer = pytest.importorskip("seqeval.metrics", reason="seqeval is a peer")
    scheme = pytest.importorskip("seqeval.scheme", reason="seqeval is a peer")
    draw = random.Random(4)
    tags = ["O", "B-A", "I-A", "B-B", "I-B"]
    gold, predicted = ([[draw.choice(tags) for _ in range(12)] for _ in range(40)] for _ in range(2))
    for repair, options in (("begin", {}), ("drop", {"mode": "strict", "scheme": scheme.IOB2})):
        found = metrics.tag_scores(gold, predicted, scheme="IOB2", repair=repair)
        for average in ("micro", "macro"):
            assert found[average]["f1"] == pytest.approx(peer.f1_score(gold, predicted, average=average, **options))
    assert tag_entities(["I-A"], repair="as-is") == [("?A", 0, 0)]
