"""dx export for Label Studio, and back; XFUND's files."""
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tiny_project as tiny
from dx_labels.below import document_from_json
from dx_labels.command import main
from dx_labels.exporting import label_config, page_results, page_tasks
from dx_labels.labels import label_document
from dx_labels.schema import schema_from_json
from dx_labels.sources import SourceError, read_source
from dx_labels.sources.label_studio import chains, regions

SCHEMA = schema_from_json({"fields": [{"name": "company"}, {"name": "id", "type": "code"},
                                      {"name": "day", "type": "date"}, {"name": "item", "repeated": True}]})


def two_pages():
    words = [{"text": t, "box": [10 + 60 * i, 10.5, 60 + 60 * i, 20], "page": p}
             for p, line in enumerate((["ACME", "LTD", "No:123", "", "tea", "tea cup"], ["01.02.2024", "tea"]))
             for i, t in enumerate(line)]
    return document_from_json({"id": "d", "pages": [[400, 80], [333, 77]], "words": words})


VALUES = {"company": "ACME LTD", "id": {"value": "123", "spans": [[2, 3, 6]]}, "day": "01.02.2024",
          "item": [{"value": "tea", "words": [4]}, {"value": "tea cup", "words": [5]},
                   {"value": "tea", "words": [1], "page": 1}]}


def there_and_back(tmp_path, documents):
    """What read_source makes of the tasks of (document, labels)."""
    tasks = [task for document, labels in documents for task in page_tasks(document, labels)]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    return read_source("label-studio", tmp_path / "tasks.json", SCHEMA)


def test_what_is_exported_comes_back(tmp_path):
    """Ids, pages, words, boxes and values of a document of two pages; a word of which a value takes a part becomes two,
    and a word without text goes."""
    document = two_pages()
    out = there_and_back(tmp_path, [(document, label_document(document, SCHEMA, VALUES))])
    (back,) = out.documents
    assert out.problems == []
    assert [(p.id, p.document, p.number) for p in back.pages] == [("d/0", "d", 0), ("d/1", "d", 1)]
    assert [p.texts for p in back.pages] == [["ACME", "LTD", "No:", "123", "tea", "tea", "cup"], ["01.02.2024", "tea"]]
    assert [(p.width, p.height) for p in back.pages] == [(400, 80), (333, 77)]
    for old, new in ((0, 0), (1, 1), (4, 4)):
        assert back.pages[0].words[new].box == pytest.approx(document.pages[0].words[old].box, rel=1e-12)
    assert back.pages[0].words[3].box == pytest.approx((155, 10.5, 180, 20))
    assert out.values["d"] == {
        "company": [{"value": "ACME LTD", "words": [0, 1]}], "id": [{"value": "123", "words": [3]}],
        "item": [{"value": "tea", "words": [4]}, {"value": "tea cup", "words": [5, 6]},
                 {"value": "tea", "page": 1, "words": [1]}],
        "day": [{"value": "01.02.2024", "page": 1, "words": [0]}]}
    assert {x.state for x in label_document(back, SCHEMA, out.values["d"])} == {"value", "none"}


def test_turned_pages_and_readers_come_back(tmp_path):
    page = {"id": "t", "width": 40, "height": 300, "rotation": 90, "reader": {"name": "r", "version": "2"},
            "words": [{"text": "x", "box": [1, 2, 39.9, 300]}], "image": "t.png"}
    document = document_from_json(page)
    (task,) = page_tasks(document, [])
    assert task["data"]["ocr"] == "t.png" and "annotations" not in task
    (tmp_path / "a.json").write_text(json.dumps([{**task, "annotations": [{"result": page_results(
        document.pages[0], [("id", ((0, 0, 1),), 0.5)])}]}]))
    out = read_source("label-studio", tmp_path / "a.json")
    (back,) = out.documents[0].pages
    assert back.rotation == 90 and back.extra["reader"] == page["reader"] and out.notes == []
    assert out.values == {"t": {"id": [{"value": "x", "words": [0]}]}}


def test_relations_join_regions_of_one_label():
    def region(name, *labels):
        box = {"x": 0, "y": 0, "width": 1, "height": 1}
        return [{"id": name, "type": "labels", "value": {**box, "labels": list(labels)}},
                {"id": name, "type": "textarea", "value": {"text": [name]}}]

    def relation(a, b, direction="right"):
        return {"type": "relation", "from_id": a, "to_id": b, "direction": direction}

    results = [*region("a", "X"), *region("b", "X", "Y"), *region("c", "Y"), *region("d", "X"), relation("a", "b"),
               relation("c", "b", "left"), relation("d", "gone"), relation("d", "d")]
    found = [(label, [one["id"] for one in chain]) for label, chain in chains(results, regions(results))]
    assert found == [("X", ["a", "b"]), ("Y", ["b", "c"]), ("X", ["d"])]  # d is linked to itself and to nothing
    circle = [*region("a", "X"), *region("b", "X"), relation("b", "a"), relation("a", "b")]
    assert [[one["id"] for one in chain] for _, chain in chains(circle, regions(circle))] == [["a", "b"]]
    polygon = {"id": "p", "type": "polygonlabels", "original_width": 9, "original_height": 9,
               "value": {"points": [[10, 20], [30, 25], [5, 50]], "polygonlabels": ["X"]}}
    assert regions([polygon])[0]["box"] == (5, 20, 25, 30)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tiny.write(tmp_path_factory.mktemp("export") / "project")
    assert main(["train", folder, "--quiet"]) == 0
    return folder


def test_the_command_and_the_same_labels_again(trained, tmp_path, capsys):
    """A project through `dx export` and `dx import` has the labels it had."""
    tasks, config, back = tmp_path / "tasks.json", tmp_path / "config.xml", tmp_path / "back"
    assert main(["export", "label-studio", trained, "--out", str(tasks), "--config", str(config), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"tasks": 10, "labelled": 10, "problems": []} and "10 pages name no picture" in err
    names = [one.get("value") for one in ElementTree.parse(config).getroot().iter("Label")]
    assert names == ["company", "date", "total"]
    assert main(["import", "label-studio", str(tasks), "--to", str(back), "--schema", f"{trained}/schema.json"]) == 0
    assert main(["label", str(back), "--quiet"]) == 0
    first, second = ([json.loads(line) for line in Path(folder, "labels.jsonl").read_text().splitlines()[1:]]
                     for folder in (trained, back))
    assert len(first) == len(second) == 30
    for a, b in zip(first, second):
        assert (a["document"], a["field"]) == (b["document"], b["field"]) and a["runs"][0] == b["runs"][0]


def test_predictions_stand_beside_the_labels(trained, tmp_path, capsys):
    tasks = tmp_path / "tasks.json"
    assert main(["export", "label-studio", trained, "--out", str(tasks), "--predictions", "--quiet"]) == 0
    for task in json.loads(tasks.read_text()):
        (one,) = task["predictions"]
        labelled = [r for r in one["result"] if r["type"] == "labels"]
        assert one["score"] == min((r["score"] for r in labelled), default=1.0)
    assert main(["export", "label-studoi", trained, "--out", str(tasks)]) == 2
    assert "did you mean 'label-studio'" in capsys.readouterr().err
    assert main(["export", "label-studio", str(tmp_path), "--out", str(tasks), "--predictions"]) == 1


def test_names_are_quoted_in_the_configuration():
    schema = schema_from_json({"fields": [{"name": 'a "b" & <c>'}]})
    assert next(ElementTree.fromstring(label_config(schema)).iter("Label")).get("value") == 'a "b" & <c>'


# --- XFUND -----------------------------------------------------------------------------------------------------------

def form(name, **more):
    entities = [{"id": 0, "label": "QUESTION", "text": "姓名", "box": [5, 5, 40, 15], "linking": [[0, 1], [0, 9]],
                 "words": [{"text": "姓", "box": [5, 5, 20, 15]}, {"text": "名", "box": [20, 5, 40, 15]}]},
                {"id": 1, "label": "answer", "text": "Bo", "box": [50, 5, 80, 15], "linking": [[0, 1]], "words": []},
                {"id": 2, "label": "other", "text": " ", "box": [0, 0, 1, 1],
                 "words": [{"text": " ", "box": [0, 0, 1, 1]}]}]
    return {"id": name, "img": {"fname": f"{name}.jpg", "width": 100, "height": 50}, "document": entities, **more}


def test_xfund_as_published(tmp_path):
    whole = {"lang": "zh", "documents": [form("zh_0"), {"id": "zh_1"}, form("zh_2")]}
    (tmp_path / "zh.val.json").write_text(json.dumps(whole), encoding="utf-8")
    (tmp_path / "zz.json").write_text("[]")
    out = read_source("xfund", tmp_path)
    assert [d.id for d in out.documents] == ["zh_0", "zh_2"] and out.roles == ("header", "question", "answer")
    (page,) = out.documents[0].pages
    assert page.texts == ["姓", "名", "Bo"] and (page.width, page.height) == (100, 50)
    assert [(e["label"], e["words"]) for e in page.extra["entities"]] == [("question", [0, 1]), ("answer", [2]),
                                                                          ("other", [])]
    assert page.extra["links"] == [[0, 1]] and "1 links to entities that are not there" in out.notes[0]
    assert len(out.problems) == 2 and "document 1: KeyError" in out.problems[0] and "zz.json" in out.problems[1]
    assert [d.id for d in read_source("xfund", tmp_path / "zh.val.json").documents] == ["zh_0", "zh_2"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.json").write_text('{"documents": []}')
    with pytest.raises(SourceError, match="no document"):
        read_source("xfund", tmp_path / "empty")
