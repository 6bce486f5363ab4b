import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import text
from dx_kernels.ref import words as ref
from pages import amount_texts, arrays, random_boxes, random_texts
from test_reading import order_of


def features(texts, box, row, line, glue, height):
    offset, code = arrays(texts)
    n = len(texts)
    kind, key, out = np.empty(len(code), np.uint8), np.empty(n, np.int32), np.empty((n, 56), np.float32)
    k.text_kinds(code, kind)
    k.text_keys(offset, code, kind, key)
    k.word_features(offset, code, kind, box, row, line, key, glue, out, line_height=height)
    return out, ref.word_features(offset, code, box, row, line, key, glue, height)


@pytest.mark.parametrize("n", [0, 1, 2, 9, 64, 150])
@pytest.mark.parametrize("make", [random_texts, amount_texts])
def test_equals_reference(path, rng, n, make):
    texts = make(rng, n)
    box, line = random_boxes(rng, n)
    order, row = order_of(box, line, texts)
    glue = rng.integers(0, 2, n).astype(np.uint8)
    got, want = features([texts[i] for i in order], np.ascontiguousarray(box[order]), row, line[order], glue, 9.5)
    assert same_bits(got, want)
    assert np.isfinite(got).all() and (got >= 0).all() and (got <= 2).all()


AMOUNTS = {
    "12.00": 1200, "RM12.50": 1250, "1,234.50": 123450, "1.234,50": 123450, "1'234.50": 123450,
    "1\u2019234.50": 123450, "1 234,56": 123456, "12,50": 1250, "12345.67": 1234567, "(5.00)": 500, "-5.00": 500,
    "5.00-": 500, "$0.05": 5, "20,000": 2000000, "1.234.567": 123456700, "0.00": 0, "١٢.٥٠": 1250,
    "9999999999999": None, "99999999999.99": 9999999999999, "999999999999.99": None, "12": None, "12.5": None,
    "12.345": 1234500, "0.345": None, "1.234.56": None, "1,23,456": None, "12.00%": None, "USD 12.00": None,
    "12/03/2018": None, "": None, "1234,567.00": None, "12.00 RM": None, ".50": None, "9" * 10_000: None}


@pytest.mark.parametrize("word, value", AMOUNTS.items(), ids=[repr(w[:20]) for w in AMOUNTS])
def test_amounts(word, value):
    got = ref.amount([ord(c) for c in word])
    assert (got and got[0]) == value
    if value:  # the kernel reads the same value: beside a word of a hundredth more, the share tells
        more = f"{(value + 100) // 100}{got[1]}{(value + 100) % 100:02d}"
        texts = [word, more] if got[1] else [word]
        box, zero = np.zeros((len(texts), 4)), np.zeros(len(texts), np.int32)
        out, want = features(texts, box, zero, zero, np.zeros(len(texts), np.uint8), 1.0)
        assert same_bits(out, want) and out[0, 39] == 1
        assert out[0, 40] == np.float32(value / (value + 100) if got[1] else 1)


def test_pages_of_very_many_amounts(path, rng):
    """Beyond 256 amounts the neighbours are no longer all amounts."""
    texts = [f"{v // 100}.{v % 100:02d}" for v in rng.integers(1, 3000, 700)]
    box, line = random_boxes(rng, 700)
    order, row = order_of(box, line, texts)
    glue = np.zeros(700, np.uint8)
    got, want = features([texts[i] for i in order], np.ascontiguousarray(box[order]), row, line[order], glue, 9.5)
    assert same_bits(got, want)


def test_total_cash_change():
    """Relations of the amounts of a receipt: 7.00 + 3.00 = 10.00, paid 20.00, change 10.00."""
    texts = ["7.00", "3.00", "Total", "10.00", "Cash", "20.00", "Change", "10.00"]
    n = len(texts)
    box = np.array([[80, 20 * i, 100, 20 * i + 10] for i in range(n)], np.float64)
    row = np.arange(n, dtype=np.int32)
    out, want = features(texts, box, row, row, np.zeros(n, np.uint8), 10.0)
    assert same_bits(out, want)
    money = out[:, 39:]
    assert money[3, 8] == 1 and money[3, 5] == 1 and money[3, 15] == 1  # running total, a sum, the sum above it
    assert money[3, 9] == 1 and money[5, 10] == 1 and money[7, 11] == 1  # total, cash, change
    assert money[5, 2] == 1 and money[7, 16] == 1 and (money[[2, 4, 6]] == 0).all()


def test_the_page_decides_on_the_decimal_sign():
    """Cases io-08, io-11: "31,31" is an amount where most amounts have a comma."""
    for texts, wanted in ((["5.00", "31,31", "6.00"], [1, 0, 1]), (["5,00", "31,31", "6.00"], [1, 1, 0]),
                          (["5.00", "31,31", "20,000"], [1, 0, 0]), (["20,000", "Total", "1.000"], [1, 0, 1])):
        zero = np.zeros(3, np.int32)
        out, want = features(texts, np.zeros((3, 4)), zero, zero, np.zeros(3, np.uint8), 1.0)
        assert same_bits(out, want) and out[:, 39].tolist() == wanted


def test_title_and_digits_follow_the_committed_table():
    texts = ["Total", "TOTAL", "total", "McDonald", "É1a", "１２", "²", "x²"]
    n = len(texts)
    zero = np.zeros(n, np.int32)
    out, want = features(texts, np.zeros((n, 4)), zero, zero, np.zeros(n, np.uint8), 1.0)
    assert same_bits(out, want)
    assert out[:, 5].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert out[:, 6].tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
    assert text.kind(0xB2)[0] == text.OTHER


def test_wrong_arguments_are_named():
    texts, box, zero = ["a", "b"], np.zeros((2, 4)), np.zeros(2, np.int32)
    glue = np.zeros(2, np.uint8)
    with pytest.raises(ValueError, match=r"row\[1\] = 0: expected 1 to 1"):
        features(texts, box, np.array([1, 0], np.int32), zero, glue, 1.0)
    with pytest.raises(ValueError, match="line_height = nan"):
        features(texts, box, zero, zero, glue, float("nan"))
    with pytest.raises(ValueError, match=r"box\[0, 0\] = inf"):
        features(texts, box + np.inf, zero, zero, glue, 1.0)
    with pytest.raises(ValueError, match=r"glue has shape \(1,\): expected \(2,\)"):
        features(texts, box, zero, zero, glue[:1], 1.0)
