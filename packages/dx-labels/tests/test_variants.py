"""Page variants: dates rewritten, lines dropped; labels still stand on their words."""
from dataclasses import replace

import pytest

from dx_labels.below import Encoding, Page, Word, encode_page
from dx_labels.grounding import Rows
from dx_labels.labels import label_document
from dx_labels.schema import schema_from_json
from dx_labels.targets import field_rows
from dx_labels.texts import key
from dx_labels.variants import DATE_FORMS, Draws, page_variants, redate, rewrite

SCHEMA = schema_from_json({"fields": [{"name": "date", "type": "date"}, "company",
                                      {"name": "total", "type": "amount"}]})


def page(texts, name="p"):
    """Lines of words, ten units high."""
    words = [Word(t, (10 + 30 * i, 12 * r, 10 + 30 * i + 25, 12 * r + 10))
             for r, line in enumerate(texts) for i, t in enumerate(line.split())]
    return Page(name, 400, 12 * len(texts) + 10, words)


LINES = ["ACME LTD", "Date:12/03/2018 Till 4", "Bread 1.20", "Milk 2.30", "Eggs 3.40", "Tea 4.10", "Total 11.00",
         "Paid 12 MAR 2018 cash", "Thank you", "Come again soon"]
VALUES = {"date": "12/03/2018", "company": "ACME LTD", "total": "11.00"}


def labelled(lines=LINES, values=VALUES, name="p"):
    from dx_labels.below import Document
    p = page(lines, name)
    return p, label_document(Document(name, (p,)), SCHEMA, values)


def texts_of(p, labels):
    """field → texts of its places."""
    rows = Rows(p, encode_page(p, Encoding()))
    found = field_rows(p, rows, labels, SCHEMA)
    return {SCHEMA.names[k]: [rows.text(*run) for run in runs] for k, _, runs in found}


def test_labels_of_every_variant_stand_on_their_words():
    made = 0
    for number in range(40):
        p, labels = labelled(name=f"p{number}")
        for new, encoded, own in page_variants(p, encode_page(p, Encoding()), labels, SCHEMA, Encoding(), 7):
            made += 1
            found = texts_of(new, own)
            date = next(label.value for label in own if label.field == "date")
            assert found["company"] == ["ACME LTD"] and found["total"] == ["11.00"]
            assert found["date"] and {key(t) for t in found["date"]} == {key(date)}
            assert len(encoded) == len(encode_page(new, Encoding()))
    assert made >= 100


def test_the_rewritten_word_keeps_what_stood_beside_the_date():
    p, labels = labelled()
    run = labels[0].runs[0]
    new, place = rewrite(p, [(run, "3 MAY 2020")])
    assert [w.text for w in new.words[:8]] == ["ACME", "LTD", "Date:3", "MAY", "2020", "Till", "4", "Bread"]
    assert place[run] == ((2, 5, 6), (3, 0, 3), (4, 0, 4))
    single, _ = rewrite(p, [(run, "20200503")])
    assert single.words[2].text == "Date:20200503"


def test_what_stands_behind_a_date_in_its_word_is_moved_along():
    p = page(["From:12/03/2018;ACME", *LINES[2:]])
    run = ((0, 5, 15),)
    new, place = rewrite(p, [(run, "3 MAY 2020")])
    from dx_labels.variants import moved_spans
    assert [w.text for w in new.words[:3]] == ["From:3", "MAY", "2020;ACME"]
    assert moved_spans(((0, 16, 20),), place) == ((2, 5, 9),) and moved_spans(((0, 0, 4),), place) == ((0, 0, 4),)
    assert moved_spans(((0, 2, 8),), place) is None


def test_two_dates_in_one_word_are_left_alone():
    p = page(["12/03/2018-13/03/2018", *LINES[2:]])
    assert rewrite(p, [(((0, 0, 10),), "1.1.20"), (((0, 11, 21),), "2.1.20")]) is None


def test_variants_depend_on_seed_and_page_alone():
    p, labels = labelled()
    encoded = encode_page(p, Encoding())

    def made(seed, one=p, own=labels):
        return [v[0] for v in page_variants(one, encoded, own, SCHEMA, Encoding(), seed)]

    assert made(1) == made(1) and made(1) != made(2)
    other = replace(p, id="q")
    assert made(1) != [replace(v, id="p") for v in made(1, other, [replace(label, page="q") for label in labels])]


def test_a_page_without_dates_has_shorter_variants_only():
    p, labels = labelled([line for line in LINES if "2018" not in line] + [f"more {i}" for i in range(9)],
                         {"company": "ACME LTD", "total": "11.00"})
    made = page_variants(p, encode_page(p, Encoding()), labels, SCHEMA, Encoding(), 0)
    assert redate(p, labels, SCHEMA, Draws(0, "p")) is None
    assert len(made) == 1 and 10 <= len(made[0][0].words) < len(p.words)


def test_turned_and_empty_pages_have_none():
    p, labels = labelled()
    turned = replace(p, rotation=180)
    assert page_variants(turned, encode_page(turned, Encoding()), labels, SCHEMA, Encoding(), 0) == []
    empty = Page("e", 10, 10)
    assert page_variants(empty, encode_page(empty, Encoding()), [], SCHEMA, Encoding(), 0) == []


@pytest.mark.parametrize("form", DATE_FORMS)
def test_every_form_is_a_date_that_grounding_reads(form):
    from dx_labels.dates import read_date
    from dx_labels.variants import draw_date
    for number in range(5):
        text = draw_date("12/03/2018", SCHEMA.fields[0], form, number % 2 == 0, Draws(3, str(number)))
        assert read_date(text, "dmy").values, text


def test_a_page_name_with_a_lone_surrogate_has_draws():
    assert Draws(0, "\ud800").share() != Draws(0, "a").share()
