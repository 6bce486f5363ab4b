"""Pages: the checks of boxes, repair, cropping, files."""
import fractions
import gzip
import json
import re

import dx_model as m
import numpy as np
import pytest
from dx_model import strict_json


def page(*boxes, width=1000, height=1000, **more):
    return {"id": "p", "width": width, "height": height, "words": [{"text": f"w{i}", "box": list(b)}
                                                                   for i, b in enumerate(boxes)], **more}


def test_a_box_beyond_the_page_is_refused_by_name():
    """Cases mod-01, mod-04."""
    assert m.page_from_json(page([10, 20, 1000, 40])).words[0].box == (10, 20, 1000, 40)
    for edge in (1001, 1025):
        with pytest.raises(m.PageError, match=rf"page 'p', word 1 \('w1'\): box \[10, 20, {edge}, 40\]: x1 = {edge} is "
                                              "beyond the page's width 1000"):
            m.page_from_json(page([0, 0, 5, 5], [10, 20, edge, 40]))
    with pytest.raises(m.PageError, match="y1 = 800 is beyond the page's height 792|x1 = 640 is beyond"):
        m.page_from_json(page([600, 780, 640, 800], width=612, height=792))


def test_one_rule_for_floats():
    """Case mod-08: no rounding before the check."""
    with pytest.raises(m.PageError, match="y1 = 1000.4 is beyond"):
        m.page_from_json(page([0, 0, 1000, 1000.4]))
    m.page_from_json(page([0, 0, 999.6, 1000]))


def test_a_box_over_the_edge_is_clipped_or_refused():
    """Case mod-02."""
    value = page([-3, 12, 40, 30], width=800)
    with pytest.raises(m.PageError, match="x0 = -3 is below 0"):
        m.page_from_json(value)
    repaired = m.page_from_json(value, repair=True)
    assert repaired.words[0].box == (0, 12, 40, 30)
    assert len(repaired.repairs) == 1 and "x0, x1 clipped to the page" in repaired.repairs[0]


def test_repair_lists_what_it_did():
    value = page([40, 90, 10, 20], [5, 5, 5, 9], [2000, 0, 3000, 10], [1, 1, 2, 2])
    repaired = m.page_from_json(value, repair=True)
    boxes = [w.box for w in repaired.words]
    assert boxes == [(10, 20, 40, 90), (4.5, 5, 5.5, 9), (999.5, 0, 1000, 10), (1, 1, 2, 2)]
    assert len(repaired.repairs) == 3
    assert "word 0 ('w0'): box [40, 90, 10, 20]: x0 and x1 swapped, y0 and y1 swapped" in repaired.repairs[0]
    assert m.page_from_json(m.page_to_json(repaired)).words == repaired.words
    assert m.page_from_json({"id": "p", "words": value["words"][:1]}, repair=True).width == 40


@pytest.mark.parametrize("change, message", [
    ({"id": ""}, "id is ''"), ({"id": 7}, "id is 7"), ({"width": 0}, "width is 0"), ({"height": "9"}, "height is '9'"),
    ({"width": None}, "width is None"), ({"width": True}, "width is True"), ({"height": 1e308}, "height is 1e"),
    ({"words": None}, "words is None"), ({"words": [5]}, "word 0: 5: expected an object with text and box"),
    ({"words": [{"text": "a"}]}, "expected an object with text and box"), ({"rotation": 45}, "rotation is 45"),
    ({"words": [{"text": 5, "box": [0, 0, 1, 1]}]}, "text is 5"),
    ({"words": [{"text": "a", "box": [0, 0, 1]}]}, "four numbers x0"),
    ({"words": [{"text": "a", "box": "0011"}]}, "four numbers x0"),
    ({"words": [{"text": "a", "box": [0, 0, 1, None]}]}, "y1 = None"),
    ({"words": [{"text": "a", "box": [0, 0, 1, float("nan")]}]}, "y1 = nan"),
    ({"words": [{"text": "a", "box": [0, 0, 10 ** 400, 1]}]}, "x1 = 1000"),
    ({"words": [{"text": "a", "box": [0, 0, 1, 1], "line": -1}]}, "line is -1"),
    ({"words": [{"text": "a", "box": [0, 0, 1, 1], "line": 2 ** 31}]}, "line is 2147483648")])
def test_what_cannot_be_repaired_is_named(change, message):
    for repair in (False, True):
        if repair and change == {"width": None}:
            continue
        with pytest.raises(m.PageError, match=message):
            m.page_from_json({**page([0, 0, 1, 1]), **change}, repair=repair)


def test_a_page_made_in_python_is_checked():
    with pytest.raises(m.PageError, match="x0 = 5 is greater than x1 = 4"):
        m.Page("p", 10, 10, [m.Word("a", (5, 0, 4, 1))])


def test_unknown_keys_and_numbers_survive_a_round_trip(tmp_path):
    """Case io-26: the reader's name and version stay with the words. Case cli-02: UTF-8 whatever the locale."""
    value = page([0, 0, 1.5, 2], rotation=90, reader={"name": "r", "version": "1.2"}, fields={"a": "“Rechnung” € 5"})
    value["words"][0] |= {"angle": 90, "line": 3}
    value["words"].append({"text": "\ud800 “€”", "box": [1, 1, 2, 2]})
    path = tmp_path / "p.jsonl"
    m.write_pages(path, [m.page_from_json(value)] * 2)
    assert [m.page_to_json(p) for p in m.read_pages(path)] == [value, value]
    assert path.read_bytes().count(b"\n") == 2 and list(tmp_path.iterdir()) == [path]
    with gzip.open(tmp_path / "p.jsonl.gz", "wb") as file:
        file.write(path.read_bytes())
    assert list(m.read_pages(tmp_path / "p.jsonl.gz")) == list(m.read_pages(path))


def test_one_bad_page_among_200_is_named_with_its_line(tmp_path):
    """Case mod-07."""
    lines = [json.dumps(page([5, 5, 9, 9])) for _ in range(201)]
    lines[100] = json.dumps(page([5, 5, 5000, 9]))
    path = tmp_path / "pages.jsonl"
    path.write_text("\n".join(lines) + "\n\n")
    with pytest.raises(m.PageError, match=r"pages.jsonl:101: page 'p', word 0 \('w0'\): box \[5, 5, 5000, 9\]"):
        list(m.read_pages(path))
    assert len(list(m.read_pages(path, repair=True))) == 201
    problems = []
    assert len(list(m.read_pages(path, problems=problems))) == 200 and len(problems) == 1
    assert "pages.jsonl:101: page 'p', word 0" in problems[0]


@pytest.mark.parametrize("text, message", [
    ('{"a": NaN}', "NaN is no JSON number"), ('{"a": -Infinity}', "-Infinity is no JSON number"),
    ('{"a": 1e999}', "1e999 is too large"), ('{"a": -1e999}', "too large"),
    ('{"a": 1, "a": 2}', "key 'a' stands twice"),
    ('{"a": ' + "9" * 4301 + "}", "more than 4300 digits"), ("[" * 100_000, "more than 64 arrays"),
    ('{"a":' * 65 + "1" + "}" * 65, "more than 64 arrays"), ("{", "not JSON"), ("", "not JSON"), ("1 2", "not JSON"),
    ("{'a': 1}", "not JSON")])
def test_json_that_is_refused(text, message):
    with pytest.raises(strict_json.StrictJSONError, match=message):
        strict_json.loads(text)


def test_json_that_is_read():
    assert strict_json.loads("[" * 64 + "]" * 64)
    assert strict_json.loads('["' + "[{" * 500 + '\\"[", 1e308, ' + "9" * 4300 + "]")[1] == 1e308


def test_broken_files_are_named(tmp_path):
    good = json.dumps(page([0, 0, 1, 1])).encode()
    for bad, message in ((b"\xff\xfe", "2: not UTF-8"), (b"{", "2: not JSON"), (b"[]", r"2: \[\]: expected an object"),
                         (good[:-1] + b',"id":"q"}', "2: the key 'id' stands twice")):
        path = tmp_path / "x.jsonl"
        path.write_bytes(b"\xef\xbb\xbf" + good + b"\n" + bad + b"\n")
        with pytest.raises(m.PageError, match=f"x.jsonl:{message}"):
            list(m.read_pages(path))
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(good * 50)[:-20])
    with pytest.raises(m.PageError, match="x.jsonl.gz:1: "):
        list(m.read_pages(path))


def test_damaged_lines_never_do_anything_but_name_the_line(tmp_path, rng):
    good = json.dumps(page([0, 0, 1, 1], [5, 5, 9.5, 1e2], fields={"a": [1, None, {"b": 2}]})).encode()
    path = tmp_path / "fuzz.jsonl"
    refused = 0
    for _ in range(300):
        line = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(0, len(line))
            choice = rng.integers(0, 4)
            if choice == 0:
                line[at] = rng.integers(0, 256)
            elif choice == 1:
                del line[at:at + rng.integers(1, 9)]
            elif choice == 2:
                line[at:at] = [b"9" * 400, b"[" * 80, b"1e999", b"null", b"-", b'"', b"}"][rng.integers(0, 7)]
            else:
                line = line[:at + 1]
        path.write_bytes(bytes(line))
        try:
            list(m.read_pages(path, repair=bool(rng.integers(0, 2))))
        except m.PageError as error:
            assert "fuzz.jsonl:" in str(error)
            refused += 1
    assert refused > 200


def test_documents_are_cut_into_pages():
    words = [{"text": t, "box": [i, 0, i + 1, 1], "page": p} for i, (t, p) in enumerate(zip("abcd", (0, 1, 0, 1)))]
    document = m.document_from_json({
        "id": "d", "width": 9, "height": 9, "pages": [[9, 9], [8, 7], [6, 6]], "words": words, "fields": {"x": "a"},
        "labels": list("ABCD"), "links": [[1, 2], [3, 3]],
        "entities": [{"id": 1, "words": [0]}, {"id": 2, "words": [2]}, {"id": 3, "words": [1, 3]}]})
    first, second, third = document.pages
    assert [p.id for p in document.pages] == ["d/0", "d/1", "d/2"] and (second.width, second.height) == (8, 7)
    assert first.texts == ["a", "c"] and second.texts == ["b", "d"] and third.texts == []
    assert first.extra["labels"] == ["A", "C"] and second.extra["entities"] == [{"id": 3, "words": [0, 1]}]
    assert first.extra["entities"] == [{"id": 1, "words": [0]}, {"id": 2, "words": [1]}]
    assert first.extra["links"] == [[1, 2]] and second.extra["links"] == [[3, 3]]
    assert document.extra["fields"] == {"x": "a"} and first.document == "d" and second.number == 1
    with pytest.raises(m.PageError, match="document 'd', word 0: page is 3: expected 0 to 0"):
        m.document_from_json({"id": "d", "pages": [[9, 9]], "words": [{**words[0], "page": 3}]})


def test_words_outside_a_crop_box_are_dropped_on_request():
    """Case io-22."""
    value = page([0, 95, 10, 105], [0, 695, 10, 705], crop=[0, 0, 1000, 200], labels=["A", "B"])
    whole = m.page_from_json(value)
    assert len(whole.words) == 2
    cropped = m.crop_page(whole)
    assert cropped.texts == ["w0"] and cropped.extra["labels"] == ["A"]
    assert m.crop_page(whole, (0, 600, 1000, 1000)).texts == ["w1"]
    assert m.crop_page(m.page_from_json(page([0, 0, 1, 1]))).texts == ["w0"]


def test_unmapped_glyphs_are_counted():
    """Case io-19."""
    words = [m.Word(t, (0, 0, 1, 1)) for t in ("\ufffdee;", "\ufffd", "of\ufffdce")]
    assert m.Page("p", 9, 9, words).unmapped_glyphs == 3
    assert len(m.encode_page(m.Page("p", 9, 9, words))) == 3


@pytest.mark.parametrize("angle", [90, 270])
def test_turned_letters_are_joined_on_request(angle):
    """Case io-28."""
    text = "Ninety"
    letters = [m.Word(c, (30, 100 + 10 * i, 38, 109 + 10 * i), None, {"angle": angle})
               for i, c in enumerate(text if angle == 90 else text[::-1])]
    others = [m.Word("I", (30, 300, 38, 309)), m.Word("a", (60, 100, 68, 109)), m.Word("b", (60, 110, 68, 119), None,
                                                                                      {"angle": 0})]
    page = m.Page("p", 400, 400, letters[::-1] + others)
    joined = m.join_letters(page, angle)
    assert joined.texts == [text, "I", "a", "b"] and joined.words[0].box == (30, 100, 38, 159)
    assert m.join_letters(joined, angle).words == joined.words
    with pytest.raises(ValueError, match="angle = 45"):
        m.join_letters(page, 45)


def test_damaged_gzip_is_named(tmp_path, rng):
    packed = gzip.compress(b"\n".join(json.dumps(page([5, 5, 9, i])).encode() for i in range(10, 200)))
    path = tmp_path / "x.jsonl.gz"
    refused = 0
    for _ in range(60):
        bad = bytearray(packed)
        bad[rng.integers(0, len(bad))] ^= 1 << rng.integers(0, 8)
        path.write_bytes(bytes(bad))
        try:
            list(m.read_pages(path))
        except m.PageError as error:
            assert "x.jsonl.gz:" in str(error)
            refused += 1
    assert refused > 40


def test_real_numbers_of_every_type_are_taken_exactly():
    """numpy's numbers, fractions, lists and arrays: the same value as int or float, and the file says the same."""
    third = np.float32(1) / np.float32(3)
    for box, want in (((np.float32(1.5), third, np.int64(9), np.float16(7.25)), (1.5, float(third), 9, 7.25)),
                      ([0, 1, 2.5, 3], (0, 1, 2.5, 3)), (np.array([0, 1, 2.5, 3], np.float32), (0.0, 1.0, 2.5, 3.0)),
                      (np.array([1, 2, 3, 4], np.uint8), (1, 2, 3, 4)),
                      ((fractions.Fraction(1, 4), 0, 1, 1), (0.25, 0, 1, 1))):
        found = m.Word("a", box, np.int32(4))
        assert found.box == want and {type(v) for v in found.box} <= {int, float} and type(found.line) is int
        page = m.Page("p", np.float32(10), np.int16(20), [found], np.int64(90))
        assert (page.width, page.height, page.rotation) == (10, 20, 90)
        assert m.page_from_json(json.loads(json.dumps(m.page_to_json(page)))) == page


@pytest.mark.parametrize("box, problem", [
    ((np.bool_(True), 0, 1, 1), "x0 = "), ((True, 0, 1, 1), "x0 = True: expected a number"),
    ((0, "1", 1, 1), "y0 = '1': expected a number"), ((0, 0, np.float32("nan"), 1), "x1 = nan: expected a number"),
    ((0, 0, np.float64("inf"), 1), "x1 = inf: expected a number"), ((0, 0, 1j, 1), "x1 = 1j: expected a number"),
    ((0, 0, np.longdouble(1) / 3, 1), "x1 = "), ((0, 0, None, 1), "x1 = None: expected a number"),
    ([0, 0, 1], "expected four numbers"), (np.zeros((2, 2)), "expected four numbers"), (None, "expected four numbers"),
    ("0 0 1 1", "expected four numbers")])
def test_what_is_no_number_is_named(box, problem):
    with pytest.raises(m.PageError, match=r"(?s)page 'p', word 0 \('a'\): box .*" + re.escape(problem)):
        m.Page("p", 10, 10, [m.Word("a", box)])


@pytest.mark.parametrize("more, message", [
    ({"entities": 5}, "entities is 5: expected a list"),
    ({"entities": [{"words": [7]}]}, "word 7: expected 0 to 0"),
    ({"entities": [{"id": [1], "words": [0]}]}, "id [1]: expected"),
    ({"entities": [[0]]}, "expected an object with a list of words"),
    ({"links": [[1, 2, 3]]}, "link [1, 2, 3]: expected two entity ids"),
    ({"groups": [{}]}, "group {}: expected a number"),
])
def test_what_stands_beside_the_words_is_checked(more, message):
    """The same for a page and for a document of pages; so nobody who uses entities meets anything else."""
    word = {"text": "a", "box": [1, 1, 2, 2]}
    for value in ({"id": "p", "width": 9, "height": 9, "words": [word], **more},
                  {"id": "d", "pages": [[9, 9]], "words": [{**word, "page": 0}], **more}):
        with pytest.raises(m.PageError) as error:
            m.document_from_json(value)
        assert message in str(error.value)


@pytest.mark.parametrize("more", [{"document": 5}, {"document": ""}, {"number": -1}, {"number": 1.5}])
def test_a_page_names_its_document_by_text_and_number(more):
    with pytest.raises(m.PageError, match=f"{next(iter(more))} is"):
        m.Page("p", 9, 9, **more)
