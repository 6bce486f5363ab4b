"""JSON as files of pages are read: what other readers let pass, or pass differently, is an error that names it."""
import json
import re

DEEPEST = 64  # arrays and objects inside one another
LONGEST_INTEGER = 4300  # digits; CPython's own limit, which a user can move

_OUTSIDE_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"?', re.S)
_BRACKET = re.compile(r"[\[\]{}]")


class StrictJSONError(ValueError):
    """The text is no JSON, or JSON that is refused; the message says what and where."""


def loads(text):
    """The value of a JSON text.

    Parameters
    ----------
    text : str

    Raises
    ------
    StrictJSONError
        Not JSON; NaN or Infinity; a number too large for binary64; a key that stands twice in an object; an integer of
        more than 4,300 digits; more than 64 arrays and objects inside one another.

    Examples
    --------
    >>> loads('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise StrictJSONError(f"not JSON: {error.msg} (character {error.pos})") from None


def _check_depth(text):
    depth = 0
    for bracket in _BRACKET.findall(_OUTSIDE_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise StrictJSONError(f"more than {DEEPEST} arrays and objects inside one another")


def _object(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise StrictJSONError(f"the key {key!r} stands twice in an object")
            seen.add(key)
    return result


def _constant(name):
    raise StrictJSONError(f"{name} is no JSON number")


def _float(digits):
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise StrictJSONError(f"the number {_short(digits)} is too large for binary64")
    return value


def _integer(digits):
    if len(digits.lstrip("-")) > LONGEST_INTEGER:
        raise StrictJSONError(f"the integer {_short(digits)} has more than {LONGEST_INTEGER} digits")
    return int(digits)


def _short(digits):
    return digits if len(digits) <= 20 else digits[:10] + "…" + digits[-4:]


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_integer)
