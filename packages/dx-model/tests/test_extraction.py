"""Extraction: values, confidences, windows, relations and documents, on logits that a test plants; bits on a model."""
import json

import dx_model as m
import numpy as np
import pytest
from dx_model.docextract import DocExtract, DocExtractConfig, Outputs, extract_document, extract_page

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "char_dim": 4,
         "char_channels": 8, "position_buckets": 16, "pair_hidden": 8, "relation_size": 4}
CONFIG = DocExtractConfig(fields=("total", "date", "item"), repeated=("item",), roles=("question", "answer"),
                          doc_types=("invoice", "receipt"), max_words=64, **SIZES)


class Planted:
    """A model whose logits a test says: tags, roles: dict text → (tag name, logit); pointers: dict text → text."""

    def __init__(self, config, page, tags=(), roles=(), item=(), key_value=(), doc=0):
        self.config, self.doc = config, doc
        self.texts = [w.text for w in page.words]
        self.tags, self.roles, self.item, self.key_value = map(dict, (tags, roles, item, key_value))
        self.calls = 0

    def text(self, window, row):
        return self.texts[window.word[row]][window.start[row]:window.end[row]]

    def logits(self, window, plan, names):
        out = np.zeros((len(window), len(names)), np.float32)
        out[:, 0] = 8
        for row in range(len(window)):
            for name, logit in plan.get(self.text(window, row), ()):
                out[row, names.index(name)] = logit
        return out

    def pointers(self, window, plan):
        out = np.eye(len(window), dtype=np.float32)
        rows = {self.text(window, row): row for row in range(len(window))}
        for source, target in plan.items():
            if source in rows and target in rows:
                out[rows[source], rows[target]] = 9
        return out

    def forward(self, window, heads):
        self.calls += 1
        roles = ["O"] + [f"{b}-{name}" for name in self.config.roles for b in "BI"]
        doc = np.zeros(self.config.num_doc_types, np.float32)
        doc[self.doc] = 5
        return Outputs(self.logits(window, self.tags, self.config.tag_names()), self.logits(window, self.roles, roles),
                       doc if "doc" in heads else None, self.pointers(window, self.item),
                       self.pointers(window, self.key_value))


def page_of(texts, id="p", columns=8, **more):
    """Words on a grid, in reading order."""
    words = [m.Word(t, (60 * (i % columns), 20 * (i // columns), 60 * (i % columns) + 50, 20 * (i // columns) + 15))
             for i, t in enumerate(texts)]
    return m.Page(id, 60 * columns, 20 * (len(texts) // columns + 1), words, **more)


def real_model(config=CONFIG, seed=5):
    """A model whose every tensor is random, so that every part of it moves the result."""
    model = DocExtract.initial(config, seed)
    rng = np.random.default_rng(seed)
    for name, view in model.parameters.items():
        if name.endswith(("proj.weight", "fc2.weight")):
            view[...] = rng.standard_normal(view.shape) * 0.3
    model.repack()
    return model


def test_values_words_and_confidences():
    page = page_of(["Total", "RM", "12.00", "Date:1/2/2024", "a", "b"])
    model = Planted(CONFIG, page, {"RM": [("B-total", 12)], "12.00": [("I-total", 12)], "1/2/2024": [("B-date", 11)],
                                   "a": [("B-item", 12)], "b": [("B-item", 12)]})
    result = extract_page(model, page)
    total, date, item = (result.fields[name] for name in CONFIG.fields)
    assert (total.value, date.value, [v.text for v in item.values]) == ("RM 12.00", "1/2/2024", ["a", "b"])
    assert [(p.word, p.start, p.end) for p in total.values[0].parts] == [(1, 0, 2), (2, 0, 5)]
    assert total.values[0].parts[1].box == page.words[2].box
    (part,) = date.values[0].parts
    assert (part.word, part.start, part.end) == (3, 5, 13) and page.words[3].text[5:13] == "1/2/2024"
    x0, y0, x1, y1 = page.words[3].box
    assert part.box == (x0 + (x1 - x0) * 5 / 13, y0, x1, y1)
    assert 0.9 < total.confidence < 1 and total.absent < 0.02 and item.absent < 0.001
    assert result.windows == 1 and result.exact and result.doc_type.name == "invoice"
    assert result.entities is result.pairs is result.groups is None


def test_confidences_are_the_exact_probabilities_of_the_page_model():
    """Two words, one field: the four legal taggings by hand."""
    config = DocExtractConfig(fields=("f",), **SIZES)
    page = page_of(["a", "b"])
    model = Planted(config, page, {"a": [("O", 0), ("B-f", 1.0), ("I-f", -0.5)],
                                   "b": [("O", 0), ("B-f", 0.25), ("I-f", 0.5)]})
    o = np.exp([0.0, 0.0])
    b, i = np.exp([1.0, 0.25]), np.exp([-0.5, 0.5])
    mass = {None: o[0] * o[1], (0, 0): b[0] * o[1], (1, 1): o[0] * b[1], (0, 1): b[0] * i[1]}
    total = sum(mass.values())
    result = extract_page(model, page).fields["f"]
    assert result.values[0].rows == (0, 1)
    assert abs(result.confidence - mass[0, 1] / total) < 1e-7 and abs(result.absent - mass[None] / total) < 1e-7
    assert [v.rows for v in result.alternatives] == [(0, 0), (1, 1)]
    for value in result.alternatives:
        assert abs(value.confidence - mass[value.rows] / total) < 1e-7


def test_no_value_has_a_confidence_too():
    page = page_of(["a", "b"])
    field = extract_page(Planted(CONFIG, page), page).fields["total"]
    assert field.value is None and field.confidence == field.absent > 0.99
    field = extract_page(Planted(CONFIG, page, {"a": [("B-total", 8.5)]}), page, alternatives=0).fields["total"]
    assert field.value == "a" and field.alternatives == ()


def test_votes_add_up_places_with_one_text():
    """Three equal places of 5.00 outvote one 7.00, which is the single most probable run."""
    page = page_of(["5.00", "x", "5.00", "y", "5.00", "z", "7.00"])
    model = Planted(CONFIG, page, {"5.00": [("B-total", 10)], "7.00": [("B-total", 10.5)]})
    plain, voted = (extract_page(model, page, votes=v).fields["total"] for v in (False, True))
    assert plain.value == "7.00" and voted.value == "5.00"
    fives = [v for v in (*plain.alternatives,) if v.text == "5.00"]
    assert len(fives) == 3 and abs(voted.confidence - sum(v.confidence for v in fives)) < 1e-12
    assert voted.values[0].rows == (0, 0) and [v.text for v in voted.alternatives] == ["7.00", "5.00", "5.00"]
    unsure = Planted(CONFIG, page, {"5.00": [("B-total", 5)], "7.00": [("B-total", 5.5)]})
    assert extract_page(unsure, page, votes=True).fields["total"].value is None


def test_votes_keep_words_to_one_field():
    page = page_of(["5.00", "5.00", "x"])
    model = Planted(CONFIG, page, {"5.00": [("B-total", 11), ("B-date", 10.9)], "x": [("B-date", 7)]})
    fields = extract_page(model, page, votes=True).fields
    assert fields["total"].value == fields["date"].value == "5.00"
    assert fields["total"].values[0].rows != fields["date"].values[0].rows


def test_a_word_beyond_the_first_window_is_read():
    """Case mod-05."""
    config = DocExtractConfig(fields=("bank",), doc_types=("a", "b"), **SIZES)
    page = page_of([f"w{i}" if i != 850 else "IBAN" for i in range(900)])
    model = Planted(config, page, {"IBAN": [("B-bank", 12)], "w449": [("B-bank", 8)]}, doc=1)
    result = extract_page(model, page, relations=True)
    assert result.fields["bank"].value == "IBAN" and result.windows == model.calls == 3
    assert result.fields["bank"].values[0].parts[0].word == 850 and result.doc_type.name == "b"
    assert result.to_json()["windows"] == 3


def test_every_row_comes_from_the_window_that_owns_it():
    config = DocExtractConfig(fields=("f",), max_words=8, **SIZES)
    page, model = page_of([f"w{i}" for i in range(30)]), real_model(config)
    encoded = m.encode_page(page, config.encoding())
    merged = m.docextract.page_logits(model, encoded, ("tag", "pointer"))
    windows = m.page_windows(30, 8)
    owner = m.window_owners(30, windows)
    assert merged.windows == len(windows) > 3
    for row in range(30):
        begin, end = windows[owner[row]]
        alone = model.forward(encoded.window(begin, end), ("tag", "pointer"))
        assert merged.tag[row].tobytes() == alone.tag[row - begin].tobytes()
        assert merged.item[row] == begin + np.argmax(alone.item[row - begin])
        assert 0 < merged.key_value_p[row] <= 1


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_pages_of_any_size(count):
    config = DocExtractConfig(fields=("f", "g"), repeated=("g",), roles=("q",), doc_types=("a",), **SIZES)
    result = extract_page(real_model(config), page_of([f"w{i}" for i in range(count)]), relations=True)
    if count == 0:
        assert result.fields["f"].confidence == 1 and result.doc_type is None and result.entities == ()
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["id"] == "p"


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_turned_page_has_the_same_fields(rotation):
    """Case io-20: the same four words, once upright and turned; boxes come back in the page's own units."""
    words = [("Total:", (10, 10, 60, 20)), ("Date:2024-01-02", (10, 40, 90, 50)), ("12.00", (100, 10, 140, 20)),
             ("RM", (70, 10, 90, 20))]
    width, height = 200.0, 100.0

    def turned(x0, y0, x1, y1):
        return {0: (x0, y0, x1, y1), 90: (height - y1, x0, height - y0, x1),
                180: (width - x1, height - y1, width - x0, height - y0),
                270: (y0, width - x1, y1, width - x0)}[rotation]

    size = (width, height) if rotation % 180 == 0 else (height, width)
    page = m.Page("p", *size, [m.Word(t, turned(*map(float, b))) for t, b in words], rotation)
    model = Planted(CONFIG, page, {"RM": [("B-total", 12)], "12.00": [("I-total", 12)], "2024-01-02": [("B-date", 12)]})
    fields = extract_page(model, page).fields
    assert fields["total"].value == "RM 12.00" and fields["date"].value == "2024-01-02"
    assert [p.box for p in fields["total"].values[0].parts] == [page.words[3].box, page.words[2].box]
    start = 10 + 80 * 5 / 15
    np.testing.assert_allclose(fields["date"].values[0].parts[0].box, turned(start, 40, 90, 50), rtol=1e-12)


def test_entities_pairs_and_groups():
    page = page_of("Name of it Ada Lovelace x 2 Nut 3.00 1 Bolt 4.00".split(), columns=3)
    roles = {"Name": [("B-question", 12)], "of": [("I-question", 12)], "it": [("I-question", 12)],
             "Ada": [("B-answer", 12)], "Lovelace": [("I-answer", 12)], "x": [("B-answer", 12)]}
    item = {"2": "Nut", "3.00": "2", "4.00": "1", "Bolt": "1"}
    model = Planted(CONFIG, page, {"3.00": [("B-item", 12)], "4.00": [("B-item", 12)]}, roles, item,
                    {"Ada": "Name", "Lovelace": "it", "x": "x"})
    result = extract_page(model, page, relations=True)
    assert [(e.role, e.value.text) for e in result.entities] == [
        ("question", "Name of it"), ("answer", "Ada Lovelace"), ("answer", "x")]
    (pair,) = result.pairs
    assert (pair.key, pair.value) == (0, 1) and 0.9 < pair.confidence < 1
    first, second = result.groups
    assert page.words[first.anchor.word].text == "Nut" and page.words[second.anchor.word].text == "1"
    assert [[page.words[p.word].text for p in g.parts] for g in result.groups] == [
        ["2", "Nut", "3.00"], ["1", "Bolt", "4.00"]]
    assert first.members == {"item": [0]} and second.members == {"item": [1]}
    assert result.to_json()["groups"][1]["fields"] == {"item": [1]}


def test_a_document_takes_each_field_from_its_surest_page():
    pages = [page_of(["a1", "b1", "c1"], "d/0"), page_of(["a2", "b2", "c2"], "d/1"), page_of([], "d/2")]

    class ByPage(Planted):
        def forward(self, window, heads):
            self.texts = {p.id: p.texts for p in pages}[window.id]
            return super().forward(window, heads)

    model = ByPage(CONFIG, pages[0], {"a1": [("B-total", 10)], "a2": [("B-total", 12)], "b1": [("B-item", 12)],
                                      "b2": [("B-item", 11)], "c2": [("B-item", 11)]})
    result = extract_document(model, m.Document("d", pages))
    total = result.fields["total"]
    assert (total.value, total.values[0].page) == ("a2", 1) and total.alternatives[0].text == "a1"
    assert total.absent == result.pages[0].fields["total"].absent * result.pages[1].fields["total"].absent
    assert [(v.text, v.page) for v in result.fields["item"].values] == [("b1", 0), ("b2", 1), ("c2", 1)]
    assert result.fields["date"].value is None and 0.9 < result.fields["date"].confidence < 1
    assert list(result.to_json()["fields"]) == list(CONFIG.fields) and len(result.pages) == 3


def test_line_items_over_a_page_break():
    """Cases mod-19, mod-20: 18 + 1 items, the seventh described in two lines; fields named as in the schema."""
    config = DocExtractConfig(fields=("qty", "desc", "price"), repeated=("qty", "desc", "price"), **SIZES)
    pages, tags, item = [], {}, {}
    for number, rows in ((0, range(18)), (1, range(18, 19))):
        words, y = [], 0
        for r in rows:
            names = [f"q{r}", f"d{r}", f"p{r}"]
            tags |= {n: [(f"B-{field}", 12)] for n, field in zip(names, config.fields)}
            item |= {n: names[0] for n in names}
            words += [m.Word(n, (100 * k, y, 100 * k + 50, y + 15)) for k, n in enumerate(names)]
            y += 20
            if r == 6:
                words.append(m.Word("more", (100, y, 150, y + 15)))
                item["more"] = "q6"
                y += 20
        pages.append(m.Page(f"d/{number}", 400, 500, words))

    class ByPage(Planted):
        def forward(self, window, heads):
            self.texts = {p.id: p.texts for p in pages}[window.id]
            return super().forward(window, heads)

    result = extract_document(ByPage(config, pages[0], tags, item=item), m.Document("d", pages), relations=True)
    groups = [(number, g) for number, page in enumerate(result.pages) for g in page.groups]
    assert len(groups) == 19 and [number for number, _ in groups] == [0] * 18 + [1]
    assert len(groups[6][1].parts) == 4 and all(set(g.members) == set(config.fields) for _, g in groups)
    assert {name: len(f.values) for name, f in result.fields.items()} == dict.fromkeys(config.fields, 19)
    assert [v.page for v in result.fields["qty"].values] == [0] * 18 + [1]


def as_text(page, result):
    """What was read, without the numbers of words in the file."""
    def one(value):
        return value.text, value.confidence, [p.box for p in value.parts]
    return ([[one(v) for v in (*f.values, *f.alternatives)] + [f.absent] for f in result.fields.values()],
            result.doc_type, [(e.role, one(e.value)) for e in result.entities], result.pairs,
            [[p.box for p in g.parts] for g in result.groups])


def test_bits_of_extraction(rng):
    """Words permuted in the file, every path and degree, and after other pages: the same result."""
    texts = [f"{rng.integers(0, 999)}.{k:02}" if k % 3 else "Total:" for k in range(90)]
    page, model = page_of(texts), real_model()
    first = as_text(page, extract_page(model, page, relations=True))
    order = rng.permutation(len(texts))
    other = m.Page("p", page.width, page.height, [page.words[i] for i in order])
    assert as_text(other, extract_page(model, other, relations=True)) == first
    for path in m.available_paths():
        for degree in range(1, 8):
            with m.kernel_path(path), m.degree(degree):
                extract_page(model, page_of(["x"] * int(rng.integers(1, 40))))
                assert as_text(page, extract_page(model, page, relations=True)) == first


def test_lab_19_every_word_with_its_label():
    """Case lab-19: word number, text, box, label and score of every word."""
    config = DocExtractConfig(fields=("id",), max_words=64, **SIZES)
    page = page_of(["Invoice", "No", "INV-0099"])
    found = extract_page(Planted(config, page, {"INV-0099": [("B-id", 12)], "No": [("B-id", 9)]}), page)
    words = m.word_labels(page, found.fields)
    assert [(w["word"], w["text"], tuple(w["box"]), w["label"]) for w in words] == [
        (i, w.text, w.box, label) for i, (w, label) in enumerate(zip(page.words, ("O", "O", "B-id")))]
    assert words[2]["score"] == found.fields["id"].confidence and words[0]["score"] == 1
    assert words[1]["score"] == 1 - found.fields["id"].alternatives[0].confidence
    document = m.Document("d", (page, page))
    fields = m.extract_document(Planted(config, page, {"INV-0099": [("B-id", 12)]}), document).fields
    assert [[w["label"] for w in m.word_labels(page, fields, number)] for number in (0, 1)] == [
        ["O", "O", "B-id"], ["O", "O", "O"]]


def test_lab_20_two_fields_of_one_word_are_returned():
    """Case lab-20: characters (3, 6) and (12, 22) of one word, its box split in proportion; and turned."""
    config = DocExtractConfig(fields=("id", "date"), max_words=64, cut="fine", **SIZES)
    plan = {"123": [("B-id", 12)], "01.02.2024": [("B-date", 12)]}
    for rotation, size, box, part in ((0, (300, 40), (10, 10, 230, 20), (40, 10, 70, 20)),
                                      (90, (40, 300), (20, 10, 30, 230), (20, 40, 30, 70))):
        page = m.Page("p", *size, [m.Word("No:123/Date:01.02.2024", box)], rotation)
        found = extract_page(Planted(config, page, plan), page)
        parts = [found.fields[name].values[0].parts[0] for name in ("id", "date")]
        assert [(p.word, p.start, p.end) for p in parts] == [(0, 3, 6), (0, 12, 22)] and parts[0].box == part
        words = m.word_labels(page, found.fields)
        assert [(w["label"], w["text"], w["start"], w["end"]) for w in words] == [
            ("B-id", "123", 3, 6), ("B-date", "01.02.2024", 12, 22)]
        assert [w.get("angle") for w in words] == [rotation or None] * 2  # case io-20: words carry an angle
