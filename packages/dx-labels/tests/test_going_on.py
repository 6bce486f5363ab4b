"""Going on from a model with new fields, pages of another reader, labels of every word; the cases io-26, lab-19, tra-11
and tra-13."""
import json
from pathlib import Path

import pytest
import tiny_project as tiny
from dx_labels.below import DocExtractConfig, document_from_json
from dx_labels.command import main
from dx_labels.examples import training_examples
from dx_labels.job import start_from
from dx_labels.labels import read_labels
from dx_labels.provenance import ReaderWatch, reader_warnings, readers_of
from dx_labels.schema import read_schema

ONE, TWO = {"name": "pdfium", "version": "1.0"}, {"name": "pdfium", "version": "1.1"}


def read_by(reader, numbers, **more):
    return [tiny.page(n, reader=reader, **more) for n in numbers]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.write(tmp_path_factory.mktemp("old") / "project", pages=read_by(ONE, range(10)))
    assert main(["train", folder, "--quiet"]) == 0
    return folder


def pages_file(path, *pages):
    path.write_text("".join(json.dumps(p) + "\n" for p in pages), encoding="utf-8")
    return str(path)


# --- readers ---------------------------------------------------------------------------------------------------------

def test_io_26_extraction_warns_of_pages_that_another_version_read(trained, tmp_path, capsys):
    assert json.loads(Path(trained, "scores.json").read_text())["readers"] == {"pdfium 1.0": 10}
    same = pages_file(tmp_path / "same.jsonl", *read_by(ONE, (20, 21)))
    other = pages_file(tmp_path / "other.jsonl", *read_by(TWO, (22, 23)), *read_by(ONE, (24,)), tiny.page(25))
    assert main(["extract", trained, same, "--json"]) == 0
    assert "warning" not in capsys.readouterr().err
    assert main(["extract", trained, other, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 4 and err.count("warning") == 1  # said once, and the pages are read all the same
    assert "'p022' was read by pdfium 1.1, but the model was trained on pages read by pdfium 1.0" in err


def test_io_26_training_warns_of_several_readers_and_of_another_than_before(trained, tmp_path, capsys):
    folder = tiny.write(tmp_path / "p", pages=[*read_by(ONE, range(5)), *read_by(TWO, range(5, 10))],
                        settings={**tiny.SETTINGS, "train": {"steps": 1, "batch": 2}})
    assert main(["train", folder, "--from", trained, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "pdfium 1.0 (5 pages), pdfium 1.1 (5 pages)" in err
    assert "read by pdfium 1.1, but the model to go on from was trained on pages read by pdfium 1.0" in err
    assert len(json.loads(out)["warnings"]) == 2 and "pdfium 1.1" in Path(folder, "report.html").read_text()


def test_pages_that_name_no_reader_say_nothing():
    documents = [document_from_json(tiny.page(1)), document_from_json(tiny.page(2, reader="x")),
                 document_from_json(tiny.page(3, reader={"name": "r"}))]
    assert readers_of(documents) == {"r": 1} and reader_warnings({}) == reader_warnings({"r": 1}) == []
    assert ReaderWatch(()).warnings(documents[2]) == [] and ReaderWatch(("r",)).warnings(documents[2]) == []


# --- new fields ------------------------------------------------------------------------------------------------------

def with_iban(number):
    """A page with an IBAN, the one field that is labelled."""
    one = tiny.page(number)
    text = f"DE{10 + number}500105175407"
    one["words"] += [{"text": "IBAN", "box": [10, 170, 60, 182], "line": 9},
                     {"text": text, "box": [70, 170, 190, 182], "line": 9}]
    return {**one, "fields": {"iban": text}}


def test_tra_13_old_fields_are_not_annotated_and_shown_before_and_after(trained, tmp_path, capsys):
    """20 new pages on which only the new field is labelled: the old ones are no O there, and the pages that the old
    project held out tell what became of them."""
    schema = {"fields": [*tiny.SCHEMA["fields"], {"name": "iban", "type": "code"}]}
    folder = tiny.write(tmp_path / "new", pages=[with_iban(n) for n in range(30, 50)], schema=schema, settings={
        **tiny.SETTINGS, "missing": "not annotated", "train": {"steps": 3, "batch": 2}})
    assert main(["train", folder, "--from", trained, "--json", "--quiet"]) == 0
    answer = json.loads(capsys.readouterr().out)
    for name in ("company", "date", "total"):
        assert answer["grounding"][name] == {"not annotated": 20}
    assert answer["grounding"]["iban"] == {"exact": 20}
    assert {name: s["correct"]["n"] for name, s in answer["scores"]["fields"].items()} == {
        "company": 0, "date": 0, "total": 0, "iban": 5}
    old = answer["continued"]
    assert old["documents"] == 2 and old["fields"] == ["company", "date", "total"]
    before = json.loads(Path(trained, "scores.json").read_text())["scores"]["fields"]
    assert old["before"]["fields"] == before and all(s["correct"]["n"] == 2 for s in old["after"]["fields"].values())
    html = Path(folder, "report.html").read_text(encoding="utf-8")
    assert "Old pages, before and after" in html and "not annotated" in html


def test_tra_13_no_row_is_taught_to_be_outside_of_an_unlabelled_field(trained, tmp_path):
    schema = {"fields": [*tiny.SCHEMA["fields"], {"name": "iban", "type": "code"}]}
    folder = tiny.write(tmp_path / "new", pages=[with_iban(n) for n in range(4)], schema=schema,
                        settings={"missing": "not annotated"})
    assert main(["label", folder, "--quiet"]) == 0
    schema = read_schema(Path(folder, "schema.json"))
    labels = read_labels(Path(folder, "labels.jsonl"), schema)
    config = DocExtractConfig(fields=schema.names)
    examples = training_examples([document_from_json(with_iban(n)) for n in range(4)], labels, schema, config)
    assert len(examples) == 4
    for one in examples:
        assert sorted(set(one.targets.tag.tolist())) == [-1, 7] and one.targets.run_fields.tolist() == [3]
        assert all(0 not in v[1].tag for v in one.variants)


def test_a_start_without_a_project_has_no_pages_of_its_own(trained):
    assert start_from(Path(trained, "model")).documents == () and len(start_from(trained).documents) == 2


# --- words, curve ----------------------------------------------------------------------------------------------------

def test_lab_19_extract_lists_every_word(trained, tmp_path, capsys):
    page = tiny.page(3)
    path = pages_file(tmp_path / "new.jsonl", page)
    assert main(["extract", trained, path, "--words", "--json"]) == 0
    (words,) = json.loads(capsys.readouterr().out)["words"]
    assert [(w["word"], w["text"], w["box"]) for w in words if "start" not in w] == [
        (i, w["text"], w["box"]) for i, w in enumerate(page["words"])]
    assert all(w["label"] == "O" or w["label"][:2] in ("B-", "I-") for w in words)
    assert all(0 <= w["score"] <= 1 for w in words)
    assert main(["extract", trained, path, "--words", "--quiet"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[6] for line in lines] == [w["text"] for w in words] and {len(line) for line in lines} == {7}


def test_tra_11_a_command_prints_the_curve_the_same_every_time(tmp_path, capsys):
    """5 and 10 of the user's own documents, each with its interval."""
    folder = tiny.write(tmp_path / "p", 24, settings={**tiny.SETTINGS, "held_out": "0.1", "development": "0.1"})
    assert main(["label", folder, "--quiet"]) == 0
    texts = []
    for threads in ("1", "2"):
        capsys.readouterr()
        assert main(["curve", folder, "--points", "2", "--quiet", "--threads", threads]) == 0
        texts.append(capsys.readouterr().out)
    lines = texts[0].splitlines()
    assert texts[0] == texts[1] and [line.split()[0] for line in lines[:2]] == ["5", "10"]
    assert all("of 30 fields right (95 %: 0." in line for line in lines[:2]) and "from 5 to 10 documents" in lines[2]
