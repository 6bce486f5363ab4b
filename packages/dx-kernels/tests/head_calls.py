"""Calls of the losses, chains, spans and geometry of task heads; importing this completes kernel_calls.REGISTRY."""
import dx_kernels as k
import numpy as np
from dx_numerics.testing.calls import call, out
from kernel_calls import kernel, mask


def doubles(draw, *shape):
    return draw.real(*shape, dtype=np.float64)


def weights(draw, n):
    return np.abs(draw.real(n, dtype=np.float64, kind="plain"))


@kernel("l2_normalize_forward", 3000)
def l2_normalize_forward(n, draw):
    return [call(k.l2_normalize_forward, draw.real(n, 19), out(n, 19), out(n), epsilon=1e-12),
            call(k.l2_normalize_forward, draw.real(5, n), out(5, n), out(5), epsilon=0.5),
            call(k.l2_normalize_forward, draw.real(n, 16), out(n, 16), out(n))]


@kernel("l2_normalize_backward", 3000)
def l2_normalize_backward(n, draw):
    norms = np.abs(draw.real(n))
    return [call(k.l2_normalize_backward, draw.real(n, 19), draw.real(n, 19), norms, out(n, 19), epsilon=0.3),
            call(k.l2_normalize_backward, draw.real(2, n), draw.real(2, n), np.float32([0.5, 2]), out(2, n))]


@kernel("squared_distance_forward", 200)
def squared_distance_forward(n, draw):
    return [call(k.squared_distance_forward, draw.real(n, 19), draw.real(7, 19), out(n, 7)),
            call(k.squared_distance_forward, draw.real(3, n), draw.real(4, n), out(3, 4))]


@kernel("squared_distance_backward", 200)
def squared_distance_backward(n, draw):
    q, e = draw.real(n, 19), draw.real(17, 19)
    return [call(k.squared_distance_backward, draw.real(n, 17), q, e, out(n, 19), out(17, 19)),
            call(k.squared_distance_backward, draw.real(n, 17), q, e, None, out(17, 19))]


@kernel("regression_forward", 5000)
def regression_forward(n, draw):
    return [call(k.regression_forward, draw.real(n, 7), doubles(draw, n, 7), counted, out(n, 7, dtype=np.float64),
                 kind=kind, delta=0.7)
            for kind in ("squared", "absolute", "huber") for counted in (None, mask(draw, n, 7))]


@kernel("regression_backward", 5000)
def regression_backward(n, draw):
    return [call(k.regression_backward, draw.real(n, 7), doubles(draw, n, 7), mask(draw, n, 7), out(n, 7), kind=kind,
                 delta=0.7, scale=1 / 3) for kind in ("squared", "absolute", "huber")]


@kernel("gaussian_nll_forward", 5000)
def gaussian_nll_forward(n, draw):
    return [call(k.gaussian_nll_forward, draw.real(n, 7), draw.real(n, 7), doubles(draw, n, 7), counted,
                 out(n, 7, dtype=np.float64)) for counted in (None, mask(draw, n, 7))]


@kernel("gaussian_nll_backward", 5000)
def gaussian_nll_backward(n, draw):
    return [call(k.gaussian_nll_backward, draw.real(n, 7), draw.real(n, 7), doubles(draw, n, 7), mask(draw, n, 7),
                 out(n, 7), out(n, 7), denominator=3.0)]


@kernel("binary_cross_entropy_forward", 5000)
def binary_cross_entropy_forward(n, draw):
    targets = draw.whole(-1, 2, n, 7)
    return [call(k.binary_cross_entropy_forward, draw.real(n, 7), targets, weights(draw, 7), weights(draw, 7),
                 out(n, 7, dtype=np.float64), gamma=gamma) for gamma in (0.0, 2.0)]


@kernel("binary_cross_entropy_backward", 5000)
def binary_cross_entropy_backward(n, draw):
    targets = draw.whole(-1, 2, n, 7)
    return [call(k.binary_cross_entropy_backward, draw.real(n, 7), targets, weights(draw, 7), None, out(n, 7),
                 gamma=gamma, scale=0.3) for gamma in (0.0, 1.5)]


def chains(n, draw, tags=5):
    """(emissions, transitions, first, last, begin): sequences of three rows and an empty one, a forbidden pair."""
    transitions = draw.real(tags, tags)
    transitions[1, 2] = -np.inf
    begin = np.array([*range(0, n, 3), n, n], np.int32) if n else np.zeros(1, np.int32)
    return draw.real(n, tags), transitions, draw.real(tags), draw.real(tags), begin


@kernel("crf_forward", 2000)
def crf_forward(n, draw):
    e, a, first, last, begin = chains(n, draw)
    targets = draw.whole(-1, 5, n)
    return [call(k.crf_forward, e, a, first, last, targets, begin, out(len(begin) - 1, dtype=np.float64)),
            call(k.crf_forward, e, draw.real(5, 5), first, last, targets, np.array([0, n], np.int32))]


@kernel("crf_backward", 2000)
def crf_backward(n, draw):
    e, a, first, last, begin = chains(n, draw)
    return [call(k.crf_backward, e, a, first, last, draw.whole(-1, 5, n), rows, out(n, 5), out(5, 5), out(5), out(5),
                 scale=0.5) for rows in (begin, np.array([0, n], np.int32))]


@kernel("crf_marginals", 2000)
def crf_marginals(n, draw):
    e, a, first, last, begin = chains(n, draw)
    return [call(k.crf_marginals, e, a, first, last, begin, out(len(begin) - 1, dtype=np.float64),
                 out(n, 5, dtype=np.float64))]


@kernel("crf_decode", 2000)
def crf_decode(n, draw):
    e, a, first, last, begin = chains(n, draw)
    return [call(k.crf_decode, e, a, first, last, begin, out(len(begin) - 1, dtype=np.float64),
                 out(n, dtype=np.int32))]


@kernel("best_spans", 300)
def best_spans(n, draw):
    start, end, pair = draw.real(n), draw.real(n), draw.real(n, n)
    return [call(k.best_spans, *scores, mask(draw, n), out(4, 2, dtype=np.int32), out(4, dtype=np.float64),
                 max_length=9) for scores in ((start, end, None), (None, None, pair), (start, end, pair))]


@kernel("softmax64", 5000)
def softmax64(n, draw):
    return [call(k.softmax64, doubles(draw, n, 7), out(n, 7, dtype=np.float64), out(n, dtype=np.float64)),
            call(k.softmax64, doubles(draw, 3, n), out(3, n, dtype=np.float64), out(3, dtype=np.float64))]


@kernel("products64", 2000)
def products64(n, draw):
    return [call(k.products64, doubles(draw, n, 7), doubles(draw, n, 9), out(7, 9, dtype=np.float64)),
            call(k.products64, doubles(draw, 5, n), doubles(draw, 5, 3), out(n, 3, dtype=np.float64))]
