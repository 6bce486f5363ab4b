"""Split roles, leaks, the ledger, frozen plans, slices, candidate against parent."""
import json

import pytest
from dx_labels.evidence.audit import Ledger, admit_audit, checked, up_to
from dx_labels.evidence.paired import TRANSITIONS
from dx_labels.evidence.plan import SlicePlan
from dx_labels.evidence.roles import (ALLOWED, FORBIDDEN, ROLES, EvidenceError, Member, SplitManifest, admit_splits,
                                      splits_from_json)

from dx_labels.evidence import EvaluationPlan, evaluate_cases, leaks, paired, plan_from_json


def manifest(*members, **more):
    known = dict(dataset="d1", licence="CC0", provenance="made here", deduplication="equal text", label_schema="s1",
                 scorer="exact", plan="p1")
    return SplitManifest(**{**known, **more}, members=members or tuple(Member(r, r) for r in ROLES))


def only(ledger, role):
    """What the ledger lets pass and what it refuses for a role, over every operation there is."""
    every = sorted({op for ops in (*ALLOWED.values(), *FORBIDDEN.values()) for op in ops})
    passed = []
    for operation in every:
        try:
            ledger.use(operation, role, [f"{role}-1"], subject=operation)
            passed.append(operation)
        except EvidenceError as error:
            assert f"of the role {role}" in str(error)
    assert [e["allowed"] for e in ledger.entries()].count(False) == len(every) - len(passed)  # refusals are on record
    return passed


def test_train(tmp_path):
    assert only(Ledger(tmp_path / "a"), "train") == ["fit weights"]
    assert "report as held out" in FORBIDDEN["train"]


def test_development(tmp_path):
    assert only(Ledger(tmp_path / "a"), "development") == ["choose settings"]


def test_calibration(tmp_path):
    assert only(Ledger(tmp_path / "a"), "calibration") == ["fit calibration", "fit thresholds"]
    splits = manifest()
    moved = splits.reclassified(["calibration"], "train")
    assert moved.before == splits.digest != moved.digest and moved.ids("train") == ["train", "calibration"]
    with pytest.raises(EvidenceError, match="no untouched test"):
        splits.reclassified(["calibration"], "promotion")


def test_promotion_test(tmp_path):
    assert only(Ledger(tmp_path / "a"), "promotion") == ["evaluate frozen candidate"]


# --- leaks -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, a, b", [
    ("id", Member("x", "train"), Member("x", "train")),
    ("group", Member("x", "train", group="g"), Member("y", "promotion", group="g")),
    ("window", Member("x#0", "train", parent="x"), Member("x#1", "promotion", parent="x")),
    ("window", Member("x", "train"), Member("x#1", "calibration", parent="x")),
    ("copy", Member("x", "development", content="c"), Member("y", "promotion", content="c")),
])
def test_a_leak_is_found_and_refused(kind, a, b):
    found = leaks(manifest(a, b))
    assert [leak.kind for leak in found] == [kind] and "stands in" in str(found[0])
    with pytest.raises(EvidenceError, match=kind):
        admit_splits(manifest(a, b))


def test_windows_of_one_source_in_one_role_are_no_leak():
    members = [Member(f"x#{k}", "train", "g", "x") for k in range(3)]
    admit_splits(manifest(*members, *(Member(r, r, content="c" if r == "train" else None) for r in ROLES)))


def test_a_manifest_is_whole_and_goes_through_json():
    splits = manifest(Member("x#0", "train", "g", "x", "c"), *(Member(r, r) for r in ROLES))
    assert splits_from_json(json.loads(json.dumps(splits.to_json()))) == splits
    for change in ({"licence": ""}, {"plan": None}):
        with pytest.raises(EvidenceError, match=f"splits.{next(iter(change))}"):
            manifest(**change)
    with pytest.raises(EvidenceError, match="role 'test'"):
        manifest(Member("x", "test"))
    with pytest.raises(EvidenceError, match="no example has the role promotion"):
        admit_splits(manifest(*(Member(r, r) for r in ROLES[:3])))
    loose = {**splits.to_json(), "allowed": {r: ["fit weights"] for r in ROLES}}
    with pytest.raises(EvidenceError, match="splits.allowed"):
        splits_from_json(loose)


# --- the ledger ------------------------------------------------------------------------------------------------------

def evaluated(path, **more):
    ledger = Ledger(path)
    ledger.use("fit weights", "train", ["t"], subject="w")
    ledger.use("evaluate frozen candidate", "promotion", ["p", "q"],
               **{"subject": "c", "frozen": "f", "plan": "1", **more})
    return ledger


ASKED = {"subject": "c", "frozen": "f", "plan": "1", "promotion": ["p", "q"]}


def test_an_untouched_promotion_test_is_admitted_and_the_same_use_is_noted_once(tmp_path):
    ledger = evaluated(tmp_path / "a")
    admit_audit(ledger.entries(), **ASKED)
    before = ledger.path.read_bytes()
    evaluated(tmp_path / "a")
    assert ledger.path.read_bytes() == before
    ledger.use("evaluate frozen candidate", "promotion", ["p", "q"], subject="later", frozen="g", plan="1")
    assert len(up_to(ledger.entries(), "c")) == 2 and len(ledger.entries()) == 3
    admit_audit(ledger.entries(), **{**ASKED, "subject": "later", "frozen": "g"})  # other weights may come later
    ledger.use("fit weights", "train", ["q"], subject="w2", frozen="h")  # another split, other weights
    admit_audit(ledger.entries(), **ASKED)
    ledger.use("fit weights", "train", ["q"], subject="w", frozen="f")
    with pytest.raises(EvidenceError, match="which is a promotion example"):
        admit_audit(ledger.entries(), **ASKED)


@pytest.mark.parametrize("operation, role, more, words", [
    ("fit thresholds", "promotion", {}, "which is a promotion example"),
    ("fit weights", "train", {}, "which is a promotion example"),
    ("evaluate frozen candidate", "promotion", {"subject": "c", "frozen": "f", "plan": "0"}, "came after its results"),
    ("evaluate frozen candidate", "promotion", {"subject": "b", "frozen": "f", "plan": "1"}, "untouched promotion"),
])
def test_a_promotion_test_that_was_touched_is_refused(tmp_path, operation, role, more, words):
    ledger = evaluated(tmp_path / "a")
    try:
        ledger.use(operation, role, ["q"], **more)
    except EvidenceError:
        assert role == "promotion" and operation == "fit thresholds"
    with pytest.raises(EvidenceError, match=words):
        admit_audit(ledger.entries(), **ASKED)


def test_an_evaluation_of_fewer_examples_or_of_none_is_no_evidence(tmp_path):
    entries = evaluated(tmp_path / "a").entries()
    for change in ({"promotion": ["p", "q", "r"]}, {"promotion": ["z"]}):
        with pytest.raises(EvidenceError, match="does not hold the evaluation"):
            admit_audit(entries, **{**ASKED, **change})


def test_a_ledger_only_grows(tmp_path):
    """A changed, missing or moved line breaks the chain; a line that a kill cut off is written over."""
    ledger = evaluated(tmp_path / "a")
    entries = ledger.entries()
    for wrong in (entries[1:], entries[::-1], [{**entries[0], "ids": ["u"]}, entries[1]],
                  [{**entries[0], "allowed": False}]):
        with pytest.raises(EvidenceError, match="ledger entry"):
            checked(wrong)
    with open(ledger.path, "ab") as file:
        file.write(b'{"before": "12')
    assert ledger.entries() == entries
    ledger.use("choose settings", "development", ["d"])
    assert [e["role"] for e in ledger.entries()] == ["train", "promotion", "development"]


# --- plans and slices ------------------------------------------------------------------------------------------------

def cases(outputs, golds="aabbaabb", **features):
    return [{"case": f"c{i}", "gold": g, "predicted": p, "features": {"language": g, "length": i, **features}}
            for i, (g, p) in enumerate(zip(golds, outputs))]


def plan(**more):
    return EvaluationPlan("single_label", {"labels": ["a", "b"]}, **more)


def of(floor, least=2, critical=True, **where):
    return SlicePlan("s", "languages differ", **{"feature": "language", "equals": "b", **where}, floor=floor,
                     critical=critical, least=least)


def test_a_critical_slice_holds_whatever_the_average_says():
    outputs = cases("aabaaaba")  # 6 of 8 right; of b 2 of 4
    right = {"gates": {"accuracy.value": "0.75"}}
    assert evaluate_cases(plan(**right, slices=(of("0.5"),)), outputs)["passed"]
    failed = evaluate_cases(plan(**right, slices=(of("0.51"),)), outputs)
    assert not failed["passed"] and failed["gates"][0]["passed"] and failed["slices"][0]["verdict"] == "failed"
    few = evaluate_cases(plan(**right, slices=(of("0", least=5),)), outputs)
    assert few["slices"][0]["verdict"] == "too few" and not few["passed"]
    told = evaluate_cases(plan(**right, slices=(of("1", critical=False),)), outputs)
    assert told["passed"] and told["slices"][0]["right"]["interval"][0] > 0
    part = evaluate_cases(plan(slices=(of("0", feature="length", equals=None, low=1, high=3),)), outputs)
    assert part["slices"][0]["n"] == 2


def test_gates_are_least_or_greatest_values_exactly():
    outputs = cases("aabaaaba")
    for name, wanted, passed in (("accuracy.value", "0.75", True), ("accuracy.value", "0.7500001", False),
                                 ("-cost.mean", "0.25", True), ("-cost.mean", "0.2499", False)):
        assert evaluate_cases(plan(gates={name: wanted}), outputs)["passed"] is passed
    with pytest.raises(EvidenceError, match="gate 'accuracy'"):
        evaluate_cases(plan(gates={"accuracy": "1"}), outputs)
    assert not evaluate_cases(plan(), [])["passed"]


def test_a_plan_has_a_digest_and_refuses_what_it_does_not_know():
    one = plan(slices=(of("0.5"),))
    assert plan_from_json(json.loads(json.dumps(one.to_json()))).digest == one.digest and one.can_fail
    for value, words in (({"kind": "votes"}, "plan.kind"), ({"kind": "fields", "extra": 1}, "plan: expected"),
                         ({"kind": "fields", "slices": [{"name": "x"}]}, r"plan.slices\[0\]"),
                         ({"kind": "fields", "gates": {"a": "much"}}, "plan.gates.a")):
        with pytest.raises(EvidenceError, match=words):
            plan_from_json(value)
    with pytest.raises(EvidenceError, match="expected a floor"):
        SlicePlan("s", "h", "f", critical=True)
    with pytest.raises(EvidenceError, match="stands twice"):
        evaluate_cases(one, cases("a") * 2)


# --- candidate against parent ----------------------------------------------------------------------------------------

def test_transitions_are_matched_by_stable_case_id():
    parent, candidate = cases("abbaabba"), list(reversed(cases("aabaaabb")))
    found = paired(plan(), candidate, parent)
    assert found["transitions"] == dict(zip(TRANSITIONS, (4, 0, 3, 1, 0)))
    assert found["cases"]["c3"] == ["both wrong, same failure", 0.0] and found["cases"]["c5"] == ["wrong to right", 1.0]
    assert found["n"] == 8 and found["mean"] == 3 / 8
    back = paired(plan(), parent, candidate)
    assert back["transitions"][TRANSITIONS[1]] == 3 and back["mean"] == -3 / 8
    other = paired(plan(), cases([None, "a"], "bb"), cases("aa", "bb"))
    assert other["transitions"][TRANSITIONS[4]] == 1


def test_outputs_of_other_cases_or_under_other_gold_do_not_compare():
    a = cases("aabb")
    with pytest.raises(EvidenceError, match="no output of the parent"):
        paired(plan(), a, a[:3])
    with pytest.raises(EvidenceError, match="no output of the candidate"):
        paired(plan(), a[:3], a)
    with pytest.raises(EvidenceError, match="gold differs"):
        paired(plan(), a, [{**a[0], "gold": "b"}, *a[1:]])


def test_every_kind_has_outcomes_with_a_failure_class():
    from dx_labels.evidence.kinds import outcome
    span = {"settings": {"scheme": "IOB2", "repair": "drop"}}
    for kind, case, settings, wanted in (
            ("multilabel", {"gold": ["a"], "predicted": ["b"]}, {}, ("missed and spurious", 0.0)),
            ("regression", {"gold": 1.0, "predicted": 1.5}, {"tolerance": 0.1}, ("too high", -0.5)),
            ("entities", {"gold": ["B-A"], "predicted": ["B-B"]}, span["settings"], ("type", 0.0)),
            ("answers", {"gold": ["x"], "predicted": ""}, {}, ("no answer", 0.0)),
            ("answers", {"gold": [], "predicted": "x"}, {}, ("answered the unanswerable", 0.0)),
            ("retrieval", {"relevant": {"a": 1.0}, "ranked": ["b", "a"]}, {"cuts": [2]}, ("not first", 0.5)),
            ("single_label", {"gold": "a", "predicted": None}, {}, ("no answer", 0.0)),
            ("fields", {"page": "p", "field": "f", "gold": [[[[1, 0, 2]]]], "predicted": [[[1, 0, 1]]],
                        "confidences": [0.5], "scored": True}, {}, ("boundary", 0.0))):
        assert outcome(kind, case, settings) == wanted
