"""Correctly rounded results of dx's functions from decimal arithmetic alone, and the rows of golden/functions.csv.

`python function_oracle.py` writes that file anew from the installed dx_numerics: function, input, result, correctly
rounded result, the last three as hexadecimal encodings of binary32 or binary64.
"""
import decimal
import math
import re
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import dx_numerics
import numpy as np

GOLDEN = Path(__file__).with_name("golden") / "functions.csv"
NAMES32 = ["exp32", "tanh32", "erf32", "sigmoid32", "rsqrt32"]
NAMES64 = ["exp64", "log64", "log1p64", "softplus64"]
INF, NAN = math.inf, math.nan
TINY = Decimal("1e-2000")


def decode(text):
    """Encoding in hexadecimal (8 or 16 digits) → float."""
    return struct.unpack(">f" if len(text) == 8 else ">d", bytes.fromhex(text))[0]


def encode(x, width):
    """Float (exactly a number of that width) → encoding in hexadecimal; one NaN."""
    if math.isnan(x):
        return "7fc00000" if width == 32 else "7ff8000000000000"
    return struct.pack(">f" if width == 32 else ">d", x).hex()


def rounded(value, width):
    """A nonzero Decimal rounded to nearest even in binary32 or binary64, as a float; overflow gives an infinity."""
    v = abs(Fraction(value))
    digits, least, top = (24, -149, 128) if width == 32 else (53, -1074, 1024)
    e = v.numerator.bit_length() - v.denominator.bit_length()
    e -= v < Fraction(2) ** e
    unit = max(e - digits + 1, least)
    n = round(v / Fraction(2) ** unit)
    result = INF if n.bit_length() + unit > top else math.ldexp(n, unit)
    return -result if value < 0 else result


def _exp(x):
    return x.exp() if abs(x) < 2000 else TINY if x < 0 else 1 / TINY


def _tanh(x):
    if abs(x) > 1000:
        return (1 - TINY).copy_sign(x)
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def _erf(x):
    if abs(x) > 12:
        return (1 - Decimal("1e-60")).copy_sign(x)
    term, total, k = x, x, 0
    while abs(term) > abs(total) * Decimal("1e-120"):
        k += 1
        term = -term * x * x / k
        total += term / (2 * k + 1)
    return total * 2 / PI_ROOT


def _log1p(x):
    return (1 + x).ln()


EXACT = {
    "exp": _exp, "tanh": _tanh, "erf": _erf, "sigmoid": lambda x: 1 / (1 + _exp(-x)), "rsqrt": lambda x: 1 / x.sqrt(),
    "log": Decimal.ln, "log1p": _log1p, "softplus": lambda x: _log1p(_exp(x)) if x < 2000 else x,
}
# What the functions say at places that decimal arithmetic cannot decide.
SPECIAL = {
    "exp": {INF: INF, -INF: 0.0, 0.0: 1.0}, "tanh": {INF: 1.0, -INF: -1.0}, "erf": {INF: 1.0, -INF: -1.0},
    "sigmoid": {INF: 1.0, -INF: 0.0, 0.0: 0.5}, "rsqrt": {INF: 0.0, -INF: NAN},
    "log": {INF: INF, -INF: NAN, 0.0: -INF, 1.0: 0.0}, "log1p": {INF: INF, -INF: NAN, -1.0: -INF},
    "softplus": {INF: INF, -INF: 0.0},
}
with decimal.localcontext() as context:
    context.prec = 140
    # pi by Machin's formula: 16 atan(1/5) - 4 atan(1/239)
    PI_ROOT = (sum(Decimal((-1) ** k) * (Decimal(16) / 5 ** (2 * k + 1) - Decimal(4) / 239 ** (2 * k + 1)) / (2 * k + 1)
                   for k in range(110))).sqrt()


def correctly_rounded(name, x):
    """The correctly rounded f(x) of a function name such as exp32, as a float."""
    function, width = name[:-2], int(name[-2:])
    if math.isnan(x) or x in SPECIAL[function]:
        return SPECIAL[function].get(x, NAN)
    if x == 0 and function != "softplus":
        return math.copysign(INF, x) if function == "rsqrt" else x
    if (function in ("rsqrt", "log") and x < 0) or (function == "log1p" and x < -1):
        return NAN
    with decimal.localcontext() as context:
        context.prec = 140
        context.Emax, context.Emin = 10**9, -(10**9)
        if function in ("tanh", "log1p") or (function == "softplus" and x < 0):
            context.prec = 140 + (700 if abs(x) > 30 else int(abs(Decimal(x).adjusted())))
        return rounded(EXACT[function](Decimal(x)), width)


def neighbours(*numbers, width):
    """Each number with the encodings beside it, and all their negatives."""
    for x in numbers:
        n = int(encode(x, width), 16)
        for y in (n - 1, n, n + 1):
            text = f"{y:0{width // 4}x}"
            yield decode(text)
            yield -decode(text)


def _hex(*texts):
    return [float.fromhex(t) for t in texts]


def _narrow(x):
    return struct.unpack("f", struct.pack("f", x))[0]


EDGES32 = {
    "exp32": _hex("0x1.62e42ep+6", "0x1.5d589ep+6", "0x1.9d1d9ep+6", "0x1.9fe368p+6", "0x1.ap+6", "0x1p+6"),
    "tanh32": _hex("0x1.4p+3", "0x1.205966p+3", "0x1.62e43p-3", "0x1p-12"),
    "erf32": _hex("0x1.f8p+1", "0x1.ea7p+1", "0x1p-12"),
    "sigmoid32": _hex("0x1.ap+6", "0x1.9fe368p+6", "0x1.5d589ep+6", "0x1.0a2b24p+4", "0x1.8p-22"),
    "rsqrt32": _hex("0x1p+2", "0x1p-148", "0x1.fffffep+127"),
}
# Worst inputs of each function, from the headers, and numbers whose results are known to lie very near a midpoint.
EDGES64 = {
    "exp64": _hex("0x1.62e42fefa39efp+9", "0x1.6232bdd7abcd2p+9", "0x1.74910d52d3051p+9", "0x1.75p+9", "0x1p+9",
                  "0x1.62e42fefa39efp-2", "0x1.9e9cbbfd6080bp-31", "0x1.e8bdbfcd9144ep+3"),
    "log64": _hex("0x1.6a09e667f3bcdp+0", "0x1.6a09e667f3bcdp-1", "0x1p-1022", "0x1.fffffffffffffp+1023", "0x1p-1073",
                  "0x1.62a88613629b6p+678", "0x1.ea71d85cee020p+509"),
    "log1p64": _hex("0x1.a827999fcef32p-2", "0x1.2bec333018866p-2", "0x1p+53", "0x1p-53", "0x1.fffffffffffffp-1"),
    "softplus64": _hex("0x1.74910d52d3051p+9", "0x1.2p+5", "0x1.62e42fefa39efp-1", "0x1.6232bdd7abcd2p+9"),
}
COMMON32 = [0.0, -0.0, INF, -INF, NAN, *_hex("0x1p-149", "-0x1p-149", "0x1.fffffep+127", "-0x1.fffffep+127")]
COMMON64 = [0.0, -0.0, INF, -INF, NAN, *_hex("0x1p-1074", "-0x1p-1074", "0x1.fffffffffffffp+1023",
                                             "-0x1.fffffffffffffp+1023")]


def inputs(name, worst):
    """Every golden input of a function; `worst` is its worst input, from the header."""
    width = int(name[-2:])
    if width == 32:
        rows = COMMON32 + list(neighbours(*_hex("0x1.fffffcp-127", "0x1p-126", "0x1p-24", "0x1p+0"), width=32))
        rows += neighbours(*EDGES32[name], abs(worst), width=32)
        rows += [_narrow(sign * 1.37 ** k) for k in range(-40, 16, 2) for sign in (1, -1)]
    else:
        rows = COMMON64 + list(neighbours(*_hex("0x1p-1022", "0x1p-53", "0x1p+0"), width=64))
        rows += neighbours(*EDGES64[name], abs(worst), width=64)
        rows += [sign * 1.37 ** k for k in range(-60, 22, 3) for sign in (1, -1)]
    return sorted({encode(x, width) for x in rows})


def worst_inputs():
    """name → (worst, at, wrong or None) as the installed headers state them."""
    found = {}
    for header in ("math32.h", "math64.h"):
        text = (Path(dx_numerics.get_include()) / "dx_numerics" / header).read_text(encoding="utf-8")
        for name, worst, at, wrong in re.findall(
                r"^ \* ulp (\w+): worst ([\d.]+) at (-?0x[\da-f.]+p[+-]\d+)(?: wrong (\d+))?(?: \*/)?$", text, re.M):
            found[name] = (float(worst), float.fromhex(at), int(wrong) if wrong else None)
    return found


def read():
    """Rows of golden/functions.csv: (function, x, result, correctly rounded), encodings as text."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "function,x,result,correctly_rounded"
    return [tuple(line.split(",")) for line in lines[1:]]


def main():
    lines = ["function,x,result,correctly_rounded"]
    for name in NAMES32 + NAMES64:
        width = int(name[-2:])
        for text in inputs(name, worst_inputs()[name][1]):
            x = decode(text)
            result = float(getattr(dx_numerics, name)(np.array(x, f"f{width // 8}")))
            lines.append(f"{name},{text},{encode(result, width)},{encode(correctly_rounded(name, x), width)}")
    GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
