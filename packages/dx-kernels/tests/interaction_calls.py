"""Calls of late interaction and the contrastive loss; importing this completes kernel_calls.REGISTRY."""
import dx_kernels as k
import numpy as np
from dx_numerics.testing.calls import call, out
from kernel_calls import kernel, mask


def starts(rows, each):
    """Cuts of `rows` rows, `each` in one part, the last with what is left."""
    return np.array([*range(0, rows, each), rows], np.int64)


def sides(n, draw):
    """Two or more queries and documents with n rows each."""
    return draw.real(n, 18), starts(n, 7), draw.real(n, 18), starts(n, 11)


def winners_of(n, draw, document_starts):
    return draw.words(n, len(document_starts) - 1).astype(np.int64) % np.maximum(np.diff(document_starts), 1)


@kernel("maxsim_forward", 300)
def maxsim_forward(n, draw):
    q, qs, docs, ds = sides(n, draw)
    return [call(k.maxsim_forward, q, qs, docs, ds, out(len(qs) - 1, len(ds) - 1), out(n, len(ds) - 1, dtype=np.int32))]


@kernel("maxsim_backward", 300)
def maxsim_backward(n, draw):
    q, qs, docs, ds = sides(n, draw)
    winners = winners_of(n, draw, ds).astype(np.int32)
    dscores = draw.real(len(qs) - 1, len(ds) - 1)
    return [call(k.maxsim_backward, dscores, q, qs, docs, ds, winners, out(n, 18), out(n, 18)),
            call(k.maxsim_backward, dscores, q, qs, docs, ds, winners, None, out(n, 18))]


@kernel("maxsim_lse_forward", 300)
def maxsim_lse_forward(n, draw):
    q, qs, docs, ds = sides(n, draw)
    return [call(k.maxsim_lse_forward, q, qs, docs, ds, out(len(qs) - 1, len(ds) - 1), out(n, n), temperature=1 / 3),
            call(k.maxsim_lse_forward, q, qs, docs, ds, out(len(qs) - 1, len(ds) - 1), temperature=7.0)]


@kernel("maxsim_lse_backward", 300)
def maxsim_lse_backward(n, draw):
    q, qs, docs, ds = sides(n, draw)
    return [call(k.maxsim_lse_backward, draw.real(len(qs) - 1, len(ds) - 1), q, qs, docs, ds, draw.real(n, n),
                 out(n, 18), out(n, 18))]


def relations(n, draw):
    """(scores, positive, admit, weight) of n anchors and 9 candidates."""
    positive, admit = draw.whole(0, 2, n, 9, dtype=np.uint8), np.minimum(mask(draw, n, 9), 1)
    positive[np.arange(n), draw.whole(0, 9, n)] = 1
    weight = np.abs(draw.real(n, 9, dtype=np.float64, kind="plain")) + 0.5
    return draw.real(n, 9), positive, np.maximum(admit, positive).astype(np.uint8), weight


@kernel("contrastive_forward", 5000)
def contrastive_forward(n, draw):
    scores, positive, admit, weight = relations(n, draw)
    return [call(k.contrastive_forward, scores, positive, temperature=0.05, admit=admit, weight=weight,
                 losses=out(n, dtype=np.float64)),
            call(k.contrastive_forward, scores, positive, temperature=1.0)]


@kernel("contrastive_backward", 5000)
def contrastive_backward(n, draw):
    scores, positive, admit, weight = relations(n, draw)
    return [call(k.contrastive_backward, scores, positive, out(n, 9), temperature=0.05, admit=admit, weight=weight,
                 scale=1 / 3, losses=out(n, dtype=np.float64)),
            call(k.contrastive_backward, scores, positive, out(n, 9), temperature=1.0, denominator=11.0)]
