"""Column F: the unary binary32 functions of the model on all inputs (quick: every 4,099th), against binary64.

Reference values are numpy's binary64 exp and tanh, and the normal distribution from math.erfc by Taylor series; their
errors are below 2^-45 of the allowance. This file compares; it decides no bit of anything.
"""
import math

import numpy as np

from ...below import exp32, gelu_erf_backward, gelu_erf_forward, gelu_tanh_backward, gelu_tanh_forward, ieee_mode
from .report import Cell

CHUNK = 2**14  # inputs at a time: what the caches hold
STRIDE = 4099  # of bit patterns, in the quick form
UNIT = 2.0**-24
C0, C1 = math.sqrt(2 / math.pi), 0.044715

# row → (function, lowest and highest argument, largest error allowed in units of 2^-24 of the scale)
RANGES = {
    "exp (softmax)": ("exp", -87.33, 0.0, 1.45),
    "GELU tanh": ("gelu_tanh", -10.0, 10.0, 2.01),
    "GELU tanh slope": ("gelu_tanh_slope", -10.0, 10.0, 9.4),
    "GELU erf": ("gelu_erf", -14.0, 14.0, 1.004),
    "GELU erf slope": ("gelu_erf_slope", -14.0, 14.0, 1.01),
    "1 / sqrt (layer norm)": ("inverse_root", 1.0, 4.0, 2.99),  # times 4, exactly, from there to anywhere
}
# family of the table → rows above
OF = {"attention qkv": ("exp (softmax)",), "GELU tanh": ("GELU tanh", "GELU tanh slope"),
      "GELU erf": ("GELU erf", "GELU erf slope"), "layer norm input": ("1 / sqrt (layer norm)",)}


def run(full=False):
    """family → Cell."""
    found = {family: Cell() for family in OF}
    for family, rows in OF.items():
        for row in rows:
            worst, at, count = sweep(*RANGES[row][:3], 1 if full else STRIDE)
            allowed = RANGES[row][3]
            found[family].expect(worst <= allowed, count, f"{row}: error of {worst:.4f} at {at!r}: allowed {allowed}")
            found[family].notes[row] = f"{worst:.4f} of 2^-24, allowed {allowed:g}"
        found[family].notes["inputs"] = "all" if full else f"every {STRIDE}th"
    return found


def patterns(low, high, stride):
    """Arrays of all binary32 numbers from low to high, `stride` apart in bit patterns, by sign."""
    for sign, begin, end in ((1, max(low, 0.0), high), (-1, max(-high, 0.0) + 0.0, -low)):
        if end < begin:
            continue
        first, last = (int(np.float32(v).view(np.uint32)) for v in (begin, end))
        for start in range(first, last + 1, CHUNK * stride):
            bits = np.arange(start, min(start + CHUNK * stride, last + 1), stride, dtype=np.uint32)
            yield bits.view(np.float32) * np.float32(sign)


@ieee_mode()
def sweep(function, low, high, stride):
    """(worst error in units of 2^-24 of the scale, its argument, how many arguments)."""
    worst, at, count = -1.0, None, 0
    for x in patterns(low, high, stride):
        got, exact, scale = FUNCTIONS[function](x)
        error = np.abs(got.astype(np.float64) - exact) / (UNIT * scale)
        i = int(np.argmax(error))
        count += len(x)
        if not error[i] <= worst:  # NaN too
            worst, at = float(error[i]), float(x[i])
            if not np.isfinite(worst):
                return math.inf, at, count
    return worst, at, count


def one_ulp(exact):
    """Scale for "so many half ulps": half the distance of binary32 numbers at `exact`, in units of 2^-24: the power of
    two not above |exact|, which its exponent bits alone are."""
    powers = (exact.view(np.uint64) & np.uint64(0x7FF0000000000000)).view(np.float64)
    return np.maximum(powers, 2.0**-126)


def exp(x):
    exact = np.exp(x.astype(np.float64))
    return exp32(x), exact, one_ulp(exact)


def gelu_tanh(x):
    v, y = x.astype(np.float64), np.empty_like(x)
    gelu_tanh_forward(x, y)
    return y, 0.5 * v * (1 + np.tanh(C0 * (v + C1 * v * v * v))), np.maximum(np.abs(v), 2.0**-124)


def gelu_tanh_slope(x):
    v, y, t, slope = x.astype(np.float64), np.empty_like(x), np.empty_like(x), np.empty_like(x)
    gelu_tanh_forward(x, y, t)
    gelu_tanh_backward(np.ones_like(x), x, t, slope)
    tanh = np.tanh(C0 * (v + C1 * v * v * v))
    exact = 0.5 * (1 + tanh) + 0.5 * v * (1 - tanh * tanh) * C0 * (1 + 3 * C1 * v * v)
    return slope, exact, np.ones_like(v)


def gelu_erf(x):
    y = np.empty_like(x)
    gelu_erf_forward(x, y)
    exact = x.astype(np.float64) * normal_cdf(x.astype(np.float64))
    return y, exact, one_ulp(exact)


def gelu_erf_slope(x):
    v, slope = x.astype(np.float64), np.empty_like(x)
    gelu_erf_backward(np.ones_like(x), x, slope)
    exact = normal_cdf(v) + v * np.exp(-0.5 * v * v) / math.sqrt(2 * math.pi)
    near_zero = np.abs(v + 0.7517916) < 0.1  # there the error is absolute
    return slope, exact, np.where(near_zero, 1.0, one_ulp(exact))


def inverse_root(x):
    exact = 1 / np.sqrt(x.astype(np.float64))
    return np.float32(1) / np.sqrt(x), exact, one_ulp(exact)


NODES = 64  # a unit


def normal_cdf(x):
    """P(x) of float64 values in ascending or descending order of magnitude, about 2^-50 of its value.

    Around a node a, with h = x - a: P(x) = P(a) + exp(-a²/2)/sqrt(2 pi) (integral of exp(-a t - t²/2) from 0 to h),
    whose power series is summed; P(a) comes from math.erfc, so that small values keep their digits.
    """
    node = np.rint(x * NODES)
    made = np.empty_like(x)
    edges = np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1], [True]]))
    for begin, end in zip(edges[:-1], edges[1:]):
        made[begin:end] = near_node(float(node[begin]) / NODES, x[begin:end])
    return made


def near_node(a, x):
    h = x - a
    series = [1.0, -a]  # of exp(-a t - t²/2): (n + 1) s[n + 1] = -a s[n] - s[n - 1]
    for n in range(1, 10 if np.max(np.abs(h)) > 2.0**-12 else 4):
        series.append((-a * series[n] - series[n - 1]) / (n + 1))
    integral = np.zeros_like(h)
    for n in reversed(range(len(series))):
        integral = integral * h + series[n] / (n + 1)
    density = math.exp(-0.5 * a * a) / math.sqrt(2 * math.pi)
    return 0.5 * math.erfc(-a / math.sqrt(2)) + density * (integral * h)


FUNCTIONS = {"exp": exp, "gelu_tanh": gelu_tanh, "gelu_tanh_slope": gelu_tanh_slope, "gelu_erf": gelu_erf,
             "gelu_erf_slope": gelu_erf_slope, "inverse_root": inverse_root}
