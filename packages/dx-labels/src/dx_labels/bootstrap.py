"""Intervals of F1: pages are drawn again, with replacement. The same bits on every machine."""
import numpy as np

from .below import substream, uniform64
from .intervals import clopper_pearson

RESAMPLES, SEED, STREAM = 2000, 0, "pages of F1 intervals"
BLOCK, BITS = 1 << 20, 21  # draws at a time; of one of three sums packed into 63 bits


def f1_intervals(counts):
    """The 95 % intervals of F1 of several measures over the same pages.

    Parameters
    ----------
    counts : int64 (pages, measures, 3): true positives, predicted and gold things of each page. The pages' order
        decides which draw means which page: give them in one that does not depend on how they were read.

    Returns
    -------
    list of (low, high), one a measure

    Order
    -----
    Draw i of resample b is page min(floor(u · pages), pages - 1), u value b · pages + i of the SplitMix64 stream "pages
    of F1 intervals" under seed 0 (uniform64); every measure sees the same draws. A resample's F1 is
    2·TP / (predicted + gold) of the drawn pages' sums; one without predicted and gold things does not count. Of the m
    that do, sorted, low is number floor(m / 40) from below, high the same from above, counted from 0; (0, 1) for m = 0.
    Where all things are right, or none, every resample says the same, and drawing shows nothing: there the interval is
    that of J = TP / (predicted + gold - TP) as an exact binomial share (Clopper-Pearson), F1 being 2·J / (1 + J).
    """
    pages, measures, _ = counts.shape
    out, totals = [], counts.sum(axis=0).tolist()  # exact: whole numbers
    drawn = _resampled(counts) if pages else np.zeros((0, measures, 3), np.int64)
    for k, (tp, predicted, gold) in enumerate(totals):
        if predicted + gold == 0:
            out.append((0.0, 1.0))
        elif tp in (0, predicted + gold - tp):
            low, high = clopper_pearson(tp, predicted + gold - tp)
            out.append((2 * low / (1 + low), 2 * high / (1 + high)))
        else:
            own = drawn[:, k]
            size = own[:, 1] + own[:, 2]
            own, size = own[size > 0], size[size > 0]
            f1 = np.sort(2 * own[:, 0] / size, kind="stable")
            rank = len(f1) // 40
            out.append((float(f1[rank]), float(f1[len(f1) - 1 - rank])))
    return out


def _resampled(counts):
    """The sums of every resample; int64 (RESAMPLES, measures, 3)."""
    pages, key = len(counts), substream(SEED, STREAM)
    out, step = np.empty((RESAMPLES, *counts.shape[1:]), np.int64), max(1, BLOCK // pages)
    for begin in range(0, RESAMPLES, step):
        u = np.empty((min(step, RESAMPLES - begin), pages))
        uniform64(key, u, begin * pages)
        page = np.minimum((u * pages).astype(np.int64), pages - 1)
        for k in range(counts.shape[1]):
            out[begin:begin + len(u), k] = _sums(np.ascontiguousarray(counts[:, k]), page)
    return out


def _sums(own, page):
    """The sum of own (pages, 3) over each row of page numbers; where they are small, the three as one number."""
    if int(own.max()) * len(own) >= 1 << BITS:
        return own[page].sum(axis=1)  # exact: whole numbers
    whole = (own[:, 0] | own[:, 1] << BITS | own[:, 2] << 2 * BITS)[page].sum(axis=1)  # exact: whole numbers
    return np.stack([whole >> shift & (1 << BITS) - 1 for shift in (0, BITS, 2 * BITS)], axis=1)
