"""Dates as documents print them. Figures that can be read in two orders give every reading; neither the clock nor the
host's locale decides, a year is never added, and a year of two figures keeps its century open."""
import re
from dataclasses import dataclass
from functools import lru_cache

from .month_names import FILLING, MONTHS, WEEKDAYS, without_accents
from .texts import plain

_TOKEN = re.compile(r"[0-9]+|[^\W0-9_]+|[^\w]+|_+")
_BETWEEN = re.compile(r"[ ./,\-'\u2019\u2010-\u2015\u2212]*")
_SLIPS = dict(zip(map(ord, "OoQlI|!"), "0001111"))
_CJK = dict(zip(map(ord, "年月日년월일"), "--\u0020--\u0020"))
LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, order=True)
class Date:
    """A day. year: None where none is printed; with short=True its last two figures alone."""
    year: int | None
    month: int
    day: int
    short: bool = False

    def __str__(self):
        year = "-" if self.year is None else f"xx{self.year:02d}" if self.short else f"{self.year:04d}"
        return f"{year}-{self.month:02d}-{self.day:02d}"

    def same(self, other):
        """The same day as far as both say? A year of two figures agrees with any century; a missing year only with a
        missing one; bool."""
        if (self.month, self.day) != (other.month, other.day) or (self.year is None) != (other.year is None):
            return False
        if self.year is None:
            return True
        return self.year % 100 == other.year % 100 if self.short or other.short else self.year == other.year


@dataclass(frozen=True)
class DateReading:
    """Every reading of a text, none when it is refused; `problem` says why there is not exactly one. `numeric`: the
    order of day and month had to be found from the figures."""
    values: tuple = ()
    problem: str | None = None
    numeric: bool = False

    @property
    def value(self):
        """The one reading, or None."""
        return self.values[0] if len(self.values) == 1 else None

    @property
    def ambiguous(self):
        return len(self.values) > 1


@lru_cache(maxsize=65536)
def read_date(text, order=None, *, slips=False):
    """Reads a date.

    Parameters
    ----------
    text : str
    order : "dmy", "mdy", "ymd" or None; the order of figures where it is known. Four figures in front are a year in
        every order.
    slips : bool; O, l, I beside digits count as 0, 1, 1

    Returns
    -------
    DateReading

    Examples
    --------
    >>> [str(d) for d in read_date("05/04/2018").values]
    ['2018-04-05', '2018-05-04']
    >>> str(read_date("12. März 18").value)
    'xx18-03-12'
    """
    s = plain(text).translate(_CJK).strip(" .,-:;()")
    if slips and any("0" <= c <= "9" for c in s):
        s = re.sub(r"(?<![^\W0-9_OoQlI])[OoQlI|!]+(?=[0-9./\- ]|$)|(?<=[0-9])[OoQlI|!]+(?![^\W0-9_])",
                   lambda m: m[0].translate(_SLIPS), s)
    numbers, months, where = [], [], []
    for token in _TOKEN.findall(s.upper()):
        if token[0].isdecimal():
            numbers.append(token)
        elif token[0].isalpha():
            month = MONTHS.get(token) or MONTHS.get(without_accents(token))
            if month:
                where.append(len(numbers))
                months.append(month)
            elif token not in FILLING and token not in WEEKDAYS:
                return DateReading((), f"{text!r} is no date: {token!r}")
        elif not _BETWEEN.fullmatch(token):
            return DateReading((), f"{text!r} is no date: {token!r}")
    found = _figures(numbers, order) if not months else []
    if len(months) == 1:
        found = _named(numbers, months[0], where[0], order)
    values = tuple(sorted({d for d in found if d and _exists(d)}, key=lambda d: (str(d), d.short)))
    problem = None
    if len(values) != 1:
        problem = f"{text!r} can be {' or '.join(str(d) for d in values)}" if values else f"{text!r} is no date"
    return DateReading(values, problem, not months)


def _date(year, month, day):
    if not (1 <= len(day) <= 2 and len(month) <= 2) or year is not None and len(year) not in (2, 4):
        return None
    return Date(None if year is None else int(year), int(month), int(day), year is not None and len(year) == 2)


def _exists(date):
    if not 1 <= date.month <= 12 or not 1 <= date.day <= LENGTHS[date.month - 1]:
        return False
    if date.month != 2 or date.day < 29 or date.year is None:
        return True
    return date.year % 4 == 0 and (date.short or date.year % 100 != 0 or date.year % 400 == 0)


def _named(numbers, month, where, order):
    """Readings with a month's name that stands after `where` of the numbers."""
    month = str(month)
    if len(numbers) == 1:
        return [_date(None, month, numbers[0])] if len(numbers[0]) <= 2 else []
    if len(numbers) != 2:
        return []
    first, second = numbers
    if len(first) == 4 or order == "ymd" and len(second) <= 2 and where == 1:
        return [_date(first, month, second)]
    return [_date(second, month, first)]


def _figures(numbers, order):
    """Readings of figures alone."""
    if len(numbers) == 1 and len(numbers[0]) == 8:
        n = numbers[0]
        choices = {"ymd": (n[:4], n[4:6], n[6:]), "dmy": (n[4:], n[2:4], n[:2]), "mdy": (n[4:], n[:2], n[2:4])}
        plausible = {k: v for k, v in choices.items() if "1900" <= v[0] <= "2099"}
        return [_date(*v) for k, v in plausible.items() if order in (None, k) or k == "ymd"]
    if len(numbers) == 2:
        a, b = numbers
        return [_date(None, *v) for k, v in {"dmy": (b, a), "mdy": (a, b)}.items()
                if order in (None, k) or order == "ymd" and k == "mdy"]
    if len(numbers) != 3:
        return []
    a, b, c = numbers
    if len(a) == 4:
        return [_date(a, b, c)]
    choices = {"dmy": (c, b, a), "mdy": (c, a, b), "ymd": (a, b, c)}
    if len(c) == 4:
        del choices["ymd"]
    return [_date(*v) for k, v in choices.items() if order in (None, k)]


def settled_order(texts):
    """The order of day and month that the other dates of a page settle.

    Parameters
    ----------
    texts : iterable of str, the page's words (and runs of words)

    Returns
    -------
    "dmy" or "mdy" when some date in figures can be read in that order alone and none in the other alone; otherwise
    None

    Examples
    --------
    >>> settled_order(["19/04/2018", "05/04/2018"])
    'dmy'
    """
    only = []
    for text in texts:
        if len(text) < 6 or not any("0" <= c <= "9" for c in text) or text.isalnum():
            continue  # eight figures in a row may be any number
        for one, other in (("dmy", "mdy"), ("mdy", "dmy")):
            a, b = read_date(text, one), read_date(text, other)
            if a.numeric and a.values and not b.values and a.values[0].year is not None:
                only.append(one)
    return only[0] if only and all(o == only[0] for o in only) else None
