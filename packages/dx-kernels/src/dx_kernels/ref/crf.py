"""Reference of dx_kernels.crf. exp64 and log64 are those of dx-numerics, which has their reference."""
import numpy as np

from ..below import exp64, log64

f32, f64 = np.float32, np.float64


def _log_sum_exp(x):
    m, total = -np.inf, 0.0
    for v in x:
        m = v if v > m else m
    if m == -np.inf:
        for v in x:
            m = m + v
        return m
    for v in exp64(np.asarray(x) - m):
        total = total + v
    return log64(total) + m


class _Chain:
    """alpha, beta and log Z of one sequence; targets (n,) restrict the tags, -1: any."""

    def __init__(self, e, transitions, first, last, targets):
        self.e, self.a = e.astype(f64), transitions.astype(f64)
        self.first, self.last = first.astype(f64), last.astype(f64)
        n, c = e.shape
        self.admitted = [range(c) if t < 0 else range(t, t + 1) for t in targets]
        self.alpha, self.beta = np.full((n, c), -np.inf), np.full((n, c), -np.inf)
        for t in range(n):
            for j in self.admitted[t]:
                reached = self.first[j]
                if t:
                    reached = _log_sum_exp([self.alpha[t - 1, i] + self.a[i, j] for i in self.admitted[t - 1]])
                self.alpha[t, j] = reached + self.e[t, j]
        self.log_z = _log_sum_exp([self.alpha[n - 1, j] + self.last[j] for j in self.admitted[n - 1]])
        for t in range(n - 1, -1, -1):
            for i in self.admitted[t]:
                self.beta[t, i] = self.last[i] if t == n - 1 else _log_sum_exp(
                    [(self.a[i, j] + self.e[t + 1, j]) + self.beta[t + 1, j] for j in self.admitted[t + 1]])

    def expectations(self):
        """(tag marginals (n, c), pair marginals (n, c, c)); 0 where not admitted."""
        n, c = self.e.shape
        tags, pairs = np.zeros((n, c)), np.zeros((n, c, c))
        for t in range(n):
            for j in self.admitted[t]:
                tags[t, j] = exp64((self.alpha[t, j] + self.beta[t, j]) - self.log_z)
                for i in self.admitted[t - 1] if t else ():
                    pairs[t, i, j] = exp64((((self.alpha[t - 1, i] + self.a[i, j]) + self.e[t, j]) + self.beta[t, j])
                                           - self.log_z)
        return tags, pairs


def _sequences(begin):
    return [slice(int(a), int(b)) for a, b in zip(begin[:-1], begin[1:])]


def crf_forward(emissions, transitions, first, last, targets, begin):
    """(numerator, denominator, losses)."""
    losses, numerator, denominator = np.zeros(len(begin) - 1), 0.0, 0.0
    with np.errstate(all="ignore"):
        for s, rows in enumerate(_sequences(begin)):
            if rows.stop > rows.start:
                e, any_tag = emissions[rows], np.full(rows.stop - rows.start, -1)
                loss = (_Chain(e, transitions, first, last, any_tag).log_z
                        - _Chain(e, transitions, first, last, targets[rows]).log_z)
                losses[s] = 0.0 if loss < 0 else loss
                denominator = denominator + 1.0
            numerator = numerator + losses[s]
    return numerator, denominator, losses


def crf_backward(emissions, transitions, first, last, targets, begin, scale=1.0, denominator=None):
    """(demissions, dtransitions, dfirst, dlast)."""
    if denominator is None:
        denominator = float(np.count_nonzero(np.diff(begin)))
    c = emissions.shape[1]
    d, total = np.zeros(emissions.shape), np.zeros((c + 2, c))
    if denominator == 0 or not len(emissions):
        return d.astype(f32), total[:c].astype(f32), total[c].astype(f32), total[c + 1].astype(f32)
    with np.errstate(all="ignore"):
        for rows in _sequences(begin):
            own, n = np.zeros((c + 2, c)), rows.stop - rows.start
            for sign, allowed in ((1.0, np.full(n, -1)), (-1.0, targets[rows])):
                if n == 0:
                    continue
                tags, pairs = _Chain(emissions[rows], transitions, first, last, allowed).expectations()
                d[rows] = d[rows] + sign * tags
                for t in range(n):
                    own[:c] = own[:c] + sign * pairs[t]
            if n:
                own[c], own[c + 1] = d[rows][0], d[rows][-1]
            total = total + own
        factor = scale / denominator
        d, total = (factor * d).astype(f32), (factor * total).astype(f32)
    return d, total[:c], total[c], total[c + 1]


def crf_marginals(emissions, transitions, first, last, begin):
    """(log_partition, marginals)."""
    log_partition, marginals = np.zeros(len(begin) - 1), np.zeros(emissions.shape)
    with np.errstate(all="ignore"):
        for s, rows in enumerate(_sequences(begin)):
            if rows.stop > rows.start:
                chain = _Chain(emissions[rows], transitions, first, last, np.full(rows.stop - rows.start, -1))
                log_partition[s], marginals[rows] = chain.log_z, chain.expectations()[0]
    return log_partition, marginals


def crf_decode(emissions, transitions, first, last, begin):
    """(scores, best)."""
    scores, best = np.zeros(len(begin) - 1), np.zeros(len(emissions), np.int32)
    a = transitions.astype(f64)
    for s, rows in enumerate(_sequences(begin)):
        e, back = emissions[rows].astype(f64), []
        if not len(e):
            continue
        v = first.astype(f64) + e[0]
        for t in range(1, len(e)):
            reached = v[:, None] + a
            back.append(np.argmax(reached, axis=0))  # the first of equal ones
            v = np.max(reached, axis=0) + e[t]
        v = v + last.astype(f64)
        tag, scores[s] = int(np.argmax(v)), np.max(v)
        for t in range(len(e) - 1, -1, -1):
            best[rows.start + t] = tag
            tag = int(back[t - 1][tag]) if t else tag
    return scores, best
