"""Records and digests of heads; windows of long sources; scores of cells and rows."""
import json

import numpy as np
import pytest
from dx_model.docextract.results import FieldResult, Group, PageResult, Part, Value
from dx_model.readout import heads
from test_heads import LABELS, TARGETS, normal, refused

TAGS = heads.LabelMap(("O", "B-X", "I-X"))


def made(name, **changes):
    """A head with the same tensors every time; changes are of its settings."""
    rng = np.random.default_rng(4)
    w, b, d = normal(rng, 3, 3), normal(rng, 3), normal(rng, 2)
    if name == "single":
        return heads.SingleLabelHead(changes.get("labels", LABELS), w, b, changes.get("dropout", 0.0))
    if name == "regression":
        objective = changes.get("objective", heads.RegressionObjective())
        return heads.RegressionHead(changes.get("targets", TARGETS), objective, w[:2].copy(), d,
                                    domain=changes.get("domain"))
    if name == "multilabel":
        return heads.MultilabelHead(changes.pop("labels", LABELS), w, b, changes.pop("thresholds", [0.2, 0.5, 0.9]),
                                    **changes)
    if name == "crf":
        return heads.CrfHead(TAGS, w, b, w.copy(), b.copy(), b.copy(), changes.get("scheme"))
    return heads.AnswerHead(w[:2].copy(), d, changes.get("length", 8), changes.get("rule"))


@pytest.mark.parametrize("name, changes", [
    ("single", [{"labels": heads.LabelMap(("neutral", "negative", "positive"))}, {"dropout": 0.1}]),
    ("regression", [{"targets": heads.plain_scale(TARGETS.names, TARGETS.units)}, {"domain": [(0.0, 1.0), None]},
                    {"objective": heads.RegressionObjective("huber", 0.5)},
                    {"objective": heads.RegressionObjective("huber", 0.7)}]),
    ("multilabel", [{"thresholds": [0.5] * 3}, {"positive": [2.0, 1.0, 1.0]}, {"negative": [2.0, 1.0, 1.0]},
                    {"gamma": 2.0}]),
    ("crf", [{"scheme": heads.TagScheme("BIO", TAGS)}]),
    ("answers", [{"length": 9}, {"rule": heads.NullRule(0, 0.5, "dev")}, {"rule": heads.NullRule(0, 0.6, "dev")},
                 {"rule": heads.AnswerabilityRule(0.5, "dev")}])])
def test_whatever_changes_the_meaning_changes_the_digest(name, changes):
    """The shapes are the same throughout."""
    digests = {heads.head_digest(made(name))} | {heads.head_digest(made(name, **c)) for c in changes}
    assert len(digests) == 1 + len(changes) and heads.head_digest(made(name)) in digests
    other = made(name)
    other.parameters()["bias"][0] += 1
    assert heads.head_digest(other) not in digests
    record = heads.head_record(made(name, **changes[0]))
    assert json.loads(json.dumps(record)) == record and record["kind"] == made(name).kind
    assert record["score_type"] == ("values" if name == "regression" else "logits")


def test_span_scorers_have_records_and_others_are_refused(rng):
    biaffine = heads.BiaffineHead(normal(rng, 2, 2), normal(rng, 2), normal(rng, 2), normal(rng, 1), 4)
    assert heads.head_record(biaffine)["max_length"] == 4 and heads.head_record(biaffine)["labels"] is None
    refused("head", heads.head_record, object())


def test_rea_22_overlap_and_step_are_both_named():
    """Case rea-22: window 8 over 20 rows with overlaps 2, 8 and 9."""
    windows = heads.RowWindows(8, 2)
    assert windows.cut(20) == [(0, 8), (6, 14), (12, 20)]
    assert windows.report() == {"window": 8, "overlap": 2, "step": 6}
    refused("windows.overlap", heads.RowWindows, 8, 8)
    refused("windows.overlap", heads.RowWindows, 8, 9)
    for n in range(40):
        cut = heads.RowWindows(5, 2).cut(n)
        assert {i for b, e in cut for i in range(b, e)} == set(range(n)) and all(e - b <= 5 for b, e in cut)
        assert all(later[0] == before[1] - 2 for before, later in zip(cut, cut[1:]))


def test_the_answer_among_windows():
    rule = heads.NullRule(0, 0.0, "dev-1")
    away = heads.Answer(None, 1.0, 9.0, (3, 4))  # holds no part of the answer: its null row is loud
    here = heads.Answer((5, 6), 6.0, 2.0, (5, 6))
    assert heads.answer_of_windows([away, here], rule) == (1, heads.Answer((5, 6), 6.0, 2.0, (5, 6)))
    nothing = heads.Answer(None, 1.0, 8.0, (1, 1))
    assert heads.answer_of_windows([away, nothing], rule) == (1, heads.Answer(None, 1.0, 8.0))
    same = heads.Answer((1, 1), 6.0, None, (1, 1))
    assert heads.answer_of_windows([same, heads.Answer((2, 2), 6.0, None, (2, 2))]) == (0, same)
    refused("answers", heads.answer_of_windows, [])
    refused("answers", heads.answer_of_windows, [heads.Answer(None, None, None)])


def test_rea_26_cells_rows_and_fields_have_scores():
    """Case rea-26: a line item with one smudged cell; the row's score is the lowest of its cells'."""
    def value(text, confidence):
        return Value(text, confidence, (), (0, 0))
    fields = {"item": FieldResult("item", True, (value("Tea", 0.99), value("Cake", 0.98)), None),
              "price": FieldResult("price", True, (value("2.00", 0.97), value("3.S0", 0.41)), None)}
    part = Part(0, 0, 3, (0, 0, 1, 1))
    page = PageResult("p", fields, None, 1, True, groups=(Group(part, (part,), {"item": [0], "price": [0]}),
                                                          Group(part, (part,), {"item": [1], "price": [1]}),
                                                          Group(part, (part,), {})))
    assert [page.group_confidence(k) for k in range(3)] == [0.97, 0.41, None]
    assert [group["confidence"] for group in page.to_json()["groups"]] == [0.97, 0.41, None]
    assert page.fields["price"].values[1].confidence == 0.41 and page.fields["item"].confidence == 0.99
