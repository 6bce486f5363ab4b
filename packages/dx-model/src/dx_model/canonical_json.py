"""RFC 8785 canonical JSON: bytes that depend on the value alone, for everything that is hashed."""
import json
import math


def _number(value: float) -> str:
    """ECMAScript's Number::toString, from the shortest digits that repr gives."""
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)  # value = 0.(whole+fraction) * 10**point
    point -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= point <= 21:
        return sign + digits + "0" * (point - k)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    tail = ("." + digits[1:]) if k > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power >= 0 else '-'}{abs(power)}"


def _string(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"the string {value!r} holds a lone surrogate") from None
    return json.dumps(value, ensure_ascii=False)


def _write(value) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        if abs(value) >= 2 ** 53:
            raise ValueError(f"the integer {value} is not exact in JSON: expected less than 2**53 in size")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_write(v) for v in value) + "]"
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is not a string")
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_string(key)}:{_write(value[key])}" for key in keys) + "}"
    raise ValueError(f"a {type(value).__name__} cannot be written as JSON")


def canonical(value) -> bytes:
    """RFC 8785 bytes of a value made of dict, list, str, int, float, bool and None."""
    return _write(value).encode("utf-8")
