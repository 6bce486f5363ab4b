"""Run loss: minus the log of the probability that a field stands where its value stands, forward and backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table
from dx_kernels._page cimport check_schema

import numpy as np

cdef extern from *:
    """
    /* Volatile, so that the sum is done before fp_leave. */
    static inline double dx_seal(double x) { volatile double y = x; return y; }
    """
    double dx_seal(double x) nogil

cdef extern from "table.h" nogil:
    ctypedef struct run_loss_table "dx_kernels_table":
        int (*run_loss)(int degree, Py_ssize_t n, Py_ssize_t fields, const float *logits,
                        const unsigned char *repeated, Py_ssize_t terms, const int *term, const int *begin,
                        const int *places, const double *weight, double scale, double *losses,
                        float *dlogits) noexcept nogil


def run_loss(const float[:, ::1] logits not None, const unsigned char[::1] repeated not None,
             const int[::1] fields not None, const int[:, ::1] places not None, double[::1] losses not None,
             float[:, ::1] dlogits=None, *, const double[::1] weights=None, double scale=1.0):
    """losses := -log(sum over the term's places of the probability that the field's run is there), term by term.

    Returns (numerator, denominator) = (sum of weight * loss, sum of weights), float64, in the order of the terms.
    A term is a field with all the places where its value stands; a term without places says that the field has no
    value. A field that is in no term says nothing: it is summed out. dlogits := scale * d numerator / d logits.

    Shapes    logits, dlogits (n, 1 + 2 c) of tags O, B-0, I-0, … · repeated (c,) uint8 · fields (m,) int32, the field
              of each term · places (q, 3) int32 of term, first word, last word, terms ascending · losses, weights (m,)
    Order     binary64 throughout, one rounding to binary32 of scale * gradient; docs/backward-numerics.md "Run loss"
    Edges     no term → (0, 0) and zeros · n == 0 → losses 0 · a logit that is not finite → every loss and gradient NaN
    Writes    losses and dlogits assigned
    Raises    ValueError: a shape that does not fit, a field or place outside the page, places not ascending or twice in
              a term, a term of a repeated field without exactly one place, a weight or scale not finite or negative
    Source    design: run loss; bit-equal to dx_kernels.ref.run_loss
    """
    cdef Py_ssize_t c = check_schema(logits, repeated), n = logits.shape[0], m = fields.shape[0], q = places.shape[0]
    cdef const run_loss_table *t = <const run_loss_table *>table()
    cdef unsigned long long saved
    cdef Py_ssize_t x, y
    cdef int status
    cdef double numerator = 0, denominator = 0
    if losses.shape[0] != m:
        raise ValueError(f"losses has shape ({losses.shape[0]},): expected ({m},)")
    if weights is not None and weights.shape[0] != m:
        raise ValueError(f"weights has shape ({weights.shape[0]},): expected ({m},)")
    if places.shape[1] != 3:
        raise ValueError(f"places has shape ({q}, {places.shape[1]}): expected (count, 3)")
    shape2("dlogits", dlogits, n, 1 + 2 * c)
    if not 0 <= scale < float("inf"):
        raise ValueError(f"scale = {scale}: expected a finite number >= 0")
    for x in range(m):
        if not 0 <= fields[x] < c:
            raise ValueError(f"fields[{x}] = {fields[x]}: expected 0..{c - 1}")
        if weights is not None and not 0 <= weights[x] < float("inf"):
            raise ValueError(f"weights[{x}] = {weights[x]}: expected a finite number >= 0")
    cdef int[::1] begin = np.zeros(m + 1, np.int32)
    cdef int[:, ::1] ends = np.empty((q + 1, 2), np.int32)
    for y in range(q):
        if not 0 <= places[y, 0] < m:
            raise ValueError(f"places[{y}] has term {places[y, 0]}: expected 0..{m - 1}")
        if not 0 <= places[y, 1] <= places[y, 2] < n:
            raise ValueError(f"places[{y}] has words {places[y, 1]}..{places[y, 2]}: expected 0 <= first <= last < {n}")
        if y > 0 and not (places[y - 1, 0], places[y - 1, 1], places[y - 1, 2]) < (places[y, 0], places[y, 1],
                                                                                    places[y, 2]):
            raise ValueError(f"places[{y}] = {tuple(places[y])}: expected ascending, each place once in a term")
        begin[places[y, 0] + 1] += 1
        ends[y, 0], ends[y, 1] = places[y, 1], places[y, 2]
    for x in range(m):
        if repeated[fields[x]] and begin[x + 1] != 1:
            raise ValueError(f"term {x} has {begin[x + 1]} places: expected one, field {fields[x]} is repeated")
        begin[x + 1] += begin[x]
    cdef const float *pl = in2(logits)
    cdef float *pd = out2(dlogits)
    cdef const unsigned char *pr = NULL if c == 0 else &repeated[0]
    cdef const int *pf = NULL if m == 0 else &fields[0]
    cdef const double *pw = NULL if weights is None or m == 0 else &weights[0]
    cdef double *po = NULL if m == 0 else &losses[0]
    cdef bint finite = True
    for x in range(n):
        for y in range(1 + 2 * c):
            finite &= logits[x, y] - logits[x, y] == 0
    if not finite:
        for x in range(m):
            losses[x] = float("nan")
        if dlogits is not None:
            for x in range(n):
                for y in range(1 + 2 * c):
                    dlogits[x, y] = float("nan")
    else:
        with nogil:
            saved = fp_enter()
            status = t.run_loss(degree_current(), n, c, pl, pr, m, pf, &begin[0], &ends[0, 0], pw, scale, po, pd)
            fp_leave(saved)
        raise_status(status)
    with nogil:
        saved = fp_enter()
        for x in range(m):
            numerator = numerator + (po[x] if pw == NULL else pw[x] * po[x])
            denominator = denominator + (1.0 if pw == NULL else pw[x])
        numerator, denominator = dx_seal(numerator), dx_seal(denominator)
        fp_leave(saved)
    return numerator, denominator
