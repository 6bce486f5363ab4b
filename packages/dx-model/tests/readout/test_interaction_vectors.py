"""Bi-encoders: sides, templates, reusable document vectors."""
import numpy as np
import pytest
from dx_model.readout import BiEncoder, ReadoutError, ScoreType, load_vectors, normalize_rows, similarity
from late_case import bi

F = np.float32


def encode(text):
    """A stand-in for encoder and pool."""
    return np.array([len(text), sum(map(ord, text)) % 7 + 1, text.count("e")], F)  # noqa: RUF100


def shifted(text):
    return encode(text)[::-1].copy()


def test_a_tied_bi_encoder_scores_every_pair():
    model = BiEncoder(encode, encode, bi())
    queries, documents = model.encode("query", ["q"], ["alpha"]), model.encode("document", ["a", "b"], ["alpha", "be"])
    matrix = model.score(queries, documents)
    assert matrix.scores.type is ScoreType.COSINE and matrix.scores.axis == ("a", "b") and matrix.scores.normalized
    assert matrix.of("q").values.tolist() == matrix.scores.values[0].tolist()
    u, v = encode("alpha"), encode("be")
    want = u @ v / np.sqrt((u @ u) * (v @ v))
    assert abs(matrix.scores.values[0, 0] - 1) < 1e-6 and abs(matrix.scores.values[0, 1] - want) < 1e-6


def test_untied_encoders_are_two_releases_and_their_sides_do_not_swap():
    release = bi(document_release="e2", tied=False)
    model = BiEncoder(encode, shifted, release)
    queries, documents = model.encode("query", ["q"], ["alpha"]), model.encode("document", ["a"], ["alpha"])
    assert not np.array_equal(queries.values, documents.values)
    with pytest.raises(ReadoutError, match="query.side"):
        model.score(documents, queries)
    with pytest.raises(ReadoutError, match="interaction.tied"):
        BiEncoder(encode, encode, release)
    with pytest.raises(ReadoutError, match="interaction.tied"):
        BiEncoder(encode, shifted, bi())


def test_each_side_gets_its_own_template():
    """A query's instruction never reaches a document: the encoder renders the side itself."""
    seen = []

    def recording(text):
        seen.append(text)
        return encode(text)
    release = bi(query_template="Instruct: find it\nQuery: {text}", document_template="{text}")
    model = BiEncoder(recording, recording, release)
    model.encode("query", ["q"], ["why"])
    model.encode("document", ["d"], ["because {text}"])
    assert seen == ["Instruct: find it\nQuery: why", "because {text}"]
    same = bi(query_template="Instruct: find it\nQuery: {text}", document_template="Instruct: find it\nQuery: {text}")
    documents = BiEncoder(encode, encode, same).encode("document", ["d"], ["because"])
    with pytest.raises(ReadoutError, match="document.release"):
        model.score(model.encode("query", ["q"], ["why"]), documents)


def test_document_vectors_are_reused_under_their_release_alone(tmp_path):
    release = bi(metric_contract="dot")
    model = BiEncoder(encode, encode, release)
    documents = model.encode("document", ["a", "b"], ["alpha", "be"])
    file = tmp_path / "vectors.safetensors"
    digest = documents.save(file)
    kept = load_vectors(file, release)
    assert kept.values.tobytes() == documents.values.tobytes() and kept.ids == documents.ids
    assert documents.save(tmp_path / "again.safetensors") == digest
    queries = model.encode("query", ["q"], ["alpha"])
    assert np.array_equal(model.score(queries, kept).scores.values, model.score(queries, documents).scores.values)
    for changed in (bi(), bi(metric_contract="dot", document_template="passage: {text}")):
        with pytest.raises(ReadoutError, match="vectors.release"):
            load_vectors(file, changed)
    with pytest.raises(ReadoutError, match="vectors.side"):
        queries.save(file)


def test_the_metrics_agree_in_order_on_unit_rows_and_not_in_number():
    rng = np.random.default_rng(4)
    q, d = normalize_rows(rng.standard_normal((3, 8)).astype(F)), normalize_rows(rng.standard_normal((6, 8)).astype(F))
    cosine, distance = similarity(q, d, "dot"), similarity(q, d, "squared_l2")
    assert np.abs(distance - (2 - 2 * cosine)).max() < 1e-6
    assert np.array_equal(np.argsort(-cosine, kind="stable"), np.argsort(distance, kind="stable"))
    assert np.array_equal(similarity(q, d, "dot").tobytes(), np.ascontiguousarray(similarity(d, q, "dot").T).tobytes())


def test_a_zero_vector_has_no_direction():
    with pytest.raises(ReadoutError, match="rows with a direction"):
        normalize_rows(np.zeros((1, 3), F))


def test_widths_and_ids_are_checked():
    model = BiEncoder(lambda text: np.ones(4, F), shifted, bi(document_release="e2", tied=False))
    with pytest.raises(ReadoutError, match=r"vectors\['q'\].shape"):
        model.encode("query", ["q"], ["a"])
    with pytest.raises(ReadoutError, match="ids"):
        model.encode("query", ["q", "q"], ["a", "b"])
