import unicodedata

import dx_kernels as k
import numpy as np
import pytest
from dx_kernels.ref import text as ref
from pages import arrays, random_texts


def kinds(code):
    kind = np.empty(len(code), np.uint8)
    k.text_kinds(code, kind)
    return kind


def cut_points(word):
    offset, code = arrays([word])
    cut = np.empty(len(code), np.uint8)
    k.text_cuts(offset, code, kinds(code), cut)
    return [word[a:b] for a, b in zip([0, *np.flatnonzero(cut)], [*np.flatnonzero(cut), len(word)])]


def ids_of(texts, max_chars=16):
    offset, code = arrays(texts)
    ids = np.empty((len(texts), max_chars), np.int32)
    k.character_ids(offset, code, kinds(code), ids)
    return ids


def test_kinds_of_all_code_points(path):
    """The committed table against unicodedata where that is Unicode 14.0 (Python 3.11)."""
    code = np.arange(0x110100, dtype=np.uint32)
    kind, clean = kinds(code), np.empty_like(code)
    k.text_clean(code, clean)
    assert (kind[0x110000:] == 0).all() and (clean[0x110000:] == 0xFFFD).all()
    assert np.array_equal(clean[:0x110000] == 0xFFFD, (kind[:0x110000] == 0) | (code[:0x110000] == 0xFFFD))
    if unicodedata.unidata_version == "14.0.0":
        category = np.array([unicodedata.category(chr(c)) for c in range(0x110000)])
        assert np.array_equal(kind[:0x110000] == 0, (category == "Cn") | (category == "Cs"))
        for number, names in {3: ("Lu", "Lt"), 4: ("Ll",), 5: ("Lo", "Lm"), 8: ("Sc",), 2: ("Nd",)}.items():
            assert np.array_equal(kind[:0x110000] & 15 == number, np.isin(category, names))
        digits = np.flatnonzero(category == "Nd")
        assert [unicodedata.decimal(chr(c)) for c in digits] == (kind[digits] >> 4).tolist()


def test_kinds_equal_reference(path, rng):
    code = np.concatenate([rng.integers(0, 0x3000, 4000), rng.integers(0, 0x120000, 2000), [0xFFFFFFFF]])
    code = code.astype(np.uint32)
    assert np.array_equal(kinds(code), ref.text_kinds(code))
    out = code.copy()
    k.text_clean(out, out)
    assert np.array_equal(out, ref.text_clean(code))


def test_words_equal_reference(path, rng):
    for n in (0, 1, 7, 300):
        texts = random_texts(rng, n)
        offset, code = arrays(texts)
        kind = kinds(code)
        cut, key = np.full(len(code), 7, np.uint8), np.empty(n, np.int32)
        k.text_cuts(offset, code, kind, cut)
        k.text_keys(offset, code, kind, key)
        assert np.array_equal(cut, ref.text_cuts(offset, code))
        assert np.array_equal(key, ref.text_keys(offset, code))
        for max_chars in (1, 2, 5, 16):
            ids = ids_of(texts, max_chars)
            assert np.array_equal(ids, ref.character_ids(offset, code, max_chars))
            distinct, inverse = np.empty_like(ids), np.empty(n, np.int32)
            count = k.distinct_rows(ids, distinct, inverse)
            want = ref.distinct_rows(ids)
            assert np.array_equal(distinct[:count], want[0]) and np.array_equal(inverse, want[1])
            assert np.array_equal(distinct[inverse], ids)


def test_any_text_has_ids_in_range():
    """Emoji, Arabic, CJK, controls, lone surrogates, empty and very long words: never a crash, never id 0 first."""
    texts = ["", " ", "\t\n", "\0", "\x1f", "👩‍👩‍👧", "مرحبا", "漢字かな", "\ud800", "\udfff\ud800", "\u200b", "\ufffd",
             "\ufdfa", "a" * 10_000, "9" * 10_000, "(" * 10_000, "e\u0301" * 5_000]
    ids = ids_of(texts)
    assert ids.min() >= 0 and ids.max() < 256 and (ids[:, 0] > 0).all()
    offset, code = arrays(texts)
    cut = np.empty(len(code), np.uint8)
    k.text_cuts(offset, code, kinds(code), cut)
    assert cut.max() <= 1


def test_long_words_keep_head_and_tail():
    assert ids_of(["abcdefghij"], 4).tolist() == ids_of(["abij"], 4).tolist()
    assert ids_of(["abcdefghij"], 5).tolist() == ids_of(["abcij"], 5).tolist()
    assert ids_of(["abc"], 5).tolist() == [[66, 67, 68, 0, 0]]
    assert ids_of([" abc\u00a0"], 5).tolist() == ids_of(["abc"], 5).tolist()


@pytest.mark.parametrize("pieces", [
    ["DATE:", "12/03/2018"], ["12-JAN-2018", ",10:20"], ["ID", "20180131", "X"], ["TOTAL:", "RM", "5.00"],
    ["SDN", "(1234)", "BHD"], ["RM", "12.00"], ["12/03/2018"], ["FARM12.00"], ["http:", "x"], ["10:20"], ["(RM)"],
    ["1234567/12/2018"], ["Tel", "[03]", "x"], ["DATE12/3"], ["(RM5.00)"], [""]])
def test_cuts(pieces):
    """Case lab-20: several fields in one word."""
    assert cut_points("".join(pieces)) == pieces


def test_wrong_arguments_are_named():
    offset, code = arrays(["ab", "c"])
    kind, key = kinds(code), np.empty(2, np.int32)
    with pytest.raises(ValueError, match=r"key has shape \(1,\): expected \(2,\)"):
        k.text_keys(offset, code, kind, key[:1])
    with pytest.raises(ValueError, match=r"offset\[2\] = 3: expected at least 5"):
        k.text_keys(np.array([0, 5, 3], np.int64), code, kind, key)
    with pytest.raises(ValueError, match="offset goes from 0 to 2: expected 0 to 3"):
        k.text_keys(np.array([0, 1, 2], np.int64), code, kind, key)
    with pytest.raises(ValueError, match=r"expected \(2, max_chars >= 1\)"):
        k.character_ids(offset, code, kind, np.empty((2, 0), np.int32))
    code.flags.writeable = False
    k.text_keys(offset, code, kind, key)
