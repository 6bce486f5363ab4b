"""Two stages: stable order, identity of candidates, the recall ceiling."""
import numpy as np
import pytest
from dx_model.readout import (CrossEncoder, PairScores, ReadoutError, Scores, ScoreType, candidates, recall_report,
                              rerank)
from late_case import TEMPLATE, cross

F = np.float32


def stages(k0=3):
    """(candidates, reranked) of six documents."""
    ids = ["a", "b", "c", "d", "e", "f"]
    found = candidates("q", Scores(np.array([0.1, 0.9, 0.5, 0.9, 0.2, 0.3], F), ScoreType.DOT, "bi", ids), k0)
    documents = {"a": [11], "b": [12], "c": [19], "d": [12], "e": [30], "f": [40]}
    kept = [c.document_id for c in found.found]
    encoder = CrossEncoder(lambda table: [float(table.ids[-2])], TEMPLATE,
                           cross(activation="identity", score_type="logits"))
    return found, rerank(found, encoder.score_pairs([5], [documents[id_] for id_ in kept], kept))


def test_candidates_have_ids_types_and_ranks():
    found, _ = stages()
    assert [(c.document_id, c.rank) for c in found.found] == [("b", 0), ("d", 1), ("c", 2)]
    assert {c.score_type for c in found.found} == {"dot_similarity"}
    nearest = candidates("q", Scores(np.array([0.5, 0.1], F), ScoreType.SQUARED_L2, "bi", ["a", "b"]), 1)
    assert nearest.found[0].document_id == "b"


def test_the_k_best_are_a_prefix_for_every_k():
    scores = Scores(np.array([1, 2, 5, 4, 5], F), ScoreType.DOT, "bi", list("abcde"))
    for k in range(6):
        assert [c.document_id for c in candidates("q", scores, k).found] == list("cedba")[:k]
    with pytest.raises(ReadoutError, match="different document ids"):
        candidates("q", Scores(np.ones(2, F), ScoreType.DOT, "bi", ["a", "a"]), 1)


def test_reranking_orders_candidates_and_ties_keep_their_rank():
    _, final = stages()
    assert final.document_ids == ("c", "b", "d") and final.score_type == "logits" and final.parent == "bi"


def test_the_second_stage_cannot_bring_back_what_the_first_lost():
    found, final = stages()
    report = recall_report(["c", "f", "e"], found, final, 1)
    assert report.candidate_recall == 1 / 3 and report.final_recall == 1 / 3 and report.lost == ("f", "e")
    for relevant in (["a"], ["b", "c"], list("abcdef")):
        for k in (1, 2, 3):
            report = recall_report(relevant, found, final, k)
            assert report.final_recall <= report.candidate_recall
    wider, final = stages(k0=6)
    assert recall_report(["f"], wider, final, 1).final_recall == 1.0


def test_documents_from_nowhere_and_foreign_stages_are_refused():
    found, final = stages()
    extra = PairScores(("b", "d", "c", "f"), Scores(np.ones(4, F), ScoreType.LOGIT, "x"))
    short = PairScores(("b", "d"), Scores(np.ones(2, F), ScoreType.LOGIT, "x"))
    for scored, field in ((extra, "scores['f']"), (short, "scores['c']")):
        with pytest.raises(ReadoutError) as caught:
            rerank(found, scored)
        assert caught.value.field == field
    import dataclasses
    for change, field in (({"parent": "other"}, "final.parent"), ({"query_id": "q2"}, "final.query_id"),
                          ({"document_ids": ("b", "f", "c")}, "final.document_ids")):
        with pytest.raises(ReadoutError) as caught:
            recall_report(["b"], found, dataclasses.replace(final, **change), 1)
        assert caught.value.field == field
