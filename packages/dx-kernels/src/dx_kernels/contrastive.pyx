"""Multi-positive contrastive loss over a matrix of scores (anchors by candidates), with its gradient."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table

cdef extern from "table.h" nogil:
    ctypedef struct contrastive_table "dx_kernels_table":
        int (*contrastive)(int degree, Py_ssize_t rows, Py_ssize_t columns, const float *scores,
                           const unsigned char *positive, const unsigned char *admit, const double *weight,
                           double temperature, double scale, double denominator, double *losses, double *numerator,
                           float *dscores) noexcept nogil

cdef double INFINITY = float("inf")


cdef struct arguments:  # checked
    Py_ssize_t rows, columns
    const float *scores
    const unsigned char *positive
    const unsigned char *admit
    const double *weight
    double temperature


cdef const unsigned char *mask(str name, const unsigned char[:, ::1] m, Py_ssize_t rows,
                               Py_ssize_t columns) except? NULL:
    if m is None:
        return NULL
    if m.shape[0] != rows or m.shape[1] != columns:
        raise ValueError(f"{name} has shape ({m.shape[0]}, {m.shape[1]}): expected ({rows}, {columns})")
    return &m[0, 0] if rows and columns else NULL


cdef int check_row(const arguments *a, Py_ssize_t r) except -1:
    cdef Py_ssize_t j, at = r * a.columns
    cdef int count = 0
    cdef unsigned char outside = 0
    for j in range(a.columns):
        count += a.positive[at + j] != 0
    if a.admit != NULL:
        for j in range(a.columns):
            outside |= (a.positive[at + j] != 0) & (a.admit[at + j] == 0)
    if count == 0:
        raise ValueError(f"positive: row {r} has no positive column, expected at least one")
    if outside:
        j = next(j for j in range(a.columns) if a.positive[at + j] and not a.admit[at + j])
        raise ValueError(f"positive[{r}, {j}] is set and admit[{r}, {j}] is 0: expected every positive to be admitted")
    if a.weight != NULL:
        for j in range(a.columns):
            if not 0 <= a.weight[at + j] < INFINITY:
                raise ValueError(f"weight[{r}, {j}] = {a.weight[at + j]}: expected a finite number >= 0")
            if a.positive[at + j] and a.weight[at + j] == 0:
                raise ValueError(f"weight[{r}, {j}] = 0: expected a positive's weight above 0")
    return 0


cdef arguments check(const float[:, ::1] scores, const unsigned char[:, ::1] positive,
                     const unsigned char[:, ::1] admit, const double[:, ::1] weight, double temperature) except *:
    cdef arguments a
    cdef Py_ssize_t r
    a.rows = scores.shape[0]
    a.columns = scores.shape[1]
    if not 0 < temperature < INFINITY:
        raise ValueError(f"temperature = {temperature}: expected a finite number > 0")
    if weight is not None and (weight.shape[0] != a.rows or weight.shape[1] != a.columns):
        raise ValueError(f"weight has shape ({weight.shape[0]}, {weight.shape[1]}): expected ({a.rows}, {a.columns})")
    if a.columns > 0x7fffffff:
        raise ValueError(f"scores has {a.columns} columns: expected at most 2^31 - 1")
    a.temperature = temperature
    a.scores = in2(scores)
    a.positive = mask("positive", positive, a.rows, a.columns)
    a.admit = mask("admit", admit, a.rows, a.columns)
    a.weight = NULL if weight is None or a.rows == 0 or a.columns == 0 else &weight[0, 0]
    for r in range(a.rows):
        check_row(&a, r)
    return a


cdef double run(const arguments *a, double scale, double denominator, double[::1] losses,
                float *dscores) except? -1:
    cdef const contrastive_table *t = <const contrastive_table *>table()
    cdef unsigned long long saved
    cdef double numerator = 0.0
    cdef double *rows = NULL
    cdef int status
    if losses is not None:
        if losses.shape[0] != a.rows:
            raise ValueError(f"losses has shape ({losses.shape[0]},): expected ({a.rows},)")
        rows = &losses[0] if a.rows else NULL
    with nogil:
        saved = fp_enter()
        status = t.contrastive(degree_current(), a.rows, a.columns, a.scores, a.positive, a.admit, a.weight,
                               a.temperature, scale, denominator, rows, &numerator, dscores)
        fp_leave(saved)
    raise_status(status)
    return numerator


def contrastive_forward(const float[:, ::1] scores not None, const unsigned char[:, ::1] positive not None, *,
                        double temperature, const unsigned char[:, ::1] admit=None, const double[:, ::1] weight=None,
                        double[::1] losses=None):
    """(numerator, denominator): the sum over anchors of -log(sum over positives / sum over admitted of
    w * exp(score / temperature)), and the number of anchors.

    Shapes    scores (anchors, candidates) · positive, admit (anchors, candidates) uint8, nonzero: the candidate is a
              positive of the anchor, takes part in its denominator (None: all do) · weight (anchors, candidates)
              float64 >= 0 or None (ones), multiplies a candidate's term in both sums · losses (anchors,) float64
    Order     binary64: z = score / temperature; m = largest admitted z; A = sum of w * exp64(z - m) over the admitted,
              ascending; m', P likewise over the positives; loss = (log64(A) - log64(P)) + (m - m'); the sum over
              anchors in their order
    Edges     NaN or +inf among an anchor's admitted scores → NaN · all -inf → NaN · no anchors → (0, 0)
    Raises    ValueError: an anchor without a positive, a positive that is not admitted, a weight that is negative or
              not finite or 0 for a positive, temperature <= 0 or not finite, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.contrastive.contrastive_forward
    """
    cdef arguments a = check(scores, positive, admit, weight, temperature)
    return run(&a, 1.0, 1.0, losses, NULL), a.rows


def contrastive_backward(const float[:, ::1] scores not None, const unsigned char[:, ::1] positive not None,
                         float[:, ::1] dscores not None, *, double temperature,
                         const unsigned char[:, ::1] admit=None, const double[:, ::1] weight=None, double scale=1.0,
                         denominator=None, double[::1] losses=None):
    """dscores := scale / denominator * gradient of the numerator; returns what contrastive_forward returns.

    scale is the one factor of the loss. denominator None takes the number of anchors; give the total of a whole batch
    to make accumulated parts add up to the batch's gradient.

    Shapes    as contrastive_forward · dscores (anchors, candidates)
    Order     binary64: (scale / denominator / temperature) * (e / A - [positive] e' / P), rounded to binary32 once;
              e = w * exp64(z - m), e' = w * exp64(z - m')
    Edges     a candidate that is not admitted → +0 · NaN as forward · denominator 0 → zeros
    Writes    dscores and losses assigned            Aliasing  dscores may not be scores
    Raises    as contrastive_forward; ValueError: scale not finite, denominator negative or not finite
    Source    seed formulas; bit-equal to dx_kernels.ref.contrastive.contrastive_backward
    """
    cdef arguments a = check(scores, positive, admit, weight, temperature)
    cdef double divisor = a.rows if denominator is None else denominator
    shape2("dscores", dscores, a.rows, a.columns)
    if not -INFINITY < scale < INFINITY:
        raise ValueError(f"scale = {scale}: expected a finite number")
    if not 0 <= divisor < INFINITY:
        raise ValueError(f"denominator = {divisor}: expected a finite number >= 0")
    cdef double numerator = run(&a, scale, divisor, losses, out2(dscores))
    if divisor == 0.0:
        dscores[:, :] = 0.0
    return numerator, a.rows
