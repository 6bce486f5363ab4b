"""Scores, entity F1, intervals and thresholds; the cases lab-10 to lab-14 and rea-31."""
import subprocess
import sys
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from dx_labels.below import substream, uniform64
from dx_labels.bootstrap import f1_intervals
from dx_labels.confusion import confusion
from dx_labels.entities import F1, exact_f1, tag_entities, tag_f1
from dx_labels.intervals import clopper_pearson
from dx_labels.labels import Label
from dx_labels.scoring import Scored, gold_of_labels, score
from dx_labels.thresholds import choose_threshold


def test_lab_10_iobes_is_enforced():
    total, each = tag_f1([["B-P", "E-P", "S-P"]], [["B-P", "I-P", "S-P"]], "IOBES")
    assert (total.precision, total.recall, round(total.f1, 3)) == (1.0, 0.5, 0.667) and each["P"] == total


def test_lab_11_bare_tags_are_one_type():
    total, each = tag_f1([["O", "O", "O", "B", "I", "I", "O"]], [["O", "O", "B", "I", "I", "I", "O"]])
    assert total == F1(0, 1, 1) and list(each) == [""]
    with pytest.raises(ValueError, match="X-P"):
        tag_entities(["X-P"])


def test_lab_13_a_border_is_a_border():
    total, _ = tag_f1([["B-M", "E-M", "B-M", "E-M"]], [["B-M", "I-M", "I-M", "E-M"]], "IOBES")
    assert total == F1(0, 1, 2)


def test_lab_14_each_repair_rule_has_its_own_number():
    gold, predicted = [["B-P", "I-P", "O"]], [["I-P", "I-P", "O"]]
    found = {repair: tag_f1(gold, predicted, repair=repair)[0] for repair in ("drop", "begin", "as-is")}
    assert found == {"drop": F1(0, 0, 1), "begin": F1(1, 1, 1), "as-is": F1(0, 1, 1)}
    with pytest.raises(ValueError, match="repair"):
        tag_entities(["O"], repair="guess")


def test_iob2_entities_strict_and_lenient():
    tags = ["B-A", "I-A", "B-A", "I-B", "I-B", "O", "I-A", "B-B"]
    assert tag_entities(tags) == [("A", 0, 1), ("A", 2, 2), ("B", 7, 7)]
    assert tag_entities(tags, repair="begin") == [("A", 0, 1), ("A", 2, 2), ("B", 3, 4), ("A", 6, 6), ("B", 7, 7)]
    assert tag_entities([]) == [] and tag_entities(["S-A", "O"]) == []
    assert tag_entities(["S-A", "B-A", "E-A"], "IOBES") == [("A", 0, 0), ("A", 1, 2)]


def test_exact_f1_counts_each_thing_as_often_as_it_stands_there():
    assert exact_f1(["a", "a", "b"], ["a", "a", "a", "c"]) == F1(2, 4, 3)
    assert exact_f1([], []).f1 == 0.0 and F1(1, 2, 2) + F1(1, 1, 1) == F1(2, 3, 3)
    assert exact_f1([("d", (0, 1)), ("d", (2, 3))], [("d", (0, 1)), ("d", (2,))]).f1 == 0.5


def test_intervals_are_the_exact_binomial():
    for k, n in [(0, 7), (3, 7), (7, 7), (99, 100), (1, 1), (300, 347)]:
        low, high = clopper_pearson(k, n)
        for p, tail in ((low, range(k, n + 1)), (high, range(k + 1))):
            if p in (0.0, 1.0):
                assert (k, p) in ((0, 0.0), (n, 1.0))
                continue
            f, total = Fraction(p), Fraction(0)
            for i in tail:
                total += comb(n, i) * f ** i * (1 - f) ** (n - i)
            assert abs(float(total) - 0.025) < 1e-12
    assert clopper_pearson(0, 0) == (0.0, 1.0) and clopper_pearson(0, 5)[0] == 0.0 and clopper_pearson(5, 5)[1] == 1.0
    assert clopper_pearson(5, 5)[0] == pytest.approx(0.025 ** 0.2, rel=1e-12)
    narrow, wide = clopper_pearson(50, 100, "0.5"), clopper_pearson(50, 100, "0.99")
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]
    with pytest.raises(ValueError, match="k = 3, n = 2"):
        clopper_pearson(3, 2)
    with pytest.raises(ValueError, match="level"):
        clopper_pearson(1, 2, "1")


def test_intervals_do_not_hear_the_callers_decimal_context():
    code = ("import decimal; decimal.getcontext().prec = 3; decimal.getcontext().rounding = 'ROUND_UP'\n"
            "from dx_labels.intervals import clopper_pearson; print(clopper_pearson(330, 347))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(clopper_pearson(330, 347))


SCORES, RIGHT = [0.1, 0.8, 0.9, 0.3, 1.0, 0.95], [0, 0, 1, 1, 1, 1]


def test_rea_31_best_recall_at_a_required_precision():
    found = choose_threshold("total", SCORES, RIGHT, share="0.75")
    assert (found.value, found.reached, found.right, found.count) == (0.3, 1.0, 4, 5) and found.supported
    assert "chosen on these 6 pages" in found.statement() and "0.3" in found.statement()
    found = choose_threshold("total", SCORES, RIGHT, share="0.99")
    assert (found.value, found.best, found.reached, found.supported) == (None, 0.9, 0.75, False)
    assert "no threshold" in found.statement() and "fewer than 5 values" in found.statement()
    assert found.interval == clopper_pearson(3, 3) and found.to_json()["threshold"] is None


def test_thresholds_take_ties_whole_and_compare_shares_exactly():
    found = choose_threshold("f", [0.9] * 5 + [0.5] * 2, [1] * 5 + [1, 0])
    assert found.value == 0.9 and found.count == 5
    assert choose_threshold("f", [0.9] * 6, [1] * 5 + [0]).value is None  # the tie cannot be cut
    many = choose_threshold("f", [0.5] * 100, [1] * 99 + [0])
    assert many.value == 0.5 and (many.right, many.count) == (99, 100)  # exactly 0.99
    assert choose_threshold("f", [0.5] * 100, [1] * 98 + [0] * 2).value is None
    late = choose_threshold("f", [0.99, *[0.9] * 200], [0, *[1] * 200])
    assert late.value == 0.9 and late.count == 201  # the wrong one at the top is outweighed


def test_a_plain_statement_when_there_is_no_threshold():
    none = choose_threshold("f", [0.9], [0], pages=1)
    assert none.statement().startswith("f: no threshold: at no confidence were 0.99 of the values right")
    assert none.statement().endswith("(chosen on this one page)")
    empty = choose_threshold("f", [], [])
    assert empty.value is None and empty.interval is None and "no threshold" in empty.statement()
    for bad in ({"confidences": [float("nan")], "correct": [1]}, {"confidences": [1], "correct": []},
                {"confidences": [1], "correct": [1], "share": "1.5"}):
        with pytest.raises(ValueError):
            choose_threshold("f", **bad)


def row(document, gold, places, predicted, place, **more):
    return Scored(document, "total", gold, predicted, places, place, **more)


def test_the_seeds_scores_by_hand():
    rows = [row("a", ("8.20",), ((1, 5),), ("8.20",), (5,)),  # right, at its second place
            row("b", ("9.00",), ((1,),), ("9.00",), (7,)),  # right text, other words
            row("c", (), (), (), ()),  # no value on either side
            row("d", (), (), ("1.00",), (2,)),  # too much
            row("e", ("3.00",), ((4,),), (), ()),  # missed
            row("f", ("5.00",), (), ("5.00",), (3,), words=False)]  # not scored by words
    own = score(rows, ["total"]).fields["total"]
    assert (own.correct.k, own.correct.n) == (2, 5)
    assert (own.recall.k, own.recall.n) == (1, 3)
    assert (own.agreement.k, own.agreement.n) == (1, 4)
    assert own.words == F1(1, 3, 3)
    assert own.text == F1(3, 4, 4) == own.exact
    assert score(rows, ["total"]).total == own
    with pytest.raises(ValueError, match="none of day"):
        score(rows, ["day"])


def test_text_is_letters_and_digits_and_exact_is_exact():
    own = score([row("a", ("RM 8.20",), (), ("rm8.20",), (), words=False),
                 row("b", ("-",), (), ("-",), (), words=False)], ["total"]).total
    assert own.text == F1(2, 2, 2) and own.exact == F1(1, 2, 2)


def test_repeated_fields_count_every_value_once():
    own = score([row("a", ("x", "x", "y"), ((0, 2), (0, 2), (4,)), ("x", "y", "y"), (0, 4, 4))], ["total"]).total
    assert own.words == F1(2, 3, 3) and own.text == F1(2, 3, 3) and own.correct.k == 0
    own = score([row("a", ("x", "x"), ((0, 2), (0, 2)), ("x", "x"), (2, 0))], ["total"]).total
    assert own.correct.k == 1


def test_confusion_names_the_field_a_wrong_value_belonged_to():
    def at(*words):
        return tuple((w, 0, 4) for w in words)

    rows = [Scored("a", "date", ("x",), (), ((at(1),),), ()),  # missed, and taken for due
            Scored("a", "due", (), ("x",), (), (at(1),)),
            Scored("a", "total", ("y",), ("y z",), ((at(5),),), (at(5, 6),)),  # its own, other borders
            Scored("b", "date", ("x",), ("x",), ((at(1), at(3)),), (at(3),)),  # right
            Scored("b", "due", ("y",), ("q",), ((at(2),),), (at(7),)),  # nothing there, and its own missed
            Scored("b", "total", ("z",), ("y x",), ((at(2),),), (at(2, 1, 3),), words=False),  # not judged
            Scored("c", "due", ("y",), ("xy",), ((at(2),),), (((2, 3, 4), (1, 0, 4)),)),  # more of date than of due
            Scored("c", "date", ("x",), ("x",), ((at(1),),), (at(1),))]
    found = confusion(rows, ["date", "due", "total"])
    assert [(c["found"], c["labelled"], c["exact"], c["count"]) for c in found] == [
        ("date", "date", True, 2), ("due", "date", False, 2), ("due", None, False, 1), ("total", "total", False, 1),
        (None, "date", False, 1), (None, "due", False, 1)]
    assert confusion([], ["date"]) == []


def test_gold_of_labels():
    def label(outcome, value="v", **more):
        return Label("p", "p", "f", value, outcome, (), ((((0, 0, 1),),) if outcome == "exact" else ()), **more)

    assert gold_of_labels([label("exact")]) == (("v",), ((((0, 0, 1),),),), True)
    assert gold_of_labels([label("none", None)]) == ((), (), True)
    assert gold_of_labels([label("none")]) == ((), (), True)  # on another page of the document
    assert gold_of_labels([label("computed")]) == (("v",), (), True)
    assert gold_of_labels([label("absent")]) == (("v",), (), False)
    assert gold_of_labels([label("exact", contested=True)]) == (("v",), (), False)


# --- intervals of F1 -------------------------------------------------------------------------------------------------

def by_hand(counts, pages, resamples=2000):
    """The method as its documentation says it, in plain numbers."""
    u, values = np.empty(resamples * pages), []
    uniform64(substream(0, "pages of F1 intervals"), u)
    for b in range(resamples):
        drawn = [min(int(u[b * pages + i] * pages), pages - 1) for i in range(pages)]
        tp, size = sum(counts[p][0] for p in drawn), sum(counts[p][1] + counts[p][2] for p in drawn)
        if size:
            values.append(2 * tp / size)
    values.sort()
    return values[len(values) // 40], values[len(values) - 1 - len(values) // 40]


def test_f1_intervals_are_those_of_their_description():
    counts = [(1, 1, 1), (0, 1, 1), (0, 0, 0), (1, 2, 1), (0, 0, 1), (2, 2, 3), (0, 0, 0)]
    sparse = [(0, 0, 0)] * 5 + [(0, 1, 0), (1, 1, 1)]
    both = np.array(list(zip(counts, sparse)), np.int64)
    assert f1_intervals(both) == [by_hand(counts, 7), by_hand(sparse, 7)]
    assert f1_intervals(both[:, :1])[0] == f1_intervals(both)[0]  # another measure beside it changes nothing
    many = both * 2 ** 20  # beyond what packs into one number
    assert f1_intervals(many) == f1_intervals(both)


def test_f1_intervals_where_drawing_shows_nothing():
    right, wrong, none = ([one] * 20 for one in ((1, 1, 1), (0, 1, 1), (0, 0, 0)))
    low, high = f1_intervals(np.array(right, np.int64).reshape(20, 1, 3))[0]
    share = clopper_pearson(20, 20)[0]
    assert (low, high) == (2 * share / (1 + share), 1.0) and 0.85 < low < 0.95
    low, high = f1_intervals(np.array(wrong, np.int64).reshape(20, 1, 3))[0]
    assert low == 0 and 0.1 < high < 0.3  # none of 40 things
    assert f1_intervals(np.array(none, np.int64).reshape(20, 1, 3)) == [(0.0, 1.0)]
    assert f1_intervals(np.zeros((0, 2, 3), np.int64)) == [(0.0, 1.0)] * 2


def test_f1_intervals_cover_and_do_not_depend_on_the_order_of_rows():
    """400 sets of 60 pages, each page right with probability 0.8, drawn by SplitMix64: about 95 % of the intervals
    hold the truth."""
    u, hit = np.empty((400, 60)), 0
    uniform64(5, u)
    for own in u:
        counts = np.array([[(int(v < 0.8), 1, 1)] for v in own], np.int64)
        low, high = f1_intervals(counts)[0]
        hit += low <= 0.8 <= high
    assert 0.91 <= hit / 400 <= 0.98
    rows = [Scored(f"p{i}", "total", ("x",), ("x" if i % 3 else "y",), ((i,),), (i if i % 3 else -1,))
            for i in range(30)]
    first, second = (score(some, ["total"]).to_json() for some in (rows, rows[::-1]))
    assert first == second and first["total"] == first["fields"]["total"]
    low, high = first["total"]["words"]["f1_interval"]
    assert low < first["total"]["words"]["f1"] == 2 / 3 < high and first["total"]["text"]["f1_interval"] == [low, high]
