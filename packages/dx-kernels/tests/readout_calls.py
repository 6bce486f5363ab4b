"""Calls of the readout kernels; importing this completes kernel_calls.REGISTRY."""
import dx_kernels as k
import numpy as np
from dx_numerics.testing.calls import call, out
from kernel_calls import kernel, mask


def segments(n, draw):
    """(listed rows of 3n + 2, ascending; starts of segments of 1 to 4 rows, the last one long)."""
    rows = np.flatnonzero(draw.whole(0, 3, 3 * n + 2)).astype(np.int32)
    borders = np.cumsum(draw.whole(1, 5, n))
    starts = np.concatenate([[0], borders[borders < len(rows) // 2 + 1], [len(rows)]]).astype(np.int64)
    return rows, np.unique(starts)


@kernel("list_rows", 3000)
def list_rows(n, draw):
    return [call(k.list_rows, mask(draw, 3, n), out(3 * n, dtype=np.int32), out(4, dtype=np.int64)),
            call(k.list_rows, mask(draw, n, 1), out(n, dtype=np.int32), out(n + 1, dtype=np.int64))]


@kernel("pool_sum_forward", 3000)
def pool_sum_forward(n, draw):
    rows, starts = segments(n, draw)
    x, count = draw.real(3 * n + 2, 21), len(starts) - 1
    return [call(k.pool_sum_forward, x, rows, starts, out(count, 21), divisors=draw.real(count)),
            call(k.pool_sum_forward, x, rows, starts, out(count, 21), weights=draw.real(len(rows))),
            call(k.pool_sum_forward, draw.real(n, 600), None, np.unique([0, n]), out(min(n, 1), 600),
                 weights=draw.real(n))]


@kernel("pool_sum_backward", 3000)
def pool_sum_backward(n, draw):
    rows, starts = segments(n, draw)
    x, dy, count = draw.real(3 * n + 2, 21), draw.real(len(starts) - 1, 21), len(starts) - 1
    return [call(k.pool_sum_backward, dy, rows, starts, out(3 * n + 2, 21), out(len(rows)), x=x,
                 weights=draw.real(len(rows)), divisors=draw.real(count)),
            call(k.pool_sum_backward, dy, rows, starts, None, out(len(rows)), x=x),
            call(k.pool_sum_backward, dy, rows, starts, out(3 * n + 2, 21))]


@kernel("pool_max_forward", 3000)
def pool_max_forward(n, draw):
    rows, starts = segments(n, draw)
    shape = len(starts) - 1, 21
    return [call(k.pool_max_forward, draw.real(3 * n + 2, 21), rows, starts, out(*shape), out(*shape, dtype=np.int32)),
            call(k.pool_max_forward, draw.real(n, 600), None, np.unique([0, n]), out(min(n, 1), 600),
                 out(min(n, 1), 600, dtype=np.int32))]


@kernel("pool_max_backward", 3000)
def pool_max_backward(n, draw):
    return [call(k.pool_max_backward, draw.real(n, 21), draw.whole(0, n + 3, n, 21), out(n + 3, 21)),
            call(k.pool_max_backward, draw.real(2, 600), draw.whole(0, n + 1, 2, 600), out(n + 1, 600))]


@kernel("pool_softmax_forward", 20_000)
def pool_softmax_forward(n, draw):
    rows, starts = segments(n, draw)
    return [call(k.pool_softmax_forward, draw.real(3, len(rows)), starts, out(3, len(rows)))]


@kernel("pool_softmax_backward", 20_000)
def pool_softmax_backward(n, draw):
    rows, starts = segments(n, draw)
    p = np.empty((3, len(rows)), np.float32)
    k.pool_softmax_forward(draw.real(3, len(rows), kind="plain"), starts, p)
    return [call(k.pool_softmax_backward, p, draw.real(3, len(rows)), starts, out(3, len(rows)))]
