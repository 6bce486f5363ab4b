"""Reference of csrc/page_model.h: plain loops over Python floats (binary64), in the kernels' order."""
import math

from ..below import exp64, log64

LN2 = float.fromhex("0x1.62e42fefa39efp-1")
MAX_BITS = 8


def exp(x):
    return float(exp64(x))


def power(e):
    """2^e, 0 below the normal numbers."""
    return 0.0 if e < -1022 else math.ldexp(1.0, min(e, 1023))


def exponent(x):
    """The exponent field of x > 0: floor(log2 x), -1023 for a subnormal."""
    return max(math.frexp(x)[1] - 1, -1023)


def levels(logits):
    """l[t][tag] = max(logit - largest logit of the word, -300)."""
    out = []
    for row in logits:
        row = [float(v) for v in row]
        top = row[0]
        for v in row[1:]:
            top = v if v > top else top
        out.append([max(v - top, -300.0) for v in row])
    return out


def lanes(values):
    """Sum in four lanes, value x in lane x mod 4, ascending: (0 + 1) + (2 + 3)."""
    lane = [0.0] * 4
    for x, v in enumerate(values):
        lane[x % 4] += v
    return (lane[0] + lane[1]) + (lane[2] + lane[3])


def log_mass(mass, e):
    return float(log64(mass)) + float(e) * LN2


def models(repeated):
    """The chains that answer for a schema: [(exclusive fields, fields answered for)]."""
    fields = range(len(repeated))
    single = [k for k in fields if not repeated[k]]
    if not single or (len(single) <= MAX_BITS and (len(repeated) + 1) << len(single) <= 4096):
        return [(single, list(fields))]
    chains = [([k], [k]) for k in single]
    if len(single) < len(repeated):
        chains.append(([], [k for k in fields if repeated[k]]))
    return chains


class Chain:
    """Masses at every boundary, each mask with its own power of two: f, ef, a (forward), g, eg, d (backward).

    closed: a field that is not exclusive and cannot begin, or None."""

    def __init__(self, logits, fields, exclusive, closed=None):
        self.l = levels(logits)
        self.n, self.fields = len(self.l), fields
        self.exclusive, self.masks = exclusive, 1 << len(exclusive)
        self.bit = [exclusive.index(k) if k in exclusive else -1 for k in range(fields)]
        self.o = [exp(row[0]) for row in self.l]
        self.b = [[0.0 if k == closed else exp(v) for k, v in enumerate(row[1::2])] for row in self.l]
        self.i = [[exp(v) for v in row[2::2]] for row in self.l]

    def sources(self, x, e, m):
        """(exponent, scale, own, source): what mask m takes over from the masses x at one common exponent."""
        base = e[m]
        for q in range(len(self.exclusive)):
            if m >> q & 1:
                base = max(base, e[m ^ 1 << q])
        scale = power(e[m] - base)
        own = x[m] * scale
        source = []
        for bit in self.bit:
            if bit < 0:
                source.append(own)
            elif m >> bit & 1:
                source.append(x[m ^ 1 << bit] * power(e[m ^ 1 << bit] - base))
            else:
                source.append(0.0)
        return base, scale, own, source

    @staticmethod
    def rescaled(common, base, totals, rows):
        """(common, exponents, totals, rows): masks within 2^-256 of the largest share the common exponent."""
        top = max(b + exponent(v) for b, v in zip(base, totals) if v != 0)
        if abs(top - common) > 64:
            common = top
        e = []
        for b, v in zip(base, totals):
            if v == 0 or b + exponent(v) >= common - 256:
                e.append(common)
            else:
                e.append(b if abs(exponent(v)) <= 64 else b + exponent(v))
        powers = [1.0 if v == 0 else power(b - x) for b, x, v in zip(base, e, totals)]
        return (common, e, [v * w for v, w in zip(totals, powers)],
                [[v * w for v in row] for row, w in zip(rows, powers)])

    def forward(self):
        fields, common = range(self.fields), 0
        self.f = [[1.0] + [0.0] * (self.masks - 1)]
        self.ef = [[0] * self.masks]
        self.a = [[[0.0] * self.fields for _ in range(self.masks)]]
        for t in range(self.n):
            bases, totals, rows = [], [], []
            for m in range(self.masks):
                base, scale, own, source = self.sources(self.f[t], self.ef[t], m)
                before = self.a[t][m]
                rows.append([self.b[t][k] * source[k] + self.i[t][k] * (before[k] * scale) for k in fields])
                totals.append(self.o[t] * own + lanes(rows[m]))
                bases.append(base)
            common, e, totals, rows = self.rescaled(common, bases, totals, rows)
            self.f.append(totals)
            self.ef.append(e)
            self.a.append(rows)
        self.ez = max(self.ef[self.n])
        self.z = 0.0
        for m in range(self.masks):
            self.z = self.z + self.f[self.n][m] * power(self.ef[self.n][m] - self.ez)
        return self

    def backward(self):
        """Also start[t][k]: the probability that word t is a B of field k."""
        fields, n, masks, common = range(self.fields), self.n, self.masks, 0
        self.g, self.eg = [None] * n + [[1.0] * masks], [None] * n + [[0] * masks]
        self.d = [None] * n + [[[0.0] * self.fields for _ in range(masks)]]
        self.start = [None] * n
        for t in reversed(range(n)):
            bases, totals, rows, start = [], [], [], [0.0] * self.fields
            for m in range(masks):
                base, scale, own, source = self.sources(self.g[t + 1], self.eg[t + 1], m)
                rest = [source[k] + self.d[t + 1][m][k] * scale for k in fields]
                begin = [self.b[t][k] * rest[k] for k in fields]
                other = masks - 1 - m
                factor = self.f[t][other] * power(self.ef[t][other] + base - self.ez)
                start = [start[k] + factor * begin[k] for k in fields]
                rows.append([self.i[t][k] * rest[k] for k in fields])
                totals.append(self.o[t] * own + lanes(begin))
                bases.append(base)
            self.start[t] = [v / self.z for v in start]
            common, self.eg[t], self.g[t], self.d[t] = self.rescaled(common, bases, totals, rows)
        return self

    def around(self, first, last, k):
        """(mantissa, exponent) of the mass outside a run of field k over the words first..last."""
        own = 0 if self.bit[k] < 0 else 1 << self.bit[k]
        rest = self.masks - 1 - own
        f, ef, g, eg = self.f[first], self.ef[first], self.g[last + 1], self.eg[last + 1]
        free = [m for m in range(self.masks) if not m & own]
        base = max(ef[m] + eg[rest - m] for m in free)
        total = 0.0
        for m in free:
            total = total + (f[m] * g[rest - m]) * power(ef[m] + eg[rest - m] - base)
        return total, base

    def level(self, first, last, k):
        level = self.l[first][1 + 2 * k]
        for t in range(first + 1, last + 1):
            level = level + self.l[t][2 + 2 * k]
        return level

    def probability(self, first, last, k):
        p = exp((log_mass(*self.around(first, last, k)) + self.level(first, last, k)) - log_mass(self.z, self.ez))
        return min(p, 1.0)

    def absent_mass(self, k):
        """(mantissa, exponent) of the mass of the taggings without the exclusive field k."""
        free = [m for m in range(self.masks) if not m >> self.bit[k] & 1]
        f, ef, total = self.f[self.n], self.ef[self.n], 0.0
        base = max(ef[m] for m in free)
        for m in free:
            total = total + f[m] * power(ef[m] - base)
        return total, base
