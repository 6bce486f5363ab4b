"""Readers of data sets and labelling tools; the cases lab-22, lab-23, lab-25, cli-01, cli-02."""
import gzip
import json

import pytest
from dx_labels.labels import label_document
from dx_labels.sources import FORMATS, SourceError, read_source
from dx_labels.sources.label_studio import regions

PAGE = {"id": "a", "width": 200, "height": 50, "words": [
    {"text": "ACME", "box": [5, 5, 40, 15], "line": 0}, {"text": "8.20", "box": [50, 5, 80, 15], "line": 0}]}


def write(path, *values, opened=open):
    with opened(path, "wt", encoding="utf-8") as file:
        for value in values:
            file.write((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) + "\n")
    return path


def test_pages_with_fields_of_their_own(tmp_path):
    path = write(tmp_path / "a.jsonl.gz", {**PAGE, "fields": {"shop": "ACME", "total": "8.20"}}, opened=gzip.open)
    out = read_source("pages", path)
    assert out.schema.names == ("shop", "total") and out.values == {"a": {"shop": "ACME", "total": "8.20"}}
    assert [d.id for d in out.documents] == ["a"] and out.problems == []


def test_a_broken_line_in_the_middle_is_named_and_the_rest_kept(tmp_path):
    path = write(tmp_path / "a.jsonl", PAGE, '{"id": "b", "width": NaN}', {**PAGE, "id": "c"})
    out = read_source("pages", path)
    assert [d.id for d in out.documents] == ["a", "c"] and len(out.problems) == 1 and ":2:" in out.problems[0]


def test_pages_of_one_document_are_joined(tmp_path):
    pages = [{**PAGE, "id": f"d/{i}", "document": "d", "number": i} for i in range(2)]
    out = read_source("pages", write(tmp_path / "a.jsonl", *pages, {**PAGE, "document": "e"}))
    assert [(d.id, len(d.pages)) for d in out.documents] == [("d", 2), ("e", 1)]


def test_sroie_and_deepform_know_their_fields(tmp_path):
    fields = {"company": "ACME", "total": "8.20", "date": "", "address": None}
    out = read_source("sroie", write(tmp_path / "a", {**PAGE, "fields": fields}))
    assert out.schema.names == ("company", "date", "address", "total")
    labels = label_document(out.documents[0], out.schema, out.values["a"])
    assert [label.state for label in labels] == ["value", "none", "none", "value"]
    words = [{"text": "ACME", "box": [5, 5, 40, 15], "page": 0}, {"text": "$8.20", "box": [5, 5, 40, 15], "page": 1}]
    document = {"id": "d", "width": 200, "height": 50, "pages": [[200, 50], [200, 50]], "words": words,
                "fields": {"advertiser": "ACME", "gross_amount": "8.20"}}
    out = read_source("deepform", write(tmp_path / "b", document))
    labels = label_document(out.documents[0], out.schema, out.values["d"])
    assert {(x.page, x.field) for x in labels if x.state == "value"} == {("d/0", "advertiser"), ("d/1", "gross_amount")}


def test_cord_gives_words_and_groups(tmp_path):
    page = {**PAGE, "labels": ["menu.nm", "menu.price"], "groups": [3, 3],
            "entities": [{"id": 0, "label": "menu.nm", "group": 3, "words": [0]},
                         {"id": 1, "label": "menu.price", "group": 3, "words": [1]},
                         {"id": 2, "label": "menu.unknown", "words": [1]}]}
    out = read_source("cord", write(tmp_path / "a", page))
    assert len(out.schema.names) == 30 and len(out.problems) == 1 and "menu.unknown" in out.problems[0]
    labels = [x for x in label_document(out.documents[0], out.schema, out.values["a"]) if x.value]
    assert [(x.field, x.how) for x in labels] == [("menu.nm", ("given words",)), ("menu.price", ("given words",))]


def test_invoice2data_leaves_constants_and_lists_out(tmp_path):
    fields = {"issuer": "x", "amount": 8.2, "date": "2018-03-12", "lines": [{}], "invoice_number": "ACME"}
    out = read_source("invoice2data", write(tmp_path / "a", {**PAGE, "fields": fields}))
    assert [(f.name, f.type) for f in out.schema.fields] == [("amount", "amount"), ("date", "date"),
                                                             ("invoice_number", "text")]
    assert len(out.notes) == 1 and "'lines'" in out.notes[0]


def test_sroie_as_published(tmp_path):
    (tmp_path / "box").mkdir(), (tmp_path / "key").mkdir()
    (tmp_path / "box" / "X1.txt").write_text("5,5,85,5,85,15,5,15,ACME, INC\n5,25,45,25,45,35,5,35,8.20\n")
    (tmp_path / "key" / "X1.json").write_text(json.dumps({"company": "ACME, INC", "total": "8.20"}))
    (tmp_path / "box" / "X2.txt").write_text("5,5,broken\n")
    out = read_source("sroie-folder", tmp_path)
    assert [d.id for d in out.documents] == ["X1"] and len(out.problems) == 1 and "X2.txt:1" in out.problems[0]
    page, = out.documents[0].pages
    assert page.texts == ["ACME,", "INC", "8.20"] and page.words[1].box[2] == 85
    assert [x.state for x in label_document(out.documents[0], out.schema, out.values["X1"])] == ["value", "none",
                                                                                                 "none",
                                                                                               "value"]


def test_funsd_as_published(tmp_path):
    form = [{"id": 0, "label": "question", "linking": [[0, 1]], "words": [{"text": "Name:", "box": [5, 5, 40, 15]}]},
            {"id": 1, "label": "answer", "linking": [[0, 1]], "words": [{"text": "Bo", "box": [50, 5, 80, 15]},
                                                                         {"text": " ", "box": [0, 0, 1, 1]}]}]
    (tmp_path / "f.json").write_text(json.dumps({"form": form}))
    (tmp_path / "g.json").write_text("{}")
    out = read_source("funsd-folder", tmp_path)
    extra = out.documents[0].pages[0].extra
    assert extra["links"] == [[0, 1]] and extra["entities"][1]["words"] == [1] and out.roles == ("header", "question",
                                                                                               "answer")
    assert len(out.problems) == 1 and "g.json" in out.problems[0]


def test_cord_as_published_and_donut(tmp_path):
    quad = {"x1": 5, "y1": 5, "x2": 40, "y2": 5, "x3": 40, "y3": 15, "x4": 5, "y4": 15}
    line = {"category": "menu.nm", "group_id": 3, "words": [{"text": "TEA", "quad": quad, "row_id": 1}]}
    (tmp_path / "c.json").write_text(json.dumps({"valid_line": [line],
                                                 "meta": {"image_size": {"width": 90, "height": 90}}}))
    out = read_source("cord-folder", tmp_path)
    assert out.values["c"] == {"menu.nm": [{"value": "TEA", "words": [0]}]} and out.documents[0].pages[0].width == 90
    (tmp_path / "metadata.jsonl").write_text("{}")
    with pytest.raises(SourceError, match="values without words"):
        read_source("cord-folder", tmp_path)


BOX = {"x": 10, "y": 10, "width": 30, "height": 10}
RESULTS = [{"id": "r1", "type": "rectanglelabels", "original_width": 200, "original_height": 100,
            "value": {**BOX, "rectanglelabels": ["Total"]}},
           {"id": "r1", "type": "choices", "value": {**BOX, "choices": ["printed"]}},
           {"id": "r1", "type": "textarea", "value": {**BOX, "text": ["8.20 EUR"]}}]


def test_lab_22_an_unknown_key_stops_the_import(tmp_path):
    record = {"transcription": "8.20", "points": [[0, 0], [9, 0], [9, 9], [0, 9]], "key_cls": "TOTAL"}
    path = write(tmp_path / "a", "img.png\t" + json.dumps([record]))
    with pytest.raises(SourceError, match="'key_cls'.*label"):
        read_source("paddle", path)
    record["label"] = record.pop("key_cls")
    out = read_source("paddle", write(tmp_path / "b", "img.png\t" + json.dumps([record])))
    assert out.schema.names == ("TOTAL",) and out.values["img.png"]["TOTAL"][0]["words"] == [0]


def test_lab_23_the_ocr_template_is_read_and_others_are_named(tmp_path):
    tasks = [{"id": 1, "data": {"ocr": "a.png"}, "annotations": [{"result": RESULTS}]},
             {"id": 2, "data": {"html": "x"}}]
    out = read_source("label-studio", write(tmp_path / "a.json", tasks))
    assert [d.id for d in out.documents] == ["1"] and out.documents[0].pages[0].texts == ["8.20", "EUR"]
    assert "accepted templates are" in out.problems[0] and "task 1" in out.problems[0]
    labels = label_document(out.documents[0], out.schema, out.values["1"])
    assert labels[0].state == "value" and out.documents[0].pages[0].words[0].box[:2] == (20.0, 10.0)


def test_lab_25_one_region_with_three_attributes():
    region, = regions(RESULTS)
    assert (region["labels"], region["choices"], region["text"]) == (["Total"], ["printed"], "8.20 EUR")


def test_formats_and_errors(tmp_path):
    with pytest.raises(SourceError, match="did you mean 'sroie'"):
        read_source("srioe", tmp_path)
    for name in ("sroie-folder", "funsd-folder", "cord-folder"):
        with pytest.raises(SourceError):
            read_source(name, tmp_path / "missing")
    assert all(text for _, text in FORMATS.values())
