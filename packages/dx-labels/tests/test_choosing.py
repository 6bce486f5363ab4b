"""What to label next, and the learning curve."""
import json

import dx_labels
import pytest
import tiny_project
from dx_labels import choosing, command
from dx_labels.choosing import Candidate, next_documents, ranked, verdict


def candidate(name, uncertainty=0.0, disagreement=None):
    return Candidate(name, False, uncertainty, disagreement, 0.0)


def test_copies_of_one_form_are_not_all_first():
    same = {"invoice", "total"}
    other = (candidate("c", 0.1), {"letter", "dear"})
    found = ranked([(candidate("a", 0.3), same), (candidate("b", 0.3), same), other], set(), 3)
    assert [c.document for c in found] == ["a", "c", "b"] and [c.novelty for c in found] == [1.0, 1.0, 0.0]


def test_ties_go_by_the_ids_bytes_and_known_words_are_not_new():
    found = ranked([(candidate("ä"), {"x"}), (candidate("b"), {"x"})], {"x"}, 5)
    assert [c.document for c in found] == ["b", "ä"] and {c.score for c in found} == {0.0}
    assert ranked([(candidate("a"), set())], set(), 0) == []


def pages(count, unlabelled):
    made = [tiny_project.page(n) for n in range(count)]
    for page in made[:unlabelled]:
        del page["fields"]
    return made


def test_without_a_model_new_words_decide(tmp_path):
    made = pages(6, 2)
    made[1]["words"][0]["text"] = "Unheard"
    project = dx_labels.Project(tiny_project.write(tmp_path / "p", pages=made))
    found = next_documents(project)
    assert [(c.document, c.labelled, c.uncertainty) for c in found] == [("p001", False, None), ("p000", False, None)]
    assert found[0].novelty > found[1].novelty and next_documents(project, 1) == found[:1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choosing") / "p"
    project = dx_labels.Project(tiny_project.write(folder, pages=pages(14, 2)))
    dx_labels.label_project(project, tell=lambda text: None)
    dx_labels.train_project(project, tell=lambda text: None, progress=False)
    return project


def test_with_a_model_its_doubts_and_disputes_decide(trained, capfd):
    found = next_documents(trained, 20)
    assert {"p000", "p001"} <= {c.document for c in found}
    for one in found:
        assert 0 <= one.uncertainty <= 1 and set(one.fields) == {"company", "date", "total"}
        assert one.labelled == (one.disagreement is not None) and (one.disagreement is None or one.disagreement > 0)
    extra = trained.folder.parent / "extra.jsonl"
    extra.write_text(json.dumps({**tiny_project.page(3), "id": "fresh"}) + "\n{broken\n")
    assert command.main(["next", str(trained.folder), "--from", str(extra), "--json", "--count", "99"]) == 1
    out, err = capfd.readouterr()
    assert "fresh" in {json.loads(line)["document"] for line in out.splitlines()} and "extra.jsonl:2" in err
    assert command.main(["next", str(trained.folder)]) == 0
    assert capfd.readouterr().out.count("\n") == len(found)


def test_the_curve_trains_on_one_half_and_scores_on_the_other(tmp_path, capfd):
    settings = {**tiny_project.SETTINGS, "held_out": "0.1", "development": "0.1"}
    folder = tiny_project.write(tmp_path / "p", 24, settings=settings)
    dx_labels.label_project(dx_labels.Project(folder), tell=lambda text: None)
    assert command.main(["curve", folder, "--points", "2", "--json", "--quiet"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert [r["documents"] for r in answer["rows"]] == [5, 10] and answer["tested_on"] == 10
    assert all(0 <= r["correct"]["k"] <= r["correct"]["n"] == 30 for r in answer["rows"])
    assert command.main(["curve", folder, "--points", "4"]) == 1
    assert "expected at least 64 documents" in capfd.readouterr().err


@pytest.mark.parametrize("gained, lost, expected", [
    (20, 2, "likely to help"), (3, 2, "no clear gain"), (0, 0, "no clear gain"), (2, 20, "got worse")])
def test_the_verdict_needs_more_than_chance(gained, lost, expected):
    assert expected in verdict([{"documents": 10}, {"documents": 20}], gained, lost)


def test_numbers_are_no_new_words():
    words = [{"text": t, "box": [0, 0, 1, 1]} for t in ("12.50", "Total", "–", "A٣")]
    page = {"id": "a", "width": 9, "height": 9, "words": words}
    assert choosing.words_of(dx_labels.document_from_json(page)) == {"TOTAL"}
