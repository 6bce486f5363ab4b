"""What a readout gives is typed by its manifest, and architecture, pool, objective and decision imply nothing."""
from dx_model import readout
from dx_model.readout import manifest_fields
from readout_record import CLASSES, record, refused


def shape(kind, **sizes):
    labels = ["O", "B", "I"] if kind in manifest_fields.LABELLED else None
    kept = manifest_fields.OUTPUT_KINDS[kind][0] == "kept"
    made = record(output={"kind": kind, "labels": labels}, readout={"pooling": [] if kept else ["mean"]},
                  rows={"pieces": "first"}, score={"type": manifest_fields.SCORES_OF[kind][0]})
    return readout.Manifest(made).output_shape(**sizes)


def test_output_of_sequence_classification():
    assert shape("classification", batch=4, rows=9) == shape("multilabel", batch=4) == (4, 3)


def test_output_of_regression():
    assert shape("regression", batch=4) == (4, 3)


def test_output_of_token_classification_keeps_rows_and_needs_offsets():
    assert shape("token_classification", batch=4, rows=9) == (4, 9, 3)
    kept = {"output": {"kind": "token_classification", "labels": ["O", "B"]}, "readout": {"pooling": []},
            "score": {"type": "logit"}}
    refused(lambda: readout.Manifest(record(**kept, rows={"pieces": "first", "offsets_required": False})),
            "rows.offsets_required")
    refused(lambda: readout.Manifest(record(**kept)), "rows.pieces")
    refused(lambda: readout.Manifest(record(**kept | {"readout": {}}, rows={"pieces": "all"})), "readout.pooling")


def test_output_of_extractive_question_answering():
    assert shape("extractive_qa", batch=4, rows=9) == (4, 9, 2)


def test_output_of_an_embedding():
    assert shape("embedding", batch=4) == (4, 2)


def test_output_of_a_cross_encoder():
    assert shape("pair_score", batch=4) == (4, 1)


def test_output_of_a_bi_encoder_is_two_vectors_and_a_score():
    """Each side has its manifest; vectors are reusable, the score is typed."""
    query = readout.Manifest(record(input={"template": "query: {text}"}))
    document = query.changed(input={"template": "passage: {text}"})
    assert query.content_id != document.content_id and query["output.dimension"] == document["output.dimension"]
    assert query["score.type"] == "cosine" and query.output_shape(3) == (3, 2)


def test_output_of_late_interaction_keeps_one_vector_a_row():
    assert shape("token_vectors", batch=4, rows=9) == (4, 9, 2)
    assert shape("multiple_choice", batch=4, candidates=5) == (4, 5)


def test_architecture_implies_no_pool():
    """An encoder does not imply the first row: there is no pool until one is named."""
    for architecture in ("encoder", "decoder"):
        refused(lambda a=architecture: readout.Manifest(record(artifact={"architecture": a}, readout={"pooling": []})),
                "readout.pooling")
        for mode in ("first", "last", "mean", "max"):
            readout.Manifest(record(artifact={"architecture": architecture}, readout={"pooling": [mode]}))


def test_readout_architecture_is_its_own_field():
    base = readout.Manifest(record())
    assert readout.manifest_changes(base, base.changed(readout={"pooling": ["max"]})) == ["readout.pooling"]
    assert base.changed(readout={"family": "e5"}).content_id != base.content_id


def test_pool_implies_no_training_objective():
    """Mean pooling with any objective, and never without one being named."""
    for objective in ("contrastive", "cross_entropy", "none"):
        readout.Manifest(record(artifact={"objective": objective}))
    refused(lambda: readout.Manifest(record(artifact={"objective": ""})), "artifact.objective")


def test_score_implies_no_decision():
    """Unit vectors can be compared by dot product or distance too, and no threshold of 0.5 is implied."""
    for kind in ("cosine", "dot", "l2"):
        assert readout.Manifest(record(score={"type": kind, "threshold": None})).threshold(kind) is None
    sigmoid = readout.Manifest(record(**CLASSES | {"score": {"type": "sigmoid_probability", "threshold": None}}))
    assert sigmoid.threshold("sigmoid_probability") is None
