"""Reference of dx_kernels.decode."""
from .page_model import MAX_BITS, levels

ROUNDS, PATIENCE = 200, 5
LOWEST = float("-inf")


def _best(b, i, exclusive, price):
    """The best tagging in which the exclusive fields have at most one run: (value, tags)."""
    n, fields, masks = len(b), len(price), 1 << len(exclusive)
    bit = [exclusive.index(k) if k in exclusive else -1 for k in range(fields)]
    v, opened = [0.0] + [LOWEST] * (masks - 1), [[LOWEST] * fields for _ in range(masks)]
    choices, insides = [], []
    for t in range(n):
        v_next, opened_next, choice, inside = [], [], [], []
        for m in range(masks):
            best, chosen, row, flags = v[m], -1, [], []
            for k in range(fields):
                source = v[m] if bit[k] < 0 else v[m ^ 1 << bit[k]] if m >> bit[k] & 1 else LOWEST
                begin, on = source + (b[t][k] - price[k]), opened[m][k] + i[t][k]
                flags.append(on > begin)
                row.append(on if on > begin else begin)
                if row[k] > best:
                    best, chosen = row[k], k
            v_next.append(best)
            opened_next.append(row)
            choice.append(chosen)
            inside.append(flags)
        v, opened = v_next, opened_next
        choices.append(choice)
        insides.append(inside)
    m = v.index(max(v))
    value, tags, t = v[m], [0] * n, n - 1
    while t >= 0:
        k = choices[t][m]
        if k >= 0:
            while insides[t][m][k]:
                tags[t] = 2 + 2 * k
                t -= 1
            tags[t] = 1 + 2 * k
            if bit[k] >= 0:
                m ^= 1 << bit[k]
        t -= 1
    return value, tags


def _counts(tags, fields):
    return [sum(tag == 1 + 2 * k for tag in tags) for k in range(fields)]  # exact: whole numbers


def _score(b, i, tags):
    score = 0.0
    for t, tag in enumerate(tags):
        if tag:
            score = score + (b if tag & 1 else i)[t][(tag - 1) // 2]
    return score


def _keep_best_runs(b, i, repeated, tags):
    counts = _counts(tags, len(repeated))
    for k, count in enumerate(counts):
        if repeated[k] or count < 2:
            continue
        begin, runs = 1 + 2 * k, []
        for t, tag in enumerate(tags):
            if tag == begin:
                last, score = t, b[t][k]
                while last + 1 < len(tags) and tags[last + 1] == begin + 1:
                    last += 1
                    score = score + i[last][k]
                runs.append((score, t, last))
        kept = max(runs, key=lambda run: run[0])
        for run in runs:
            if run is not kept:
                tags[run[1]:run[2] + 1] = [0] * (run[2] + 1 - run[1])


class _Priced:
    """The search by prices: a Lagrange multiplier for each field on each of its runs."""

    def __init__(self, b, i, repeated):
        self.b, self.i, self.repeated = b, i, repeated
        self.single = [k for k, flag in enumerate(repeated) if not flag]
        self.price = [0.0] * len(repeated)
        self.tags, self.score, self.bound = None, LOWEST, float("inf")

    def judge(self, exclusive):
        """(value, squares, unsettled fields, counts) of the best tagging at the present prices; keeps a legal one."""
        value, tags = _best(self.b, self.i, exclusive, self.price)
        counts, squares, unsettled = _counts(tags, len(self.repeated)), 0.0, []
        for k in self.single:
            value = value + self.price[k]
            if counts[k] > 1 or (self.price[k] > 0 and counts[k] == 0):
                unsettled.append(k)
                squares = squares + float((counts[k] - 1) * (counts[k] - 1))
        _keep_best_runs(self.b, self.i, self.repeated, tags)
        score = _score(self.b, self.i, tags)
        if not unsettled or score > self.score:
            self.tags, self.score = tags, score
        return value, squares, unsettled, counts

    def result(self, exact):
        return self.tags, self.score, self.score if exact else self.bound, exact

    def search(self):
        factor, stale, best_price, exclusive = 1.0, 0, None, []
        for _ in range(ROUNDS):
            value, squares, unsettled, counts = self.judge([])
            if not unsettled:
                return self.result(True)
            if value < self.bound:
                self.bound, stale, best_price = value, 0, list(self.price)
            else:
                stale += 1
                if stale == PATIENCE:
                    factor, stale = 0.5 * factor, 0
            if self.score >= self.bound:
                return self.result(True)
            step = factor * (value - self.score) / squares
            for k in self.single:
                if counts[k] > 1 or self.price[k] > 0:
                    self.price[k] = max(self.price[k] + step * float(counts[k] - 1), 0.0)
        while len(exclusive) <= MAX_BITS:
            self.price = [0.0 if k in exclusive else p for k, p in enumerate(best_price)]
            value, _, unsettled, _ = self.judge(exclusive)
            if unsettled:
                self.bound = min(self.bound, value)
            if not unsettled or self.score >= self.bound:
                return self.result(True)
            exclusive = sorted(exclusive + unsettled)
        return self.result(False)


def decode_tags(logits, repeated):
    """(tags, score, bound, exact); see dx_kernels.decode_tags."""
    rows = levels(logits)
    b = [[v - row[0] for v in row[1::2]] for row in rows]
    i = [[v - row[0] for v in row[2::2]] for row in rows]
    exclusive = []
    while True:
        _, tags = _best(b, i, exclusive, [0.0] * len(repeated))
        broken = [k for k, count in enumerate(_counts(tags, len(repeated))) if count > 1 and not repeated[k]]
        if not broken:
            score = _score(b, i, tags)
            return tags, score, score, True
        if len(exclusive) + len(broken) > MAX_BITS:
            return _Priced(b, i, repeated).search()
        exclusive = sorted(exclusive + broken)
