"""A field's value as text, and whether a text on a page is that value: exactly, after which normalisation, or not."""
from dataclasses import dataclass, field

from .amounts import read_amount, reduced
from .below import canonical_bytes
from .dates import read_date
from .texts import differences, key, plain

EXACT, SPELLED, READ, MENDED = 0, 1, 2, 3  # ranks of a match: the lower the surer


def value_text(value):
    """A labelled value as text: a string as it is, a number as RFC 8785 JSON writes it.

    Raises
    ------
    TypeError: neither string nor number
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value) if isinstance(value, int) else canonical_bytes(value).decode("ascii")
    raise TypeError(f"the value {value!r} is neither a string nor a number")


@dataclass(frozen=True)
class Value:
    """A value of a field, prepared for comparing: its text, its key, and what it says (readings of its type: decimal
    numbers as reduced pairs, Dates; none where it cannot be read), whether it has a
    decimal part."""
    field: object
    text: str
    key: str = ""
    readings: tuple = ()
    currency: str | None = None
    cents: bool = False
    kind: str = field(default="", compare=False)


def prepare(field, text):
    """A Value of a field's text."""
    readings, currency, cents = (), None, False
    if field.type in ("amount", "number"):
        amount = read_amount(text, field.decimal, currency=field.type == "amount")
        readings, currency = tuple(reduced(v) for v in amount.values), amount.currency
        cents = any("." in v for v in amount.values)
    elif field.type == "date":
        readings = read_date(text, field.date_order).values
    return Value(field, text, key(text), readings, currency, cents, field.type)


@dataclass(frozen=True)
class Match:
    """rank: EXACT, SPELLED (same letters and digits), READ (the same number or day), MENDED (the same after OCR slips
    are mended) · how: names of what was normalised"""
    rank: int
    how: tuple = ()


def compare(value, text, order=None):
    """Is a text of the page this value?

    Parameters
    ----------
    value : Value
    text : str, words joined as they stand on the page
    order : "dmy", "mdy" or None; the order of dates that the page settles, used where the field gives none

    Returns
    -------
    Match or None
    """
    if text == value.text:
        return Match(EXACT)
    spelled = key(text) == value.key != ""
    if value.kind in ("text", "code"):
        return Match(SPELLED, differences(value.text, text)) if spelled else None
    same, how, read = (_same_number if value.kind != "date" else _same_date)(value, text, order)
    if spelled and (same or not read or not value.readings):
        return Match(SPELLED, differences(value.text, text))
    if same:
        return Match(MENDED if "OCR" in how else READ, how)
    return None


def _same_number(value, text, order):
    decimal, amount = value.field.decimal, value.kind == "amount"
    read = ()
    for slips in (False, True):
        found = read_amount(text, decimal, slips=slips, currency=amount)
        if not slips:
            read = found.values
        if not value.readings or not any(reduced(v) in value.readings for v in found.values):
            continue
        how = ["figures"]
        if found.currency != value.currency:
            if found.currency and value.currency:
                return False, (), read  # two different currencies: another amount
            how.append("currency")
        if found.ambiguous or len(value.readings) > 1:
            how.append("ambiguous decimal sign")
        if slips:
            how.append("OCR")
        return True, tuple(how), read
    return False, (), read


def _same_date(value, text, order):
    order = value.field.date_order or order
    read = ()
    for slips in (False, True):
        found = read_date(text, order, slips=slips)
        if not slips:
            read = found.values
        if not any(one.same(other) for one in value.readings for other in found.values):
            continue
        how = ["date"]
        if found.ambiguous or len(value.readings) > 1:
            how.append("ambiguous order")
        if slips:
            how.append("OCR")
        return True, tuple(how), read
    return False, (), read


def normal_form(field, text):
    """(normalised text, problem): an amount or number as a decimal string, a date as YYYY-MM-DD (xx for an open
    century), anything else with its white space as single spaces; with a problem the text is None."""
    if field.type in ("amount", "number"):
        found = read_amount(text, field.decimal, currency=field.type == "amount")
    elif field.type == "date":
        found = read_date(text, field.date_order)
    else:
        return plain(text), None
    return (None if found.value is None else str(found.value)), found.problem
