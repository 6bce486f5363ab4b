"""Windows: records, the ledger, ownership, the mean that counts every token once, answers, late-interaction rows."""
from dataclasses import replace

import numpy as np
import pytest
from dx_model.readout import LateInteractionRelease, Pooling, late_scores, row_table, token_vectors
from dx_model.readout.heads import NullRule
from dx_model.readout.heads.answers import Answer
from dx_model.runtime import (
    WindowPolicy,
    admit_windows,
    cut_windows,
    late_rows,
    overlap_mean,
    source_answer,
    source_rows,
    source_spans,
    span_between,
)
from readout_record import refused
from runtime_source import F, source


def bare(values):
    """A source without inserted rows."""
    n = len(values)
    return row_table(np.ones(n, bool), np.zeros(n, bool), np.zeros(n, int), range(n), [(i, i + 1) for i in range(n)],
                     ids=[int(v) for v in values])


def windows(n, rows, overlap, owner="center", **options):
    return cut_windows("doc", source(range(10, 10 + n)), WindowPolicy(rows, overlap, owner, "test"), "rel", **options)


def test_a_record_says_whose_every_row_is():
    a, b, c = windows(7, 5, 1)
    assert [r.window_id for r in (a, b, c)] == ["doc#0", "doc#1", "doc#2"]
    assert [r.tokens for r in (a, b, c)] == [(0, 3), (2, 5), (4, 7)]
    assert [r.characters for r in (a, b, c)] == [(0, 5), (4, 9), (8, 13)]
    assert b.rows.ids.tolist() == [2, 12, 13, 14, 3] and b.token.tolist() == [-1, 2, 3, 4, -1]
    assert b.multiplicity.tolist() == [0, 2, 1, 2, 0] and (b.left, b.right, b.inserted) == (1, 1, (1, 1))
    assert a.owned.tolist() == [0, 1, 1, 1, 0] and b.owned.tolist() == [0, 0, 1, 1, 0]
    assert a.digest() != b.digest() and a.digest() == windows(7, 5, 1)[0].digest()
    assert a.digest() != windows(7, 5, 1, "first")[1].digest()
    assert (a.left, a.right, c.right) == (0, 1, 0) and b.rows.offsets[1].tolist() == [4, 5]


def test_the_question_is_in_every_window_and_the_context_is_cut():
    table = source(range(10, 20), question=[5, 6])
    records = cut_windows("q", table, WindowPolicy(9, 2, "center", "answers"), "rel", sequence=1)
    assert [r.tokens for r in records] == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert all(r.rows.ids[:4].tolist() == [2, 5, 6, 3] and r.rows.ids[-1] == 3 for r in records)
    assert records[1].rows.type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    refused(lambda: cut_windows("q", table, WindowPolicy(5, 2, "center", "answers"), "rel", sequence=1), "windows.rows")
    refused(lambda: cut_windows("q", table, WindowPolicy(7, 2, "first", "a"), "rel", sequence=1), "windows.overlap")
    refused(lambda: cut_windows("q", table, WindowPolicy(9, 2, "center", "answers"), "rel", sequence=2),
            "rows.sequence")


def test_every_length_is_covered_and_owned_once():
    for n in range(1, 30):
        for overlap in (0, 1, 3):
            for owner in ("center", "first", "multiplicity"):
                records = admit_windows(windows(n, 7, overlap, owner))
                owned = [int(t) for r in records for t in r.token[r.owned]]
                assert sorted(set(owned)) == list(range(n)) and (len(owned) == n or owner == "multiplicity")


def test_overlap_counted_twice_is_found_by_the_ledger():
    """A window given twice, a window left out, and records that deny the overlap are all named."""
    a, b, c = windows(7, 5, 1)
    assert [r.index for r in admit_windows([c, a, b])] == [0, 1, 2]
    refused(lambda: admit_windows([a, b, b, c]), "windows.window_id")
    refused(lambda: admit_windows([a, c]), "windows[doc#0].multiplicity")
    refused(lambda: admit_windows([a, b]), "windows[doc#1].multiplicity")
    denied = replace(b, multiplicity=np.minimum(b.multiplicity, 1))
    refused(lambda: admit_windows([a, denied, c]), "windows[doc#1].multiplicity")
    greedy = replace(b, owned=b.content)
    refused(lambda: admit_windows([a, greedy, c]), "windows.token[2]")
    refused(lambda: admit_windows([a, replace(b, parent_release="other"), c]), "windows[doc#1].parent_release")
    refused(lambda: admit_windows([a, replace(b, source_id="other"), c]), "windows[doc#1].source_id")
    refused(lambda: admit_windows([]), "windows")
    alone, last = windows(6, 5, 0)
    refused(lambda: admit_windows([last]), "windows.token[0]")
    assert len(admit_windows([alone, last])) == 2


def test_the_mean_that_counts_every_token_once():
    """Values 2, 4, 10, 20 in windows (2, 4, 10) and (10, 20): 9, where the mean of window means is 10.1667."""
    values = np.array([[2], [4], [10], [20]], F)
    records = cut_windows("s", bare(values[:, 0]), WindowPolicy(3, 1, "multiplicity", "mean"), "rel")
    assert [r.tokens for r in records] == [(0, 3), (2, 4)]
    rows = [values[slice(*r.tokens)] for r in records]
    assert overlap_mean(records, rows).tolist() == [9.0]
    means = [Pooling("mean").forward(x[None], np.ones((1, len(x)), bool)).vectors[0, 0] for x in rows]
    assert abs((float(means[0]) + float(means[1])) / 2 - 10.1667) < 5e-5
    assert overlap_mean(records[::-1], rows[::-1]).tolist() == [9.0]
    refused(lambda: overlap_mean(records, rows[:1]), "rows")
    refused(lambda: overlap_mean(records, [rows[0], rows[1].astype(float)]), "rows[s#1]")


def test_occurrences_are_averaged_not_rebuilt(rng):
    """The corrected mean is the mean of each token's mean over its occurrences, against binary64."""
    records = windows(23, 9, 3, "multiplicity")
    rows = [rng.standard_normal((len(r.rows), 6)).astype(F) for r in records]
    total = np.zeros(6)
    for t in range(23):
        seen = [x[r.token == t][0].astype(float) for r, x in zip(records, rows) if (r.token == t).any()]
        total += sum(seen) / len(seen)
    assert np.abs(overlap_mean(records, rows) - total / 23).max() < 1e-6


def test_token_labels_are_given_by_their_owner(rng):
    """Duplicate tokens are resolved before anything counts them: one row a token, from the window where it is farthest
    from a cut, in source order."""
    records = windows(9, 6, 2)
    logits = [rng.standard_normal((len(r.rows), 3)).astype(F) for r in records]
    rows = source_rows(records, logits)
    assert rows.shape == (9, 3)
    for t in range(9):
        owner, = [k for k, r in enumerate(records) if (r.token[r.owned] == t).any()]
        assert rows[t].tobytes() == logits[owner][records[owner].token == t][0].tobytes()
    shuffled = source_rows([records[i] for i in (2, 0, 3, 1)], [logits[i] for i in (2, 0, 3, 1)])
    assert shuffled.tobytes() == rows.tobytes()
    refused(lambda: source_rows(windows(9, 6, 2, "multiplicity"), logits), "windows.owner")


def test_spans_of_windows_are_spans_of_the_source():
    records = windows(9, 6, 2)
    found = source_spans(records, [[(3.0, 3, 4), (1.0, 1, 1)], [(4.0, 1, 2)], [], [(2.0, 2, 3)]])
    assert [(s.tokens, s.score, s.window_id) for s in found] == [
        ((2, 3), 4.0, "doc#1"), ((7, 8), 2.0, "doc#3"), ((0, 0), 1.0, "doc#0")]
    assert found[0].characters == (0, 4, 7)


def test_a_span_between_two_windows_is_refused():
    """Start and end of two windows: each index is in range, and no model ever scored the pair."""
    a, b, c = windows(7, 5, 1)
    assert span_between((b, 1), (b, 3), 1.0).tokens == (2, 4)
    refused(lambda: span_between((a, 1), (b, 3), 1.0), "answer.window")
    refused(lambda: span_between((b, 3), (b, 1), 1.0), "answer.rows")
    refused(lambda: span_between((b, 0), (b, 1), 1.0), "answer.start")
    refused(lambda: span_between((b, 1), (b, 4), 1.0), "answer.end")
    refused(lambda: span_between((b, 1), (b, 9), 1.0), "answer.end")


def test_answers_and_null_scores_are_compared_under_one_rule():
    records = windows(7, 5, 1)
    rule = NullRule(0, 0.5, "development")
    answers = [Answer(None, 1.0, 4.0, (1, 2)), Answer((1, 3), 5.0, 2.0, (1, 3)), Answer(None, 0.5, 6.0, (2, 2))]
    found = source_answer(records, answers, rule)
    assert found.span.tokens == (2, 4) and found.span.characters == (0, 4, 9) and found.null_score == 2.0
    again = source_answer(records[::-1], answers[::-1], rule)
    assert again == found
    weak = [answers[0], Answer(None, 1.0, 2.0, (1, 3)), answers[2]]
    none = source_answer(records, weak, rule)
    assert none.span is None and none.window_id == "doc#1"
    refused(lambda: source_answer(records, answers[:2], rule), "answers")
    refused(lambda: source_answer(records[:2], answers[:2], rule), "windows[doc#1].multiplicity")


def late(schema):
    return LateInteractionRelease("content", "content", "p1", "lowest_row", schema, True)


def test_late_interaction_rows_stand_once_or_as_versioned_occurrences(rng):
    records = windows(9, 6, 2)
    rows = [rng.standard_normal((len(r.rows), 4)).astype(F) for r in records]
    once = late_rows(records, rows, late("rows:owned"), "owned")
    assert once.places.tolist() == list(range(9)) and once.ids == ("doc",)
    every = late_rows(records, rows, late("rows:occurrences"), "occurrences")
    assert len(every.rows) == 15 and every.places.tolist() == [int(t) for r in records for t in r.token[r.content]]
    refused(lambda: late_rows(records, rows, late("rows:owned"), "occurrences"),
            "interaction.document_token_artifact_schema")
    refused(lambda: late_rows(records, rows, late("rows:owned"), "all"), "windows.late_rows")
    query = token_vectors(late("rows:owned"), "query", ["q"], [rows[0]], [records[0].content])
    scores = late_scores(late("rows:owned"), query, once)
    assert scores.winners.max() < 9
    refused(lambda: late_scores(late("rows:owned"), query, every), "document.release")


def test_policies_are_checked():
    for bad, field in (((0, 0, "first", "x"), "windows.rows"), ((5, -1, "first", "x"), "windows.overlap"),
                       ((5, 0, "last", "x"), "windows.owner"), ((5, 0, "first", ""), "windows.aggregation")):
        refused(lambda bad=bad: WindowPolicy(*bad), field)
    table = source([5, 6, 7])
    policy = WindowPolicy(5, 1, "first", "x")
    refused(lambda: cut_windows("", table, policy, "r"), "source_id")
    refused(lambda: cut_windows("a", table, policy, ""), "parent_release")
    with pytest.raises(ValueError, match="stand together"):
        cut_windows("a", row_table([1] * 3, [0, 1, 0], [0, None, 0], ids=[1, 2, 3]), policy, "r")
