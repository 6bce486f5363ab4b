"""Weighted cross-entropy over rows of logits: tags, roles, document types, and pointers (targets are columns)."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table

cdef extern from "table.h" nogil:
    ctypedef struct cross_entropy_table "dx_kernels_table":
        double (*counted_weight)(Py_ssize_t rows, const int *targets, const double *weight) noexcept nogil
        int (*cross_entropy)(int degree, Py_ssize_t rows, Py_ssize_t columns, const float *logits, const int *targets,
                             const double *weight, const unsigned char *admit, double scale, double denominator,
                             double *losses, double *numerator, float *dlogits) noexcept nogil

cdef double INFINITY = float("inf")


cdef struct arguments:  # checked; total is the sum of the counted weights
    Py_ssize_t rows, columns
    const float *logits
    const int *targets
    const double *weight
    const unsigned char *admit
    double total


cdef arguments check(const float[:, ::1] logits, const int[::1] targets, const double[::1] weight,
                     const unsigned char[:, ::1] admit) except *:
    cdef arguments a
    cdef Py_ssize_t r, j
    cdef unsigned long long saved
    cdef int t
    a.rows = logits.shape[0]
    a.columns = logits.shape[1]
    if targets.shape[0] != a.rows:
        raise ValueError(f"targets has shape ({targets.shape[0]},): expected ({a.rows},)")
    if weight is not None:
        if weight.shape[0] != a.columns:
            raise ValueError(f"weight has shape ({weight.shape[0]},): expected ({a.columns},)")
        for j in range(a.columns):
            if not 0 <= weight[j] < INFINITY:
                raise ValueError(f"weight[{j}] = {weight[j]}: expected a finite number >= 0")
    if admit is not None and (admit.shape[0] != a.rows or admit.shape[1] != a.columns):
        raise ValueError(f"admit has shape ({admit.shape[0]}, {admit.shape[1]}): expected ({a.rows}, {a.columns})")
    for r in range(a.rows):
        t = targets[r]
        if t < -1 or t >= a.columns:
            raise ValueError(f"targets[{r}] = {t}: expected a column in 0..{a.columns - 1}, or -1 (not counted)")
        if t >= 0 and admit is not None and not admit[r, t]:
            raise ValueError(f"targets[{r}] = {t}: expected an admitted column, admit[{r}, {t}] is 0")
    a.logits = in2(logits)
    a.targets = NULL if a.rows == 0 else &targets[0]
    a.weight = NULL if weight is None or a.columns == 0 else &weight[0]
    a.admit = NULL if admit is None or a.rows == 0 or a.columns == 0 else &admit[0, 0]
    saved = fp_enter()
    a.total = (<const cross_entropy_table *>table()).counted_weight(a.rows, a.targets, a.weight)
    fp_leave(saved)
    return a


cdef double *row_losses(double[::1] losses, Py_ssize_t rows) except? NULL:
    if losses is not None and losses.shape[0] != rows:
        raise ValueError(f"losses has shape ({losses.shape[0]},): expected ({rows},)")
    return NULL if losses is None or rows == 0 else &losses[0]


cdef double run(const arguments *a, double scale, double denominator, double *losses, float *dlogits) except? -1:
    cdef const cross_entropy_table *t = <const cross_entropy_table *>table()
    cdef unsigned long long saved
    cdef double numerator = 0.0
    cdef int status
    with nogil:
        saved = fp_enter()
        status = t.cross_entropy(degree_current(), a.rows, a.columns, a.logits, a.targets, a.weight, a.admit, scale,
                                 denominator, losses, &numerator, dlogits)
        fp_leave(saved)
    raise_status(status)
    return numerator


def cross_entropy_forward(const float[:, ::1] logits not None, const int[::1] targets not None,
                          const double[::1] weight=None, const unsigned char[:, ::1] admit=None,
                          double[::1] losses=None):
    """(numerator, denominator) of the loss: the sum of w[t] * nll and the sum of w[t] over rows with a target >= 0.

    The mean (PyTorch's reduction="mean") is numerator / denominator, a weighted average; the sum is numerator; the
    loss of each row is in losses. With a denominator of 0 (no row counted) the loss is 0.

    Shapes    logits (rows, columns) · targets (rows,) int32: a column, or -1 (not counted) · weight (columns,) float64
              or None (ones) · admit (rows, columns) uint8 or None: columns that take part, row by row · losses (rows,)
              float64: w[t] * nll, 0 where not counted
    Order     binary64: m = largest admitted logit; S = sum of exp64(z - m), ascending; nll = log64(S) - (z[t] - m);
              both sums in row order
    Edges     NaN or +inf among a row's admitted logits → NaN · admitted logits all -inf → NaN
    Raises    ValueError: a target that is neither -1 nor an admitted column (row and value), a weight that is
              negative or not finite, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.cross_entropy_forward
    """
    cdef arguments a = check(logits, targets, weight, admit)
    return run(&a, 1.0, 1.0, row_losses(losses, a.rows), NULL), a.total


def cross_entropy_backward(const float[:, ::1] logits not None, const int[::1] targets not None,
                           const double[::1] weight, const unsigned char[:, ::1] admit,
                           float[:, ::1] dlogits not None, *, double scale=1.0, denominator=None):
    """dlogits := scale * w[t] / denominator * (softmax - onehot); returns what cross_entropy_forward returns.

    scale is the one factor of the loss (term weight / batch size). denominator None takes the sum of w[t] of these
    rows; give the total of a whole batch to make accumulated parts add up to the batch's gradient.

    Shapes    as cross_entropy_forward · dlogits (rows, columns)
    Order     binary64: ((scale * w[t]) / denominator) * (e[j] / S - onehot), rounded to binary32 once
    Edges     a row not counted → zeros · denominator 0 → zeros · a column not admitted → +0
    Writes    dlogits assigned            Aliasing  dlogits may not be logits
    Raises    as cross_entropy_forward; ValueError: scale not finite, denominator negative or not finite
    Source    seed formulas; bit-equal to dx_kernels.ref.cross_entropy_backward
    """
    cdef arguments a = check(logits, targets, weight, admit)
    cdef double divisor = a.total if denominator is None else denominator
    shape2("dlogits", dlogits, a.rows, a.columns)
    if not -INFINITY < scale < INFINITY:
        raise ValueError(f"scale = {scale}: expected a finite number")
    if not 0 <= divisor < INFINITY:
        raise ValueError(f"denominator = {divisor}: expected a finite number >= 0")
    cdef double numerator = run(&a, scale, divisor, NULL, out2(dlogits))
    if divisor == 0.0:
        dlogits[:, :] = 0.0
    return numerator, a.total
