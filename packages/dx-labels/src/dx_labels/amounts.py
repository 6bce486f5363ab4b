"""Amounts and numbers as documents print them, read exactly: a decimal string or a refusal, never a float.

The text alone decides, with the decimal sign of the field where the schema gives one; never the host's locale. A text
that can be read in two ways ("1.234") gives both readings and is ambiguous.
"""
import re
from dataclasses import dataclass
from functools import lru_cache

from .texts import plain

MINUS = dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\u2014\u2015\ufe63\uff0d"), "-")
APOSTROPHES = dict.fromkeys(map(ord, "\u2019\u2018\u02bc\u2032`\u00b4\uff07"), "'")
CURRENCIES = {  # as printed, upper-cased → ISO 4217 code, or the sign itself where it stands for several currencies
    "$": "$", "US$": "USD", "A$": "AUD", "C$": "CAD", "S$": "SGD", "HK$": "HKD", "NT$": "TWD", "R$": "BRL",
    "NZ$": "NZD", "€": "EUR", "£": "GBP", "¥": "¥", "₹": "INR", "RS": "RS", "RS.": "RS", "RM": "MYR", "RP": "IDR",
    "RP.": "IDR", "KR": "KR", "KR.": "KR", "ZŁ": "PLN", "KČ": "CZK", "FT": "HUF", "FR.": "CHF", "FR": "CHF",
    "SFR": "CHF", "SFR.": "CHF", "₺": "TRY", "TL": "TRY", "₽": "RUB", "₩": "KRW", "₱": "PHP", "฿": "THB", "₫": "VND",
    "₦": "NGN", "₴": "UAH", "₪": "ILS", "元": "CNY", "円": "JPY",
}
CURRENCIES.update({code: code for code in (
    "AED AUD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NGN NOK NZD PEN PHP "
    "PKR PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR").split()})
_SIGNS = "|".join(re.escape(s) for s in sorted(CURRENCIES, key=lambda s: (-len(s), s)))
_BEFORE = re.compile(rf"({_SIGNS})(?=[\s0-9(+\-.,'OILSBZ|])\s*", re.I)
_AFTER = re.compile(rf"\s*(?<=[\s0-9)\-.,'OILSBZ|])({_SIGNS})$", re.I)
_NO_CENTS = re.compile(r"([0-9])[.,]-{1,2}$")
_FORMS = tuple(re.compile(rf"(?P<whole>{whole})(?:(?P<point>[.,])(?P<cents>[0-9]+))?") for whole in (
    r"[1-9][0-9]{0,2}(?P<group>[.,' ])[0-9]{3}(?:(?P=group)[0-9]{3})*",  # thousands
    r"[1-9][0-9]?(?P<group>,)(?:[0-9]{2},)+[0-9]{3}",  # lakhs and crores
    r"(?P<group>)[0-9]*"))
SLIPS = dict(zip(map(ord, "OoQDlI|!SsBZz"), "0000111155822"))  # what OCR takes for a digit, in an amount


@dataclass(frozen=True)
class Amount:
    """What a text says: `values` holds every reading as a decimal string ("-1234.50"), none when it is refused, more
    than one when it is ambiguous; `problem` says why there is not exactly one."""
    values: tuple = ()
    currency: str | None = None
    problem: str | None = None

    @property
    def value(self):
        """The one reading, or None."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def ambiguous(self):
        return len(self.values) > 1


@lru_cache(maxsize=65536)
def read_amount(text, decimal=None, *, slips=False, currency=True):
    """Reads an amount.

    Parameters
    ----------
    text : str
    decimal : ".", "," or None (both are tried)
    slips : bool; letters that OCR takes for digits (O 0, l 1, S 5, B 8, Z 2) count as digits when at least half of the
        figures are digits
    currency : bool; a currency sign or code may stand before or after

    Returns
    -------
    Amount

    Examples
    --------
    >>> read_amount("(1.234,56)").value
    '-1234.56'
    >>> read_amount("1,234").values
    ('1234', '1.234')
    """
    s = plain(text).translate(MINUS).translate(APOSTROPHES)
    core, negative, sign = _outside(s, currency)
    if core is None:
        return Amount((), sign, f"{text!r}: brackets or signs do not match")
    if slips:
        core = _mend(core)
    values = _readings(core, decimal)
    if not values:
        hint = f" with the decimal sign {decimal!r}" if decimal else ""
        return Amount((), sign, f"{text!r} is no amount{hint}")
    values = tuple(f"-{v}" if negative and v.strip("0.") else v for v in values)
    return Amount(values, sign, f"{text!r} can be {' or '.join(values)}" if len(values) > 1 else None)


def _outside(s, currency):
    """(figures, negative, currency): brackets, signs and currency taken off, each at most once; figures None when they
    do not match."""
    negative = bracket = sign = False
    found = None
    while True:
        s = s.strip()
        m = _BEFORE.match(s) if currency and found is None else None
        if m:
            found, s = CURRENCIES[m[1].upper()], s[m.end():]
            continue
        m = _AFTER.search(s) if currency and found is None else None
        if m and m.start() > 0:
            found, s = CURRENCIES[m[1].upper()], s[:m.start()]
            continue
        if s[:1] == "(" or s[-1:] == ")":
            if bracket or sign or len(s) < 2 or s[0] != "(" or s[-1] != ")":
                return None, False, found
            bracket = negative = True
            s = s[1:-1]
            continue
        if not sign and _NO_CENTS.search(s):
            s = s[:_NO_CENTS.search(s).end(1)]
            continue
        edge = s[:1] if s[:1] in ("-", "+") else s[-1:] if s[-1:] == "-" else ""
        if not edge:
            return s, negative, found
        if sign or bracket:
            return None, False, found
        sign, negative = True, edge == "-"
        s = s[1:] if s[0] == edge else s[:-1]


def _mend(core):
    digits = mended = 0
    for c in core:
        digits += "0" <= c <= "9"
        mended += ord(c) in SLIPS
    return core.translate(SLIPS) if mended and digits >= mended else core


def _readings(core, decimal):
    """Decimal strings, whole numbers before fractions."""
    found = []
    for form in _FORMS:
        m = form.fullmatch(core)
        if not m or not core:
            continue
        group, point = m["group"], m["point"]
        if point and point == group or decimal and (group == decimal or point not in (None, decimal)):
            continue
        whole = re.sub("[^0-9]", "", m["whole"]).lstrip("0") or "0"
        value = f"{whole}.{m['cents']}" if point else whole
        if value not in found:
            found.append(value)
    return tuple(found)


def same_number(one, other):
    """Are two decimal strings the same number? Trailing zeros do not matter; bool."""
    return reduced(one) == reduced(other)


def reduced(value):
    """(whole number, decimals) of a decimal string, trailing zeros off: value = number / 10^decimals."""
    negative = value.startswith("-")
    whole, _, fraction = value.lstrip("-").partition(".")
    fraction = fraction.rstrip("0")
    number = int(whole + fraction)
    return (-number if negative else number), len(fraction)
