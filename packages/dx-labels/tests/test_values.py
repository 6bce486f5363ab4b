"""Amounts, dates and texts as documents print them; the cases io-08 to io-17."""
import os
import subprocess
import sys

import pytest
from dx_labels.amounts import read_amount, same_number
from dx_labels.dates import Date, read_date, settled_order
from dx_labels.month_names import MONTHS
from dx_labels.schema import Field
from dx_labels.texts import differences, key
from dx_labels.values import compare, normal_form, prepare, value_text


def amount(text, decimal=None):
    return read_amount(text, decimal).value


def test_io_08_the_decimal_sign_is_the_fields_never_the_hosts():
    assert amount("27,80", ",") == "27.80"
    refused = read_amount("27,80", ".")
    assert refused.values == () and "27,80" in refused.problem
    assert amount("1.234,56", ",") == amount("1,234.56", ".") == "1234.56"
    assert amount("1\u00a0234,56", ",") == amount("1\u202f234,56", ",") == "1234.56"


def test_io_10_swiss_apostrophes():
    assert [amount(t) for t in ("1'234.50", "1\u2019234.50", "12\u02bc345")] == ["1234.50", "1234.50", "12345"]


def test_io_11_grouping_is_checked():
    assert [amount(t) for t in ("1.000,00", "12.345.678,9", "1.00,0")] == ["1000.00", "12345678.9", None]


def test_io_13_brackets_are_a_minus_and_must_match():
    texts = ["($100.00)", "(1.234,56)", "( 12 )", "(12"]
    assert [amount(t) for t in texts] == ["-100.00", "-1234.56", "-12", None]


def test_io_14_every_minus():
    assert {amount(t) for t in ("\u22125,00", "\u20135,00", "\uff0d5,00", "-\u00a05,00")} == {"-5.00"}


@pytest.mark.parametrize("text, value, currency", [
    ("RM8.20", "8.20", "MYR"), ("8.20 EUR", "8.20", "EUR"), ("$ (8.20)", "-8.20", "$"), ("CHF 1'234.50", "1234.50",
                                                                                         "CHF"),
    ("5,-", "5", None), ("5.00-", "-5.00", None), (".50", "0.50", None), ("1,23,456.00", "123456.00", None),
    ("Rp 1.500.000", "1500000", "IDR"), ("S$ 12", "12", "SGD"), ("0,123", "0.123", None), ("-0.00", "0.00", None),
    ("00012", "12", None), ("٣٫٥", None, None), ("١٢", "12", None), ("12.", None, None), ("--5", None, None),
    ("(-5)", None, None), ("RM", None, None), ("", None, None), ("1 23", None, None), ("12%", None, None),
])
def test_amounts(text, value, currency):
    found = read_amount(text)
    assert (found.value, found.currency if value else None) == (value, currency)


def test_two_readings_are_both_given_and_named():
    found = read_amount("1,234")
    assert found.values == ("1234", "1.234") and found.ambiguous and found.value is None
    assert "1234 or 1.234" in found.problem
    assert amount("1,234", ".") == "1234" and amount("1,234", ",") == "1.234"


def test_ocr_slips_count_only_beside_digits():
    assert read_amount("1O.S0", slips=True).value == "10.50"
    assert read_amount("RM1O.S0", slips=True).value == "10.50"
    assert read_amount("1O.S0").value is None
    assert read_amount("SOS", slips=True).value is None
    assert read_amount("lOO.1O", slips=True).value is None  # more letters than digits


def test_numbers_are_exact_at_any_size():
    assert same_number("9007199254740993.10", "9007199254740993.1")
    assert not same_number("9007199254740993", "9007199254740992")
    assert not same_number("0.1", "0.10000000000000001")


def dates(text, order=None):
    return [str(d) for d in read_date(text, order).values]


def test_io_16_one_order_for_a_page():
    page = ["19/04/2018", "05/04/2018"]
    order = settled_order(page)
    assert [dates(t, order) for t in page] == [["2018-04-19"], ["2018-04-05"]]
    assert [dates(t, "dmy") for t in page] == [["2018-04-19"], ["2018-04-05"]]
    alone = read_date("05/04")
    assert alone.ambiguous and "can be" in alone.problem and settled_order(["05/04/2018"]) is None
    assert settled_order([*page, "04/19/2018"]) is None


PROBE = """
import datetime, sys
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(int(sys.argv[1]), 2, 3)
datetime.datetime = Clock
from dx_labels.dates import read_date
print([str(d) for t in ("18 sausis", "18 1\\u6708", "5/4/18") for d in read_date(t).values])
"""


def test_io_17_no_year_is_taken_from_the_clock():
    assert dates("18 sausis") == dates("18 1月") == ["--01-18"]
    runs = [subprocess.run([sys.executable, "-c", PROBE, year], capture_output=True, text=True, check=True,
                           env={**os.environ, "TZ": zone}).stdout for year, zone in (("1999", "UTC"), ("2031",
                                                                                                       "Asia/Tokyo"))]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("text, expected", [
    ("12. März 2018", "2018-03-12"), ("12. Mrz 2018", "2018-03-12"), ("March 12, 2018", "2018-03-12"),
    ("12MAR2018", "2018-03-12"), ("12 de marzo de 2018", "2018-03-12"), ("1er août 2018", "2018-08-01"),
    ("1er aout 2018", "2018-08-01"), ("3 gennaio 2019", "2019-01-03"), ("3 de março de 2019", "2019-03-03"),
    ("3 maart 2019", "2019-03-03"), ("3 Ogos 2019", "2019-08-03"), ("17 Agustus 1945", "1945-08-17"),
    ("Mon, 12 Mar 2018", "2018-03-12"), ("2018-03-12", "2018-03-12"), ("20180312", "2018-03-12"),
    ("25 / 03 / 2018", "2018-03-25"), ("12-MAR-18", "xx18-03-12"), ("29/02/2020", "2020-02-29"),
    ("2018年1月18日", "2018-01-18"),
])
def test_dates(text, expected):
    assert dates(text) == [expected]


@pytest.mark.parametrize("text", ["29/02/2019", "31/04/2018", "MARCH 2018", "99/99/99", "12/03/2018 10:32", "",
                                  "100.00", "12 FOO 2018", "1/2/3/4", "12-03-018"])
def test_what_is_no_date(text):
    assert dates(text) == []


def test_short_years_agree_with_any_century_and_missing_ones_with_none():
    short, long, none = Date(18, 3, 12, True), Date(2018, 3, 12), Date(None, 3, 12)
    assert short.same(long) and long.same(short) and short.same(Date(1918, 3, 12))
    assert not long.same(Date(1918, 3, 12)) and not none.same(long) and none.same(none)


def test_month_names_are_twelve_in_every_language():
    assert set(MONTHS.values()) == set(range(1, 13))
    assert MONTHS["AOÛT"] == MONTHS["AOUT"] == MONTHS["OGOS"] == 8


def test_keys_hold_letters_and_digits_alone():
    assert key("No. 2 & 4, Straße") == "NO24STRASSE"
    assert key("ＡＢ\u00a0１\u200b") == "AB1" and key("٣") == "3" and key("\u0378 \ud800") == "" and key("№") == "NO"


def test_differences_name_the_steps_that_are_needed():
    assert differences("Sdn Bhd", "SDN BHD") == ("case",)
    assert differences("A.B", "AB") == ("punctuation",)
    assert differences("ＡＢ", "AB") == ("unicode",)
    assert differences("A B", "AB") == ("spaces",)
    assert differences("a-b c", "AB C") == ("case", "punctuation")
    assert differences("x", "x") == ()


def test_compare_says_how():
    total, day = Field("total", "amount"), Field("day", "date")
    assert compare(prepare(total, "8.20"), "8.20").how == ()
    assert compare(prepare(total, "1234.56"), "1.234,56").how == ("punctuation",)
    assert compare(prepare(total, "1234.5"), "1.234,50").how == ("figures",)
    assert compare(prepare(total, "8.20"), "RM 8.20").how == ("figures", "currency")
    assert compare(prepare(total, "$8.2"), "€8.20") is None
    assert compare(prepare(total, "8.20"), "-8.20") is None and compare(prepare(total, "8.20"), "820") is None
    assert compare(prepare(total, "10.50"), "1O.S0").how == ("figures", "OCR")
    assert compare(prepare(day, "2018-03-12"), "12 MAR 18").how == ("date",)
    assert compare(prepare(day, "2018-03-05"), "05/03/2018").how == ("date", "ambiguous order")
    assert compare(prepare(day, "2018-03-05"), "05/03/2018", "mdy") is None
    assert compare(prepare(Field("no", "code"), "A10"), "AlO") is None  # no slips where O and 0 may both be meant
    assert compare(prepare(Field("no", "code"), "A-10"), "a10").how == ("case", "punctuation")


def test_normal_forms_and_value_texts():
    assert normal_form(Field("t", "amount"), "RM 1,234.50") == ("1234.50", None)
    assert normal_form(Field("t", "amount"), "1,234")[0] is None
    assert normal_form(Field("d", "date", date_order="dmy"), "5.4.2018") == ("2018-04-05", None)
    assert normal_form(Field("c"), " a \t b ") == ("a b", None)
    assert [value_text(v) for v in ("x", 12, 279.84, 1e21)] == ["x", "12", "279.84", "1e+21"]
    with pytest.raises(TypeError):
        value_text(True)
