"""Late interaction over artifacts: masks, means, winners, expansion, storage."""
import numpy as np
import pytest
from dx_model.readout import ReadoutError, expand_query, late_scores, load_token_vectors, token_vectors
from late_case import late

F = np.float32


def vectors(release, side, *texts):
    """TokenVectors of (rows, mask) pairs."""
    return token_vectors(release, side, [f"{side[0]}{i}" for i in range(len(texts))],
                         [np.array(rows, F) for rows, _ in texts], [np.array(mask, bool) for _, mask in texts])


def test_rea_10_padded_query_rows_are_neither_added_nor_counted():
    release = late(score="mean_maxsim")
    q = vectors(release, "query", ([[1, 0], [0, 1], [0.6, 0.8]], [1, 1, 0]))
    d = vectors(release, "document", ([[1, 0], [0.6, 0.8]], [1, 1]))
    got = late_scores(release, q, d)
    assert got.scores.type.value == "mean_maxsim_similarity" and got.scores.values == F((F(1) + F(0.8)) / 2)
    assert late_scores(late(), vectors(late(), "query", ([[1, 0], [0, 1], [0.6, 0.8]], [1, 1, 0])),
                       vectors(late(), "document", ([[1, 0], [0.6, 0.8]], [1, 1]))).scores.values == F(1) + F(0.8)


def test_rea_11_padding_does_not_win_over_negative_similarities():
    release = late()
    q = vectors(release, "query", ([[1, 0]], [1]))
    d = vectors(release, "document", ([[-0.6, 0.8], [-1, 0], [0, 0]], [1, 1, 0]))
    assert late_scores(release, q, d).scores.values == F(-0.6)


def test_rea_13_expansion_is_stated_in_the_release_and_does_the_same_on_every_path():
    import dx_model
    ids = [5, 6, 7, 8, 9, 10]
    off, on = late(), late(query_row_policy="expanded:32")
    assert expand_query(ids, off, 99) == ids and expand_query(ids, on, 99) == ids + [99] * 26
    assert expand_query(list(range(40)), on, 99) == list(range(32)) and off.digest() != on.digest()
    rng = np.random.default_rng(2)
    table, docs = rng.standard_normal((100, 24)).astype(F), rng.standard_normal((50, 24)).astype(F)
    found = {}
    for release in (off, on):
        rows = table[expand_query(ids, release, 99)]
        for path in dx_model.available_paths():
            with dx_model.kernel_path(path):
                q = token_vectors(release, "query", ["q"], [rows], [np.ones(len(rows), bool)])
                d = token_vectors(release, "document", ["d"], [docs], [np.ones(50, bool)])
                found[release.digest(), path] = late_scores(release, q, d).scores.values.tobytes()
    assert len({v for (digest, _), v in found.items() if digest == on.digest()}) == 1
    assert len(set(found.values())) == 2


def test_winners_are_rows_of_the_model_and_ties_go_to_the_first():
    release = late()
    d = vectors(release, "document", ([[9, 9], [1, 0], [0, 1], [0, 1]], [0, 1, 1, 1]))
    got = late_scores(release, vectors(release, "query", ([[1, 0], [0, 1]], [1, 1])), d)
    assert got.winners.tolist() == [[1], [2]]  # row 0 is excluded, row 3 equals row 2


def test_padding_left_and_right_and_batches_give_the_same_bits():
    rng = np.random.default_rng(5)
    release = late(normalized_rows=True)
    rows = [rng.standard_normal((n, 16)).astype(F) for n in (3, 9, 17)]
    q = token_vectors(release, "query", ["q"], [rows[0]], [np.ones(3, bool)])

    def padded(array, left, right):
        return (np.concatenate([np.full((left, 16), 7, F), array, np.full((right, 16), np.nan, F)]),
                np.array([0] * left + [1] * len(array) + [0] * right, bool))
    found = []
    for left, right in ((0, 0), (5, 0), (0, 9), (2, 3)):
        texts = [padded(array, left, right) for array in rows]
        d = token_vectors(release, "document", "abc", [t[0] for t in texts], [t[1] for t in texts])
        found.append(late_scores(release, q, d).scores.values)
        alone = [late_scores(release, q, token_vectors(release, "document", "a", [t[0]], [t[1]])).scores.values[0, 0]
                 for t in texts]
        assert found[-1].tobytes() == np.array([alone], F).tobytes()
    assert len({x.tobytes() for x in found}) == 1 and (np.abs(found[0]) <= 3 + 1e-5).all()


def test_the_smooth_score_is_another_type():
    hard, smooth = late(), late(score="log_sum_exp", temperature=0.5)
    rows = ([[1, 0], [0, 1]], [1, 1])
    with pytest.raises(ReadoutError, match="query.release"):
        late_scores(smooth, vectors(hard, "query", rows), vectors(smooth, "document", rows))
    got = late_scores(smooth, vectors(smooth, "query", rows), vectors(smooth, "document", rows))
    assert got.scores.type.value == "log_sum_exp_similarity" and got.winners is None
    assert abs(got.scores.values[0, 0] - 2 * 0.5 * np.log(np.exp(2) + 1)) < 1e-6


def test_a_document_artifact_carries_its_rows_and_its_map(tmp_path):
    release = late()
    d = vectors(release, "document", ([[1, 0], [5, 5], [0, 1]], [1, 0, 1]), ([[2, 2]], [1]))
    d.save(tmp_path / "d.safetensors")
    kept = load_token_vectors(tmp_path / "d.safetensors", release)
    assert kept.rows.tobytes() == d.rows.tobytes() and kept.starts.tolist() == [0, 2, 3]
    assert kept.places.tolist() == [0, 2, 0] and kept.ids == d.ids
    for changed in (late(projection_revision="p2"), late(document_row_policy="attention"), late(normalized_rows=True)):
        with pytest.raises(ReadoutError, match="vectors.release"):
            load_token_vectors(tmp_path / "d.safetensors", changed)


def test_what_has_no_row_or_no_mask_is_refused():
    release, rows = late(), np.ones((2, 3), F)
    for masks, field in (([np.zeros(2, bool)], "masks['d']"), ([np.ones(3, bool)], "masks['d']"),
                         ([np.ones(2)], "masks['d']")):
        with pytest.raises(ReadoutError) as caught:
            token_vectors(release, "document", ["d"], [rows], masks)
        assert caught.value.field == field
    with pytest.raises(ReadoutError, match="rows with a direction"):
        token_vectors(late(normalized_rows=True), "document", ["d"], [np.zeros((2, 3), F)], [np.ones(2, bool)])
