"""Labels from values, contested words, windows' targets, the labels file; the alignment cases lab-01 to lab-20."""
import numpy as np
import pytest
from dx_labels.below import Document, Encoding, Page, Word, encode_page, page_windows, window_owners
from dx_labels.grounding import Rows
from dx_labels.labels import (Label, LabelError, label_document, labels_digest, read_labels, rows_of_spans, settle,
                              usable_documents, write_labels)
from dx_labels.schema import schema_from_json
from dx_labels.targets import field_rows, relation_rows, run_terms, tag_targets, window_targets
from pages_for_tests import document_of, page_of

SCHEMA = schema_from_json({"fields": [{"name": "shop"}, {"name": "day", "type": "date"},
                                      {"name": "total", "type": "amount"}]})
ITEMS = schema_from_json({"fields": [{"name": "item", "repeated": True},
                                     {"name": "price", "type": "amount", "repeated": True}]})


def tags(document, schema, values, places="all", encoding=None):
    page = document.pages[0]
    encoded = encode_page(page, encoding or Encoding())
    rows = Rows(page, encoded)
    labels = label_document(document, schema, values, encoding)
    found = field_rows(page, rows, labels, schema)
    return tag_targets(len(rows), found, places).tolist(), labels, found


def test_values_become_tags():
    document = document_of("ACME SHOP", "12/03/2018", "total 8.20")
    tag, labels, found = tags(document, SCHEMA, {"shop": "Acme Shop", "day": "2018-03-12", "total": "8.20"})
    assert tag == [1, 2, 3, 0, 5]
    assert [label.state for label in labels] == ["value"] * 3
    assert labels[0].runs == (((0, 0, 4), (1, 0, 4)),) and labels[0].how == ("case",)
    fields, places = run_terms(found, [False] * 3)
    assert fields.tolist() == [0, 1, 2] and places.tolist() == [[0, 0, 1], [1, 2, 2], [2, 4, 4]]


def test_a_total_printed_three_times_keeps_its_places():
    document = document_of("total 8.20", "cash 8.20", "8.20")
    tag, _, found = tags(document, SCHEMA, {"total": 8.2})
    assert tag == [0, 5, 0, 5, 5]
    assert tags(document, SCHEMA, {"total": "8.20"}, "unsure")[0] == [0, -1, 0, -1, -1]
    fields, places = run_terms(found, [False] * 3)
    assert fields.tolist() == [0, 1, 2] and places.tolist() == [[2, 1, 1], [2, 3, 3], [2, 4, 4]]
    with pytest.raises(ValueError, match="places"):
        tag_targets(3, [], "first")


def test_no_value_computed_and_absent():
    document = document_of("a 8.20 b 1.80")
    _, labels, found = tags(document, SCHEMA, {"total": "10.00"})
    assert [label.outcome for label in labels] == ["none", "none", "computed"]
    assert [label.state for label in labels] == ["none"] * 3 and run_terms(found, [False] * 3)[0].tolist() == [0, 1, 2]
    _, labels, _ = tags(document, SCHEMA, {"total": {"value": "99.00", "computed": True}})
    assert labels[2].state == "none"
    _, labels, found = tags(document, SCHEMA, {"total": "99.00"})
    assert labels[2].state == "excluded" and usable_documents(labels) == []
    assert run_terms(found, [False] * 3)[0].tolist() == [0, 1]


def test_two_fields_with_one_value_are_contested():
    two = schema_from_json({"fields": [{"name": "from", "type": "date"}, {"name": "to", "type": "date"}]})
    document = document_of("from 12/03/2018 to 12/03/2018")
    tag, labels, found = tags(document, two, {"from": "12/03/2018", "to": "12/03/2018"})
    assert tag == [0, -1, 0, -1] and [label.state for label in labels] == ["ignored"] * 2
    assert run_terms(found, [False, False])[0].tolist() == []
    assert usable_documents(labels) == ["p"]


def test_a_value_with_a_place_of_its_own_gives_way():
    # the shop stands alone and inside the address: the address keeps its one place
    assert settle([(0, ((0, 1), (4, 5))), (1, ((4, 8),))], [False, False]) == [(((0, 1),), False), (((4, 8),), False)]
    assert settle([(0, ((4, 5),)), (1, ((4, 8),))], [False, False]) == [(((4, 5),), True), (((4, 8),), True)]
    assert settle([(0, ()), (1, ((4, 8),))], [False, False]) == [((), False), (((4, 8),), False)]
    same = ((1, 1), (3, 3))
    assert settle([(0, same), (0, same)], [True, True]) == [(((1, 1),), False), (((3, 3),), False)]
    assert settle([(0, same)], [False]) == [(same, False)]


def test_repeated_fields():
    document = document_of("TEA 2.00", "TEA 2.00", "CAKE 4.50")
    tag, labels, found = tags(document, ITEMS, {"item": ["TEA", "TEA", "CAKE"], "price": ["2.00", "2.00", "4.50"]})
    assert tag == [1, 3, 1, 3, 1, 3] and len(labels) == 6
    fields, places = run_terms(found, [True, True])
    assert fields.tolist() == [0, 0, 0, 1, 1, 1] and places[:, 1].tolist() == [0, 2, 4, 1, 3, 5]
    with pytest.raises(LabelError, match="2 values, but the field is not repeated"):
        label_document(document, SCHEMA, {"shop": ["a", "b"]})


def test_scattered_values_are_ignored_and_not_scored():
    tag, labels, found = tags(document_of("Main Street 12 Tel 555", "Town 99999 Fax"), SCHEMA,
                              {"shop": "Main Street 12 Town 99999"})
    assert tag == [-1, -1, -1, 0, 0, -1, -1, 0] and labels[0].state == "ignored"
    assert run_terms(found, [False] * 3)[0].tolist() == [1, 2]


def test_errors_name_document_field_and_value():
    document = document_of("a b")
    strict = schema_from_json({"fields": [{"name": "shop", "nullable": False}]})
    for schema, values, words in [(SCHEMA, {"shpo": "a"}, "did you mean 'shop'"), (SCHEMA, {"shop": True}, "neither"),
                                  (strict, {}, "not nullable"),
                                  (SCHEMA, {"shop": {"valeu": "a"}}, "did you mean 'value'"),
                                  (SCHEMA, {"shop": {"value": "a", "words": [7]}}, "span")]:
        with pytest.raises(LabelError, match=words):
            label_document(document, schema, values)


def test_documents_of_several_pages():
    pages = tuple(page_of(*lines, id=f"d/{i}", document="d", number=i) for i, lines in
                  enumerate((["ACME", "8.20"], ["sheet 2", "8.20"], ["end"])))
    labels = label_document(Document("d", pages, {}), SCHEMA, {"shop": "ACME", "total": "8.20", "day": None})
    states = {(x.page, x.field): x.state for x in labels}
    assert states["d/0", "shop"] == states["d/0", "total"] == states["d/1", "total"] == "value"
    assert states["d/1", "shop"] == states["d/2", "total"] == states["d/2", "day"] == "none"
    labels = label_document(Document("d", pages, {}), SCHEMA, {"shop": "OTHER"})
    assert {x.state for x in labels if x.field == "shop"} == {"excluded"} and usable_documents(labels) == []
    assert label_document(Document("e", (), {}), SCHEMA, {}) == []


def test_the_file_gives_back_the_labels(tmp_path):
    document = document_of("ACME 8.20 8.20", id="Ünï")
    labels = label_document(document, SCHEMA, {"shop": "acme", "total": "8.20"})
    write_labels(tmp_path / "a", labels, SCHEMA)
    assert read_labels(tmp_path / "a", SCHEMA) == labels
    write_labels(tmp_path / "b", read_labels(tmp_path / "a"), SCHEMA)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert labels_digest(labels, SCHEMA) != labels_digest(labels[:-1], SCHEMA) != labels_digest(labels, ITEMS)
    with pytest.raises(LabelError, match="a:1: labels of the schema"):
        read_labels(tmp_path / "a", ITEMS)


@pytest.mark.parametrize("line, words", [
    (b'{"page": 1}', "b:2: the key 'document' is missing"), (b"x", "b:2: not JSON"), (b"\xff", "b:2: not UTF-8"),
    (b'{"page":"p","document":"p","field":"f","value":null,"outcome":"exactly","how":[],"runs":[]}', "b:2: outcome"),
    (b'{"page":"p","document":"p","field":"f","value":null,"outcome":"exact","how":[],"runs":[[[0,-1,2]]]}',
     "b:2: span"),
    (b'{"page":"p","document":"p","feild":"f"}', "did you mean 'field'")])
def test_a_broken_labels_file_is_named(tmp_path, line, words):
    write_labels(tmp_path / "b", [], SCHEMA)
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes() + line + b"\n")
    with pytest.raises(LabelError, match=words):
        read_labels(tmp_path / "b", SCHEMA)


def test_windows_share_their_rows_by_ownership():
    document = document_of(*[f"w{i} x{i}" for i in range(10)], "9.00")
    page = document.pages[0]
    encoded = encode_page(page)
    rows = Rows(page, encoded)
    found = field_rows(page, rows, label_document(document, SCHEMA, {"shop": "x5 w6 x6", "total": "9.00"}), SCHEMA)
    whole = tag_targets(len(rows), found)
    windows = page_windows(len(rows), 8)
    owner = window_owners(len(rows), windows)
    parts = window_targets(encoded, found, [False] * 3, 8, doc=1)
    assert len(parts) == len(windows) > 2 and [t.doc for _, t in parts] == [1] + [-1] * (len(parts) - 1)
    seen = np.zeros(len(rows), int)
    for k, ((begin, end), (window, targets)) in enumerate(zip(windows, parts)):
        mine = owner[begin:end] == k
        seen[begin:end] += mine
        assert len(window) == end - begin == len(targets.tag)
        assert (targets.tag[mine] == whole[begin:end][mine]).all() and (targets.tag[~mine] == -1).all()
        cut = any(a < end and begin <= b and (a < begin or b >= end) for a, b in [(11, 13)])
        assert (0 in targets.run_fields) != cut
        for term, first, last in targets.run_places.tolist():
            k = int(targets.run_fields[term])
            assert whole[begin + first] == 1 + 2 * k and last - first == (2 if k == 0 else 0)
    assert (seen == 1).all()


def test_roles_items_and_links():
    extra = {"entities": [{"id": 0, "label": "question", "words": [0, 1]},
                          {"id": 1, "label": "answer", "words": [2, 3]},
                          {"id": 2, "label": "other", "words": [4]}, {"id": 3, "label": "answer", "words": []}],
             "links": [[0, 1], [0, 3], [2, 2]]}
    page = page_of("Name of John Doe x", extra=extra)
    rows = Rows(page, encode_page(page))
    role, item, key_value, lost = relation_rows(page, rows, ("question", "answer"))
    assert role.tolist() == [1, 2, 3, 4, 0] and item.tolist() == [0, 0, 2, 2, 4]
    assert key_value.tolist() == [0, 1, 0, 0, 4] and lost == {"entities not one run": 0, "further partners": 0}
    grouped = page_of("Name of John Doe x", extra={**extra, "groups": [7, 7, 7, None, 8], "links": [[0, 1], [2, 1]]})
    _, item, key_value, lost = relation_rows(grouped, rows, ("question",))
    assert item.tolist() == [0, 0, 0, 3, 4] and key_value.tolist() == [0, 1, 0, 0, 4] and lost["further partners"] == 1
    parts = window_targets(encode_page(page), None, [], 3, relations=(role, item, key_value))
    assert all(t.tag is None for _, t in parts)
    assert all((t.key_value < 3).all() and (t.key_value >= -1).all() for _, t in parts)


def rows_and_page(*texts):
    page = Page("p", 1000, 40, [Word(t, (20 * i, 5, 20 * i + 15, 17)) for i, t in enumerate(texts)])
    return Rows(page, encode_page(page, Encoding(keep_file_order=True))), page


def test_lab_01_one_label_a_word_however_it_is_cut():
    rows, page = rows_and_page("그", "값")
    assert rows.word == [0, 1]
    two = schema_from_json({"fields": ["a", "b"]})
    tag, _, _ = tags(Document("p", (page,), {}), two, {"b": {"value": "그", "words": [0]}})
    assert tag == [3, 0]  # once, on its first word


def test_lab_02_long_runs_of_digits_are_one_row():
    rows, page = rows_and_page("pen", "0000000000000000", "cap")
    assert rows.word == [0, 1, 2]
    tag, _, _ = tags(Document("p", (page,), {}), SCHEMA, {"shop": {"value": "0000000000000000", "words": [1]}})
    assert tag == [0, 1, 0]


def test_lab_04_spans_give_back_the_words():
    words = ["Hallo", "7.0", "Brückenstr.", "№", "No:123"]
    rows, _ = rows_and_page(*words)
    for i, text in enumerate(words):
        assert "".join(t for t, w in zip(rows.texts, rows.word) if w == i) == text
    rows, page = rows_and_page(*words)
    assert [page.words[w].text[a:b] for w, a, b in rows.spans(0, len(rows) - 1)] == words


def test_lab_05_every_row_names_its_word():
    rows, _ = rows_and_page("This", "is", "fine")
    assert rows.word == [0, 1, 2]


@pytest.mark.parametrize("blank", ["\n", "", "\u200b", "\u00a0", "\t"])
def test_lab_07_a_blank_word_shifts_nothing(blank):
    page = Page("p", 1000, 40, [Word(t, (20 * i, 5, 20 * i + 15, 17))
                                for i, t in enumerate(["Ada", blank, "joined", "Norvik", "today"])])
    keep = Encoding(keep_file_order=True)
    tag, labels, _ = tags(Document("p", (page,), {}), SCHEMA, {"shop": {"value": "Norvik", "words": [3]}},
                          encoding=keep)
    assert tag == [0, 0, 0, 1, 0] and labels[0].runs == (((3, 0, 6),),)


def test_lab_08_targets_are_as_long_as_the_page():
    document = document_of("hi all")
    encoded = encode_page(document.pages[0])
    found = field_rows(document.pages[0], Rows(document.pages[0], encoded),
                       label_document(document, SCHEMA, {"shop": "hi all"}), SCHEMA)
    (window, targets), = window_targets(encoded, found, [False] * 3, 512)
    assert len(window) == len(targets.tag) == len(window.features) == len(window.box) == 2


def test_lab_16_misaligned_spans_are_listed_with_the_nearest_border():
    document = document_of("Hello from Norway")
    tag, labels, _ = tags(document, SCHEMA, {"shop": {"value": "Norwa", "spans": [[2, 0, 5]]}})
    assert labels[0].state == "ignored" and tag == [0, 0, -1]
    assert "misaligned" in labels[0].how[0] and "[2, 0, 6]" in labels[0].how[0]
    with pytest.raises(LabelError, match="span"):
        label_document(document_of("X"), SCHEMA, {"shop": {"value": "X", "spans": [[0, 0, 3]]}})


def test_lab_20_several_fields_inside_one_word():
    document = document_of("No:123/Date:01.02.2024 x")
    two = schema_from_json({"fields": [{"name": "id", "type": "code"}, {"name": "date", "type": "date"}]})
    values = {"id": {"value": "123", "spans": [[0, 3, 6]]}, "date": {"value": "01.02.2024", "spans": [[0, 12, 22]]}}
    tag, labels, _ = tags(document, two, values)
    page = document.pages[0]
    rows = Rows(page, encode_page(page))
    assert labels[1].state == "value" and rows.text(*[i for i, t in enumerate(tag) if t == 3][:1] * 2) == "01.02.2024"
    assert labels[1].runs == (((0, 12, 22),),)
    box = encode_page(page).box[tag.index(3)]
    assert box[0] > 5 and box[2] == page.words[0].box[2]  # the box is split in proportion
    _, problem = rows_of_spans(page, rows, [[0, 3, 6]])
    assert "nearest border is [0, 3, 12]" in problem  # the default does not cut at "/"
    fine = Encoding(cut="fine")
    tag, labels, _ = tags(document, two, values, encoding=fine)
    assert [label.state for label in labels] == ["value"] * 2
    assert [label.runs for label in labels] == [(((0, 3, 6),),), (((0, 12, 22),),)] and tag == [0, 1, 0, 0, 3, 0]
    x0, _, x1, _ = page.words[0].box
    assert encode_page(page, fine).box[1].tolist()[::2] == [x0 + (x1 - x0) * 3 / 22, x0 + (x1 - x0) * 6 / 22]


def test_a_field_that_nobody_looked_for_is_unknown():
    document = document_of("ACME", "8.20")
    strict = schema_from_json({"fields": [{"name": "shop", "nullable": False}, {"name": "total", "type": "amount"}]})
    labels = label_document(document, strict, {"total": "8.20"}, missing="not annotated")
    assert [(x.outcome, x.state) for x in labels] == [("not annotated", "unknown"), ("exact", "value")]
    labels = label_document(document, SCHEMA, {"total": None}, missing="not annotated")
    assert [x.state for x in labels] == ["unknown", "unknown", "none"] and usable_documents(labels) == ["p"]
    with pytest.raises(LabelError, match="not nullable"):
        label_document(document, strict, {"shop": None}, missing="not annotated")
    with pytest.raises(ValueError, match="missing = 'never'"):
        label_document(document, SCHEMA, {}, missing="never")


def test_labels_are_equal_for_equal_input_in_any_word_order():
    lines = ["ACME SHOP", "12/03/2018", "total 8.20"]
    page = page_of(*lines)
    back = Page("p", page.width, page.height, page.words[::-1])
    values = {"shop": "acme shop", "total": "8.20"}
    a = label_document(Document("p", (page,), {}), SCHEMA, values)
    b = label_document(Document("p", (back,), {}), SCHEMA, values)
    n = len(page.words) - 1
    assert [x.runs for x in a] == [tuple(tuple((n - w, s, e) for w, s, e in r) for r in x.runs) for x in b]
    assert isinstance(a[0], Label)
