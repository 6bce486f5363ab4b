"""Reference of dx_kernels.run_loss."""
import numpy as np

from ..below import log64
from .page_model import Chain, exp, lanes, log_mass, models, power


class _Shares:
    """What the walk along a chain hands on: at the boundaries (f, g), and collected at the tags (b, i)."""

    def __init__(self, c):
        self.f, self.g = ([[0.0] * c.masks for _ in range(c.n + 1)] for _ in range(2))
        self.b, self.i = ([[0.0] * c.fields for _ in range(c.n)] for _ in range(2))


def _hand_on(c, s, to, m, outside, gives):
    """Adds to the boundary `to` what mask m gives it: outside runs, and gives[k] for each field k."""
    opened = [gives[k] if c.bit[k] < 0 else 0.0 for k in range(c.fields)]
    to[m] = to[m] + (outside + lanes(opened))
    for q, k in enumerate(c.exclusive):
        if m >> q & 1:
            to[m ^ 1 << q] += gives[k]


def _lift(whole):
    """2^200 where a divisor is so small that a share of it would overflow, else 1."""
    return 2.0**200 if whole < 2.0**-900 else 1.0


def _smooth_before(c, s):
    carry = [[0.0] * c.fields for _ in range(c.masks)]
    for t in range(c.n, 0, -1):
        carried = []
        for m in range(c.masks):
            base, scale, own, source = c.sources(c.f[t - 1], c.ef[t - 1], m)
            part = 0.0 if c.f[t][m] == 0 else s.f[t][m] / c.f[t][m]
            outside = part * power(base - c.ef[t][m]) * c.o[t - 1] * own
            gives, row = [], []
            for k in range(c.fields):
                begins, goes_on = c.b[t - 1][k] * source[k], c.i[t - 1][k] * (c.a[t - 1][m][k] * scale)
                up = _lift(begins + goes_on)
                begins, goes_on = begins * up, goes_on * up
                whole, share = begins + goes_on, carry[m][k] + part * c.a[t][m][k]
                share = 0.0 if whole == 0 else share / whole
                gives.append(share * begins)
                row.append(share * goes_on)
                s.b[t - 1][k] += gives[k]
                s.i[t - 1][k] += row[k]
            carried.append(row)
            _hand_on(c, s, s.f[t - 1], m, outside, gives)
        carry = carried


def _smooth_after(c, s):
    carry = [[0.0] * c.fields for _ in range(c.masks)]
    for t in range(c.n):
        carried = []
        for m in range(c.masks):
            base, scale, own, source = c.sources(c.g[t + 1], c.eg[t + 1], m)
            part = 0.0 if c.g[t][m] == 0 else s.g[t][m] / c.g[t][m]
            part = part * power(base - c.eg[t][m])
            outside = part * c.o[t] * own
            gives, row = [], []
            for k in range(c.fields):
                goes_on = c.d[t + 1][m][k] * scale
                rest = source[k] + goes_on
                begins = part * (c.b[t][k] * rest)
                share = begins + carry[m][k]
                s.b[t][k] += begins
                s.i[t][k] += carry[m][k]
                up = _lift(rest)
                starts, goes_on = source[k] * up, goes_on * up
                share = 0.0 if rest == 0 else share / (starts + goes_on)
                gives.append(share * starts)
                row.append(share * goes_on)
            carried.append(row)
            _hand_on(c, s, s.g[t + 1], m, outside, gives)
        carry = carried


def _term(c, s, k, places, weight):
    """The term's loss; its shares go to s."""
    own = 0 if c.bit[k] < 0 else 1 << c.bit[k]
    free, rest = [m for m in range(c.masks) if not m & own], c.masks - 1 - own
    if not places:
        mass, e = c.absent_mass(k)
        total = log_mass(mass, e)
        for m in free:
            s.f[c.n][m] = s.f[c.n][m] - weight * (c.f[c.n][m] * power(c.ef[c.n][m] - e) / mass)
    else:
        level = [log_mass(*c.around(first, last, k)) + c.level(first, last, k) for first, last in places]
        largest, added = max(level), 0.0
        for v in level:
            added = added + exp(v - largest)
        total = float(log64(added)) + largest
        for (first, last), v in zip(places, level):
            mass, e = c.around(first, last, k)
            part = weight * exp(v - total)
            for m in free:
                left, right = c.f[first][m], c.g[last + 1][rest - m]
                share = part * ((left * right) * power(c.ef[first][m] + c.eg[last + 1][rest - m] - e) / mass)
                s.f[first][m] = s.f[first][m] - share
                s.g[last + 1][rest - m] = s.g[last + 1][rest - m] - share
            s.b[first][k] -= part
            for t in range(first + 1, last + 1):
                s.i[t][k] -= part
    return max(log_mass(c.z, c.ez) - total, 0.0)


def run_loss(logits, repeated, terms, weights=None, scale=1.0):
    """(losses, dlogits) for terms [(field, [(first, last), …]), …]; list of float and float32 array."""
    logits = np.asarray(logits, np.float32)
    n, fields = len(logits), len(repeated)
    weights = [1.0] * len(terms) if weights is None else weights
    losses, b, i = [0.0] * len(terms), [[0.0] * fields for _ in range(n)], [[0.0] * fields for _ in range(n)]
    if not np.isfinite(logits).all():
        return [float("nan")] * len(terms), np.full_like(logits, np.nan)
    for exclusive, answered in models(repeated):
        mine = [x for x, (k, _) in enumerate(terms) if k in answered]
        if not mine:
            continue
        c = Chain(logits, fields, exclusive).forward().backward()
        s, total = _Shares(c), 0.0
        for x in mine:
            losses[x] = _term(c, s, terms[x][0], terms[x][1], weights[x])
            total = total + weights[x]
        for m in range(c.masks):
            s.f[n][m] = s.f[n][m] + total * (c.f[n][m] * power(c.ef[n][m] - c.ez) / c.z)
        _smooth_before(c, s)
        _smooth_after(c, s)
        b = [[x + y for x, y in zip(*rows)] for rows in zip(b, s.b)]
        i = [[x + y for x, y in zip(*rows)] for rows in zip(i, s.i)]
    dlogits = np.zeros((n, 1 + 2 * fields), np.float32)
    with np.errstate(all="ignore"):
        for t in range(n):
            outside = 0.0
            for k in range(fields):
                outside = (outside - b[t][k]) - i[t][k]
                dlogits[t, 1 + 2 * k], dlogits[t, 2 + 2 * k] = scale * b[t][k], scale * i[t][k]
            dlogits[t, 0] = scale * outside
    return losses, dlogits
