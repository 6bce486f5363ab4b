"""From pages to arrays: reading order, cuts, windows, features of whole pages."""
import os
import unicodedata
from dataclasses import fields
from pathlib import Path

import dx_model as m
import numpy as np
import pytest

ARRAYS = [f.name for f in fields(m.EncodedPage) if f.name not in ("id", "word")]


def word(text, x, y, width=40, height=12, line=None):
    return m.Word(text, (x, y, x + width, y + height), line)


def equal(a, b, names=ARRAYS):
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in names)


def texts_of(page, encoded):
    return [page.texts[w][a:b] for w, a, b in zip(encoded.word, encoded.start, encoded.end)]


def permuted(page, rng):
    p = rng.permutation(len(page.words))
    return m.Page(page.id, page.width, page.height, [page.words[i] for i in p], page.rotation), p


def receipt():
    rows = [("ACME", "LTD"), ("DATE:12/03/2018", "10:20"), ("TEA", "2", "3.50", "7.00"), ("CAKE", "1", "RM3.00"),
            ("TOTAL", "10.00"), ("CASH", "20.00"), ("CHANGE", "10.00")]
    return m.Page("r", 400, 400, [word(t, 10 + 90 * i, 20 + 30 * r) for r, row in enumerate(rows)
                                  for i, t in enumerate(row)])


def test_the_order_of_words_in_the_file_does_not_matter(rng):
    page = receipt()
    for encoding in (m.Encoding(), m.Encoding(cut=False, max_chars=5)):
        want = m.encode_page(page, encoding)
        for _ in range(5):
            other, p = permuted(page, rng)
            got = m.encode_page(other, encoding)
            assert equal(got, want) and np.array_equal(p[got.word], want.word)


def test_rows_and_pieces_map_back_to_words():
    """Cases lab-04, lab-19, lab-20."""
    page = receipt()
    encoded = m.encode_page(page)
    texts = texts_of(page, encoded)
    assert texts[:5] == ["ACME", "LTD", "DATE:", "12/03/2018", "10:20"] and texts[11:13] == ["RM", "3.00"]
    joined = {}
    for w, t in zip(encoded.word.tolist(), texts):
        joined[w] = joined.get(w, "") + t
    assert [joined[i] for i in range(len(page.words))] == page.texts
    date = encoded.box[3]
    assert date.tolist() == [10 + 40 * 5 / 15, 50, 50, 62]
    whole = m.encode_page(page, m.Encoding(cut=False))
    assert texts_of(page, whole) == [page.texts[i] for i in whole.word]


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_declared_rotation_changes_nothing(rotation):
    """Case io-20."""
    upright = receipt()
    size = upright.width

    def turn(box):
        x0, y0, x1, y1 = box
        for _ in range(rotation // 90):
            x0, y0, x1, y1 = size - y1, x0, size - y0, x1
        return x0, y0, x1, y1

    turned = m.Page("r", size, size, [m.Word(w.text, turn(w.box)) for w in upright.words], rotation)
    assert equal(m.encode_page(turned), m.encode_page(upright), ARRAYS + ["word"])
    assert not equal(m.encode_page(turned), m.encode_page(m.Page("r", size, size, turned.words)))


def test_rows_of_a_table_stay_together():
    """Case io-23."""
    page = m.Page("t", 700, 200, [word("c", 600, 98), word("a", 10, 100), word("d", 10, 118), word("b", 300, 103)])
    order, row = m.reading_order(page)
    assert [page.texts[i] for i in order] == list("abcd") and row.tolist() == [0, 0, 0, 1]
    order, row = m.reading_order(page, keep_file_order=True)
    assert order.tolist() == [0, 1, 2, 3] and row.tolist() == [0, 1, 2, 3]


def prose(rows, words, gutter, first=0):
    """Two columns of running text, each words of 40 with spaces of 5."""
    return [word(f"{side}{r}.{i}", side * (words * 45 + gutter) + 45 * i, 20 + first + 15 * r)
            for r in range(rows) for side in (0, 1) for i in range(words)]


def test_two_columns_of_text_are_read_one_after_the_other(rng):
    head = [word("HEAD", 0, 0, 500), word("END", 0, 300, 500)]
    page = m.Page("c", 700, 400, head + prose(10, 6, 40))
    order, row = m.reading_order(page)
    texts = [page.texts[i] for i in order]
    left = [f"0{r}.{i}".replace("0", "0", 1) for r in range(10) for i in range(6)]
    assert texts[0] == "HEAD" and texts[-1] == "END" and texts[1:61] == left
    assert texts[61] == "10.0" and (np.diff(row) >= 0).all() and row[-1] == 21
    other, _ = permuted(page, rng)
    assert [other.texts[i] for i in m.reading_order(other)[0]] == texts
    assert [page.texts[i] for i in m.reading_order(page, columns=False)[0]][7] == "10.0"


@pytest.mark.parametrize("rows, words, gutter", [(9, 6, 40), (10, 3, 40), (10, 6, 5)])
def test_other_pages_are_not_taken_for_columns(rows, words, gutter):
    page = m.Page("c", 700, 400, prose(rows, words, gutter))
    assert np.array_equal(m.reading_order(page)[0], m.reading_order(page, columns=False)[0])


def test_a_word_without_width_at_the_gutter_is_read_once():
    words = [m.Word("w", (x, 12.0 * row, x + 34, 12.0 * row + 9)) for row in range(12) if row != 6
             for x in (10, 46, 82, 118, 154, 210, 246, 282, 318, 354)]
    words.append(m.Word("|", (199, 72, 199, 81)))
    page = m.Page("p", 400, 300, words)
    assert sorted(m.reading_order(page)[0].tolist()) == list(range(len(words)))


def test_any_text_is_encoded():
    texts = ["", " ", "\n", "\u200b", "\u00a0", "👩‍👩‍👧", "مرحبا", "漢字かな", "\ud800", "\x00", "a" * 10_000]
    texts += ["ﬁn", "１２．５０", "\u0378", "e\u0301", "№", "Brückenstr."]
    page = m.Page("u", 1000, 1000, [word(t, 10, 20 * i) for i, t in enumerate(texts)])
    encoded = m.encode_page(page, m.Encoding(cut=False))
    assert encoded.word.tolist() == list(range(len(texts)))  # case lab-07: blank words keep their place
    assert np.isfinite(encoded.features).all() and (encoded.characters[:, 0] > 0).all()
    same = {"\ud800": "\ufffd", "\u0378": "\ufffd", "ﬁn": "fin", "１２．５０": "12.50", "e\u0301": "é", "№": "No"}
    for source, wanted in same.items():
        assert m.clean_text(source) == wanted
    assert m.clean_text("plain") == "plain" and m.clean_text("a\ufb01\ud800") == "afi\ufffd"


def test_cleaning_is_fixed_to_unicode_14():
    """NFKC of every code point after cleaning is the same in newer Pythons, so the digest is."""
    import hashlib

    cleaned = m.encode.clean_text("".join(map(chr, range(0x110000))))
    if unicodedata.unidata_version == "14.0.0":
        plain = "".join("\ufffd" if unicodedata.category(chr(c)) in ("Cn", "Cs") else chr(c) for c in range(0x110000))
        assert cleaned == unicodedata.normalize("NFKC", plain)
    assert hashlib.sha256(cleaned.encode()).hexdigest() == DIGEST


DIGEST = "e29ff58b524a77f0a5763353df5c1dad3430172c4deaadb58dfb3103221eabc2"


def test_pages_without_words_and_of_one_word():
    empty = m.encode_page(m.Page("e", 10, 10))
    assert len(empty) == 0 and empty.features.shape == (0, 56) and empty.table_ids.shape == (5, 0)
    one = m.encode_page(m.Page("o", 10, 10, [word("x", 1, 1, 0, 0)]))
    assert len(one) == 1 and np.isfinite(one.features).all() and one.table_ids.tolist() == [[0]] * 5


def test_words_past_the_limit_are_in_a_window():
    """Case mod-05: 900 words, IBAN at 850."""
    words = [word(f"w{i}" if i != 850 else "IBAN", 60 * (i % 10), 20 * (i // 10)) for i in range(900)]
    page = m.Page("long", 700, 2000, words)
    encoded = m.encode_page(page)
    windows = m.page_windows(len(encoded), 512)
    owner = m.window_owners(len(encoded), windows)
    assert windows == [(0, 512), (194, 706), (388, 900)] and len(owner) == 900
    at = int(np.flatnonzero(encoded.word == 850)[0])
    begin, end = windows[owner[at]]
    part = encoded.window(begin, end, m.window_id(page.id, owner[at]))
    assert part.id == "long#2" and texts_of(page, part)[at - begin] == "IBAN"
    assert np.array_equal(part.characters[part.inverse], encoded.characters[encoded.inverse][begin:end])
    assert np.array_equal(part.real, encoded.real[:, begin:end]) and part.real.flags.c_contiguous
    n = end - begin
    pairs, all_pairs = np.empty((20, n, n), np.float32), np.empty((20, 900, 900), np.float32)
    m.below.pair_features(part.real, part.whole, pairs)
    m.below.pair_features(encoded.real, encoded.whole, all_pairs)
    assert np.array_equal(pairs, all_pairs[:, begin:end, begin:end])


@pytest.mark.parametrize("rows, most, overlap", [(0, 8, 2), (8, 8, 2), (9, 8, 2), (100, 8, 2), (100, 8, 7), (100, 8, 0),
                                                 (17, 16, None), (5, 1, 0)])
def test_windows_cover_the_page_and_every_row_has_one_owner(rows, most, overlap):
    windows = m.page_windows(rows, most, overlap)
    owner = m.window_owners(rows, windows)
    overlap = most // 4 if overlap is None else overlap
    assert windows[0][0] == 0 and windows[-1][1] == rows and all(b - a == min(most, rows) for a, b in windows)
    assert all(b[0] <= a[1] - overlap and a[0] < b[0] for a, b in zip(windows, windows[1:]))
    for r in range(rows):
        far = {k: min(r - a if a else rows, b - 1 - r if b < rows else rows)
               for k, (a, b) in enumerate(windows) if a <= r < b}
        assert owner[r] == min(far, key=lambda k: (-far[k], k))
    assert (np.diff(owner) >= 0).all()


def test_wrong_settings_are_named():
    with pytest.raises(ValueError, match="max_chars = 0"):
        m.Encoding(max_chars=0)
    with pytest.raises(ValueError, match="overlap = 8: expected 0 to 7"):
        m.page_windows(9, 8, 8)


@pytest.mark.parametrize("name", ["sroie.test", "funsd.test", "cord.train", "invoice2data.test"])
def test_real_pages(name, rng):
    folder = os.environ.get("DX_DATA")
    if not folder:
        pytest.skip("DX_DATA is not set: no real pages")
    pages = list(m.read_pages(Path(folder) / f"{name}.jsonl.gz"))
    assert len(pages) > 10
    for page in pages[::7]:
        encoded = m.encode_page(page)
        assert np.isfinite(encoded.features).all() and encoded.table_ids.min(initial=0) >= 0
        assert sorted(set(encoded.word.tolist())) == list(range(len(page.words)))
        other, _ = permuted(page, rng)
        assert equal(m.encode_page(other), encoded)


def test_fields_joined_by_a_sign_are_cut_on_request():
    """Case lab-20: one word with two fields, its box split in proportion; the default leaves "123/Date:" whole."""
    page = m.Page("p", 300, 40, [m.Word("No:123/Date:01.02.2024", (10, 10, 230, 20)), word("x", 10, 25)])
    fine = m.encode_page(page, m.Encoding(cut="fine"))
    assert texts_of(page, fine) == ["No:", "123", "/", "Date:", "01.02.2024", "x"]
    assert fine.box[1].tolist() == [40, 10, 70, 20] and fine.box[4].tolist() == [130, 10, 230, 20]
    assert texts_of(page, m.encode_page(page)) == ["No:", "123/Date:", "01.02.2024", "x"]
    with pytest.raises(ValueError, match="cut = 'fines': expected true, false or 'fine'"):
        m.Encoding(cut="fines")


@pytest.mark.parametrize("text, pieces", [
    ("1,234.56", ["1,234.56"]), ("INV/A", ["INV/A"]), ("7/a/8", ["7", "/", "a", "/", "8"]), ("/a", ["/a"]),
    ("7/", ["7/"]), ("", [""]), ("12;ab", ["12", ";", "ab"]), ("٣=x", ["٣", "=", "x"]), ("INV-0099", ["INV-0099"])])
def test_fine_cuts(text, pieces):
    """Signs between a digit and a letter alone; neither end of a word is looked across."""
    page = m.Page("p", 300, 40, [word("1", 10, 10), m.Word(text, (60, 10, 90, 22)), word("a", 120, 10)])
    encoded = m.encode_page(page, m.Encoding(cut="fine", keep_file_order=True))
    assert texts_of(page, encoded) == ["1", *pieces, "a"]
