"""A readout end to end: tables, rows and a manifest give a typed result; what it does not admit is refused."""
import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import ScoreType, heads
from readout_record import CLASSES, record, refused

F = np.float32
LABELS = ("negative", "neutral", "positive")
# [CLS] play ##ing in rome [SEP] [PAD]
ROWS = dict(attention=[1] * 6 + [0], special=[1, 0, 0, 0, 0, 1, 1], sequence=[None, 0, 0, 0, 0, None, None],
            word_ids=[None, 0, 0, 1, 2, None, None],
            offsets=[None, (0, 4), (4, 7), (8, 10), (11, 15), None, None], ids=[101, 7, 8, 9, 10, 102, 0])
TABLE = readout.row_table(**ROWS)
HIDDEN = np.array([[[9, 9], [1, 2], [3, 4], [5, 6], [-1, 0], [9, 9], [np.nan, np.nan]]], F)


def made(head=None, parameters=None, calibrator=None, **changes):
    """A readout whose manifest names the head's digest."""
    if head is not None:
        changes["artifact"] = changes.get("artifact", {}) | {"head_sha256": heads.head_digest(head)}
    return readout.Readout(readout.Manifest(record(**changes)), head, parameters, calibrator)


def kept(kind, labels=None, pieces="first", **changes):
    return {"output": {"kind": kind, "labels": labels}, "rows": {"pieces": pieces},
            "readout": {"pooling": [], "normalize": {"kind": "none"}}, "score": {"type": "logit", "threshold": None},
            **changes}


def classes(**changes):
    return {**CLASSES, "readout": {"normalize": {"kind": "none"}}, **changes}


def test_an_embedding_is_the_unit_mean_of_content_rows():
    """Padding and inserted rows, NaN among them, never matter; two vectors give a cosine and nothing else."""
    embedding = made()
    found = embedding.run([TABLE], HIDDEN)
    mean = np.array([2.0, 3.0])  # of rows 1..4
    assert isinstance(found, readout.Vectors) and found.normalized and found.release == embedding.release
    assert np.abs(found.values[0] - mean / np.sqrt(13.0)).max() < 1e-7
    scores = embedding.score(found, found, ["d"])
    assert scores.type is ScoreType.COSINE and scores.normalized and abs(scores.values[0, 0] - 1) < 1e-6
    for kind, value in (("dot", 13.0), ("l2", 0.0)):
        other = made(readout={"normalize": {"kind": "none"}}, score={"type": kind, "threshold": None})
        vectors = other.run([TABLE], HIDDEN)
        assert other.score(vectors, vectors).values.tolist() == [[value]]
        refused(lambda o=other: o.score(found, found), "queries.release")


def test_projection_tanh_and_layer_mixture_are_the_manifests(rng):
    states = [rng.standard_normal((1, 7, 2)).astype(F) for _ in range(3)]
    changes = dict(contextual_state={"layers": [0, 2], "layers_kind": "mixture"},
                   readout={"projection": {"out_features": 3, "bias": True, "activation": "tanh"},
                            "pooling": ["mean", "max"], "normalize": {"kind": "none"}},
                   score={"type": "dot", "threshold": None})
    shapes = {"layers.logits": (2,), "layers.gamma": (1,), "projection.weight": (3, 4), "projection.bias": (3,)}
    p = {n: rng.standard_normal(s).astype(F) for n, s in shapes.items()}
    found = made(parameters=p, **changes)
    assert found.parameter_shapes() == shapes
    alpha = np.exp(p["layers.logits"].astype(float))
    h = p["layers.gamma"][0] * (alpha[0] * states[0] + alpha[1] * states[2]) / alpha.sum()
    rows = h[0, 1:5]
    pooled = np.concatenate([rows.mean(0), rows.max(0)])
    want = np.tanh(p["projection.weight"] @ pooled + p["projection.bias"])
    assert np.abs(found.run([TABLE], states).values[0] - want).max() < 1e-6
    refused(lambda: found.run([TABLE], states[0]), "states")
    refused(lambda: made(parameters=p | {"projection.weight": p["projection.weight"][:, :2]}, **changes),
            "parameters.projection.weight")


def single(rng, labels=LABELS, width=2):
    weight, bias = rng.standard_normal((len(labels), width)).astype(F), rng.standard_normal(len(labels)).astype(F)
    return heads.SingleLabelHead(heads.LabelMap(labels), weight, bias)


def test_sequence_classification_gives_typed_probabilities(rng):
    head = single(rng)
    z = head.linear.weight @ np.array([2, 3], F) + head.linear.bias
    p = made(head, **classes()).run([TABLE], HIDDEN)
    assert p.type is ScoreType.SOFTMAX_PROBABILITY and p.axis == LABELS
    assert np.abs(p.values[0] - np.exp(z) / np.exp(z).sum()).max() < 1e-6
    cold = made(head, **classes(score={"type": "softmax_probability", "threshold": None, "temperature": 0.5}))
    assert np.abs(cold.run([TABLE], HIDDEN).values[0] - np.exp(2 * z) / np.exp(2 * z).sum()).max() < 1e-6
    logits = made(head, **classes(score={"type": "logit", "threshold": None})).run([TABLE], HIDDEN)
    assert logits.type is ScoreType.LOGIT and np.abs(logits.values[0] - z).max() < 1e-6
    refused(lambda: p.expect(ScoreType.LOGIT), "scores.type")


def test_a_head_that_the_manifest_does_not_name_is_refused(rng):
    """Another head of the same shape, labels in another order, another kind, width or dropout, or none at all."""
    head, other = single(rng), single(rng)
    manifest = readout.Manifest(record(**classes(artifact={"head_sha256": heads.head_digest(head)})))
    refused(lambda: readout.Readout(manifest, other), "artifact.head_sha256")
    refused(lambda: readout.Readout(manifest), "artifact.head")
    refused(lambda: readout.Readout(readout.Manifest(record()), head), "artifact.head")
    refused(lambda: made(head.with_labels(heads.LabelMap(LABELS[::-1])), **classes()), "output.labels")
    refused(lambda: made(single(rng, width=3), **classes()), "head.in_features")
    refused(lambda: made(heads.MultipleChoiceHead(np.ones((1, 2), F), np.zeros(1, F)), **classes()), "artifact.head")
    dropping = heads.SingleLabelHead(head.labels, head.linear.weight, head.linear.bias, 0.1)
    refused(lambda: made(dropping, **classes()), "readout.dropout")


def test_regression_gives_values_in_their_units():
    scale = heads.TargetScale(("width", "height"), ("m", "m"), (10.0, 0.0), (2.0, 1.0))
    head = heads.RegressionHead(scale, heads.RegressionObjective("gaussian"),
                                np.array([[1, 0], [0, 1], [0, 0], [0, 0]], F), np.zeros(4, F))
    found = made(head, **classes(output={"kind": "regression", "labels": ["width", "height"]},
                                 score={"type": "value", "threshold": None})).run([TABLE], HIDDEN)
    assert found.type is ScoreType.VALUE and found.values.tolist() == [[14.0, 3.0]]


def test_multilabel_and_calibrated_scores(rng):
    weight, bias = rng.standard_normal((2, 2)).astype(F), np.zeros(2, F)
    head = heads.MultilabelHead(heads.LabelMap(("a", "b")), weight, bias, [0.3, 0.6])
    changes = classes(output={"kind": "multilabel", "labels": ["a", "b"]},
                      score={"type": "sigmoid_probability", "threshold": None})
    found = made(head, **changes).run([TABLE], HIDDEN)
    z = weight @ np.array([2, 3], F)
    assert found.type is ScoreType.SIGMOID_PROBABILITY and np.abs(found.values[0] - 1 / (1 + np.exp(-z))).max() < 1e-6
    assert head.decide(found).tolist() == [[bool(found.values[0, 0] >= 0.3), bool(found.values[0, 1] >= 0.6)]]
    calibrated = changes | {"score": {"type": "calibrated_probability", "threshold": None}}
    refused(lambda: made(head, **calibrated), "score.type")


def test_multiple_choice_competes_over_candidates():
    head = heads.MultipleChoiceHead(np.array([[1, -1]], F), np.zeros(1, F))
    choice = made(head, **classes(output={"kind": "multiple_choice", "labels": None}))
    hidden = np.concatenate([HIDDEN, HIDDEN + 1, HIDDEN * 2, HIDDEN * -1])
    p = choice.run([TABLE] * 4, hidden, examples=["q", "q", "r", "r"])
    assert p.values.shape == (2, 2) and np.abs(p.values.sum(1) - 1).max() < 1e-12
    assert p.values[0, 0] == p.values[0, 1] == 0.5  # both are w . mean = -1: the shift by 1 cancels
    refused(lambda: choice.run([TABLE] * 4, hidden), "examples")


@pytest.mark.parametrize("pieces", ["first", "all", "aggregate"])
def test_token_labels_go_back_to_the_source(pieces):
    """playing (by its first piece, all pieces, or their mean) and Rome; logits of rows that bear no label are zero."""
    names = ("O", "B-X", "I-X")
    head = heads.TokenHead(heads.LabelMap(names), np.array([[-1, 0], [1, 0], [0, 0]], F), np.array([4, 0, 0], F))
    hidden = HIDDEN.copy()
    hidden[0, 1:5] = [[8, 0], [6, 0], [1, 0], [9, 0]]
    tagger = made(head, **kept("token_classification", list(names), pieces,
                               score={"type": "softmax_probability", "threshold": None}))
    found = tagger.run([TABLE], hidden)
    assert np.flatnonzero(found.rows[0]).tolist() == ([1, 2, 3, 4] if pieces == "all" else [1, 3, 4])
    assert found.scores.values.shape == tagger.manifest.output_shape(1, 7) == (1, 7, 3)
    entities = found.entities(0, heads.TagScheme("BIO", head.labels))
    assert [e.text("playing in Rome") for e in entities] == ["playing", "Rome"]
    first = {"first": 8.0, "all": 8.0, "aggregate": 7.0}[pieces]
    z = np.array([4 - first, first, 0])
    assert np.abs(found.scores.values[0, 1] - np.exp(z) / np.exp(z).sum()).max() < 1e-6
    bare = readout.row_table(**ROWS | {"offsets": None})
    refused(lambda: tagger.run([bare], hidden), "rows.offsets")


def question():
    # [CLS] who [SEP] anna in rome [SEP]
    return readout.row_table([1] * 7, [1, 0, 1, 0, 0, 0, 1], [None, 0, None, 1, 1, 1, None],
                             [None, 0, None, 0, 1, 2, None],
                             [None, (0, 3), None, (0, 4), (5, 7), (8, 12), None], ids=[101, 5, 102, 6, 7, 8, 102])


def test_answers_are_characters_of_the_context():
    head = heads.AnswerHead(np.eye(2, dtype=F), np.zeros(2, F), 2, heads.NullRule(0, 0.0, "dev-1"))
    hidden = np.zeros((2, 7, 2), F)
    hidden[:, 1] = 50  # the question's row: the largest of all, and no answer
    hidden[0, 5], hidden[0, 4] = (9, 1), (1, 8)  # start at row 5 is after the best end, row 4
    hidden[1, 0] = 20
    found = made(head, **kept("extractive_qa", pieces=None)).run([question()] * 2, hidden, context=1)
    assert found.answers[0].rows == (5, 5) and found.sources == ((1, 8, 12), None)
    assert "anna in rome"[8:12] == "rome" and found.logits.axis == ("start", "end")


def test_a_null_row_in_the_padding_is_refused():
    """Row 0 is [CLS] under right padding only; a padding row's zeros are no score of no answer."""
    head = heads.AnswerHead(np.eye(2, dtype=F), np.zeros(2, F), 2, heads.NullRule(0, 0.0, "dev-1"))
    reader = made(head, **kept("extractive_qa", pieces=None, input={"padding_side": "left"}))
    table = question()
    left = readout.row_table([0, *table.attention], [1, *table.special], [None, *table.sequence.tolist()],
                             [None, *table.word_ids.tolist()], [None, *(tuple(o) for o in table.offsets.tolist())],
                             ids=[0, *table.ids.tolist()])
    refused(lambda: reader.run([left], np.zeros((1, 8, 2), F), context=1), "output.null.row of rows[0]")


def test_pairs_and_token_vectors():
    head = heads.MultipleChoiceHead(np.array([[1, -1]], F), np.array([0.5], F))
    pairs = made(head, **classes(output={"kind": "pair_score", "labels": None},
                                 score={"type": "sigmoid_probability", "threshold": None}))
    found = pairs.run([TABLE], HIDDEN)
    assert found.values.shape == (1,) and abs(found.values[0] - 1 / (1 + np.exp(0.5))) < 1e-7
    late = made(readout={"pooling": []}, output={"kind": "token_vectors"}, score={"type": "maxsim", "threshold": None})
    rows = late.run([TABLE], HIDDEN)
    assert rows.places.tolist() == [1, 2, 3, 4] and rows.starts.tolist() == [0, 4]
    assert np.abs(np.linalg.norm(rows.values, axis=1) - 1).max() < 1e-6


@pytest.mark.parametrize("before, after", [(0, 0), (0, 5), (6, 0)])
def test_padding_changes_no_bit(before, after):
    """The same bytes whatever the padding's side, length and numbers."""
    table = readout.row_table([0] * before + [1] * 6 + [0] * after, [1] * before + ROWS["special"][:6] + [1] * after,
                              [None] * before + ROWS["sequence"][:6] + [None] * after,
                              [None] * before + ROWS["word_ids"][:6] + [None] * after,
                              [None] * before + ROWS["offsets"][:6] + [None] * after)
    hidden = np.full((1, before + 6 + after, 2), np.inf, F)
    hidden[0, before:before + 6] = HIDDEN[0, :6]
    side = made(input={"padding_side": "left" if before else "right"})
    assert side.run([table], hidden).values.tobytes() == made().run([TABLE], HIDDEN).values.tobytes()


def test_what_a_batch_says_otherwise_is_refused():
    embedding, half = made(), HIDDEN.astype(np.float16)
    for call, field in (
            (lambda: embedding.run([TABLE], half), "contextual_state.compute_dtype"),
            (lambda: embedding.run([TABLE], np.zeros((1, 7, 3), F)), "contextual_state.width"),
            (lambda: embedding.run([TABLE] * 2, HIDDEN), "rows"),
            (lambda: embedding.run([TABLE], HIDDEN[:, :6]), "rows[0]"),
            (lambda: made(input={"max_length": 5}).run([TABLE], HIDDEN), "input.max_length"),
            (lambda: made(input={"padding_side": "left"}).run([TABLE], HIDDEN), "input.padding_side"),
            (lambda: made(input={"special_token_ids": {"cls": 1}}).run([TABLE], HIDDEN), "input.special_token_ids"),
            (lambda: embedding.run([readout.row_table(**ROWS | {"policy": [0] * 7})], HIDDEN), "rows.selected"),
            (lambda: embedding.run([TABLE], HIDDEN, context=1), "context"),
            (lambda: made(readout={"pooling": ["weighted_mean"], "weights": "age"}).run([TABLE], HIDDEN), "weights"),
            (lambda: made(readout={"pooling": ["latent_attention"]}), "readout.pooling"),
            (lambda: made(parameters={"pooler.weight": np.eye(2, dtype=F)}), "parameters.pooler.weight")):
        refused(call, field)
    assert made(contextual_state={"compute_dtype": "float16"}).run([TABLE], half).values.dtype == np.float32


def test_a_kind_of_output_has_its_own_types_of_scores():
    for kind, score in (("embedding", "softmax_probability"), ("embedding", "logit")):
        refused(lambda k=kind, s=score: readout.Manifest(record(output={"kind": k}, score={"type": s})), "score.type")
    refused(lambda: readout.Manifest(record(**classes(score={"type": "cosine"}))), "score.type")
    refused(lambda: readout.Manifest(record(score={"temperature": 0.5})), "score.temperature")
    refused(lambda: readout.Manifest(record(score={"temperature": -1.0})), "score.temperature")
