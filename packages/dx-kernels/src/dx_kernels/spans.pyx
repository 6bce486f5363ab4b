"""The best admissible spans of a context, by boundary scores, scores of pairs, or both."""
from dx_kernels._core cimport fp_enter, fp_leave, in1, in2, shape1, shape2, table

cdef extern from "table.h" nogil:
    ctypedef struct spans_table "dx_kernels_table":
        Py_ssize_t (*best_spans)(Py_ssize_t n, const float *start, const float *end, const float *pair,
                                 const unsigned char *context, Py_ssize_t max_length, Py_ssize_t most, int *found,
                                 double *scores) noexcept nogil


def best_spans(const float[::1] start, const float[::1] end, const float[:, ::1] pair,
               const unsigned char[::1] context not None, int[:, ::1] found not None, double[::1] scores not None, *,
               Py_ssize_t max_length):
    """found := the best admissible spans (first row, last row), best first; returns how many there are.

    Admissible: both rows in the context, first <= last, at most max_length rows. Score: start[s] + end[e], + pair[s, e].

    Shapes    start, end (n,) or both None · pair (n, n) or None, with start and end or without · context (n,) uint8 ·
              found (most, 2) int32, scores (most,) float64
    Order     binary64 sums, in the order written
    Edges     of equal scores the larger first row is better, then the larger last row (as comparing the tuples (score,
              s, e) does) · fewer spans than most: the rest of found and scores is left as it was
    Writes    the first rows of found and scores
    Raises    ValueError: max_length < 1, start without end, neither start nor pair, a score of an admissible row or pair
              that is not finite, a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.spans.best_spans
    """
    cdef const spans_table *t = <const spans_table *>table()
    cdef Py_ssize_t n = context.shape[0], most = scores.shape[0], count, s, e
    cdef unsigned long long saved
    if max_length < 1:
        raise ValueError(f"max_length = {max_length}: expected a number >= 1")
    if (start is None) != (end is None) or (start is None and pair is None):
        raise ValueError("start, end, pair: expected start and end together, pair, or all three")
    shape1("start", start, n)
    shape1("end", end, n)
    shape2("pair", pair, n, n)
    if found.shape[0] != most or found.shape[1] != 2:
        raise ValueError(f"found has shape ({found.shape[0]}, {found.shape[1]}): expected ({most}, 2)")
    for s in range(n):
        if not context[s]:
            continue
        if start is not None and not (start[s] - start[s] == 0 and end[s] - end[s] == 0):
            name, value = ("end", end[s]) if start[s] - start[s] == 0 else ("start", start[s])
            raise ValueError(f"{name}[{s}] = {value}: expected a finite number in the context")
        for e in range(s, min(n, s + min(max_length, n))):
            if pair is not None and context[e] and not pair[s, e] - pair[s, e] == 0:
                raise ValueError(f"pair[{s}, {e}] = {pair[s, e]}: expected a finite number in the context")
    cdef const float *ps = in1(start)
    cdef const float *pe = in1(end)
    cdef const float *pp = in2(pair)
    cdef const unsigned char *pc = NULL if n == 0 else &context[0]
    cdef int *pf = NULL if most == 0 else &found[0, 0]
    cdef double *po = NULL if most == 0 else &scores[0]
    with nogil:
        saved = fp_enter()
        count = t.best_spans(n, ps, pe, pp, pc, max_length, most, pf, po)
        fp_leave(saved)
    return count
