"""Binary cross-entropy of independent labels, with weights for both sides and the focal factor; forward, backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table
from dx_kernels._loss cimport check_factor, check_weights

cdef extern from "table.h" nogil:
    ctypedef struct binary_cross_entropy_table "dx_kernels_table":
        int (*binary_cross_entropy)(int degree, Py_ssize_t rows, Py_ssize_t columns, const float *logits,
                                    const int *targets, const double *positive, const double *negative, double gamma,
                                    double scale, double denominator, double *losses, double *numerator,
                                    float *dlogits) noexcept nogil


cdef struct arguments:
    Py_ssize_t rows, columns
    const int *targets
    const double *positive
    const double *negative
    double *losses
    double gamma, total


cdef arguments check(const float[:, ::1] logits, const int[:, ::1] targets, const double[::1] positive,
                     const double[::1] negative, double gamma, double[:, ::1] losses) except *:
    cdef arguments a
    cdef Py_ssize_t r, j, total = 0
    cdef bint empty
    a.rows, a.columns, a.gamma = logits.shape[0], logits.shape[1], gamma
    if targets.shape[0] != a.rows or targets.shape[1] != a.columns:
        raise ValueError(f"targets has shape ({targets.shape[0]}, {targets.shape[1]}): expected ({a.rows}, {a.columns})")
    if losses is not None and (losses.shape[0] != a.rows or losses.shape[1] != a.columns):
        raise ValueError(f"losses has shape ({losses.shape[0]}, {losses.shape[1]}): expected ({a.rows}, {a.columns})")
    check_weights("positive", positive, a.columns)
    check_weights("negative", negative, a.columns)
    if not (gamma >= 0 and gamma - gamma == 0):
        raise ValueError(f"gamma = {gamma}: expected a finite number >= 0")
    for r in range(a.rows):
        for j in range(a.columns):
            if not -1 <= targets[r, j] <= 1:
                raise ValueError(f"targets[{r}, {j}] = {targets[r, j]}: expected 0, 1, or -1 (not counted)")
            total += targets[r, j] >= 0
    empty = a.rows == 0 or a.columns == 0
    a.targets = NULL if empty else &targets[0, 0]
    a.positive = NULL if positive is None or empty else &positive[0]
    a.negative = NULL if negative is None or empty else &negative[0]
    a.losses = NULL if losses is None or empty else &losses[0, 0]
    a.total = total
    return a


cdef double run(const arguments *a, const float *logits, double scale, double denominator, float *dlogits) except? -1:
    cdef const binary_cross_entropy_table *t = <const binary_cross_entropy_table *>table()
    cdef unsigned long long saved
    cdef double numerator = 0.0
    cdef int status
    with nogil:
        saved = fp_enter()
        status = t.binary_cross_entropy(degree_current(), a.rows, a.columns, logits, a.targets, a.positive, a.negative,
                                        a.gamma, scale, denominator, a.losses, &numerator, dlogits)
        fp_leave(saved)
    raise_status(status)
    return numerator


def binary_cross_entropy_forward(const float[:, ::1] logits not None, const int[:, ::1] targets not None,
                                 const double[::1] positive=None, const double[::1] negative=None,
                                 double[:, ::1] losses=None, *, double gamma=0.0):
    """(numerator, denominator): the sum of the losses of the counted elements, and how many are counted.

    loss = w (1 - p)^gamma (-log p), p = sigmoid(z) where the target is 1 and sigmoid(-z) where it is 0, w the label's
    positive or negative weight. gamma 0 is plain cross-entropy; the focal loss has gamma > 0, its alpha and 1 - alpha
    are the weights. The labels are independent: no softmax over the columns.

    Shapes    logits, targets (rows, columns), targets int32: 0, 1, or -1 (not counted) · positive, negative (columns,)
              float64 or None (ones) · losses (rows, columns) float64: 0 where not counted
    Order     binary64: u = z or -z; (w * exp64(-(gamma * softplus64(u)))) * softplus64(-u), without the exponential at
              gamma 0; the sum in row-major order
    Edges     nothing counted → (0, 0) · NaN in a counted element → NaN
    Raises    ValueError: a target other than 0, 1, -1 (row, column, value), a weight that is negative or not finite,
              gamma negative or not finite, a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.binary_cross_entropy.binary_cross_entropy_forward
    """
    cdef arguments a = check(logits, targets, positive, negative, gamma, losses)
    return run(&a, in2(logits), 1.0, 1.0, NULL), a.total


def binary_cross_entropy_backward(const float[:, ::1] logits not None, const int[:, ::1] targets not None,
                                  const double[::1] positive, const double[::1] negative,
                                  float[:, ::1] dlogits not None, *, double gamma=0.0, double scale=1.0,
                                  denominator=None):
    """dlogits := scale / denominator * d loss / d z; returns what binary_cross_entropy_forward returns.

    With q = 1 - p: d loss / d u = -w q^gamma (q + gamma p (-log p)), so w (sigmoid(z) - target) at gamma 0.
    denominator None: the number of counted elements.

    Shapes    as binary_cross_entropy_forward · dlogits (rows, columns)
    Order     binary64: q = exp64(-softplus64(u)), p = exp64(-softplus64(-u)); rounded to binary32 once
    Edges     an element not counted → +0 · denominator 0 → zeros
    Writes    dlogits assigned            Aliasing  dlogits may not be logits
    Raises    as binary_cross_entropy_forward; ValueError: scale not finite, denominator negative or not finite
    Source    docs/readout.md; bit-equal to dx_kernels.ref.binary_cross_entropy.binary_cross_entropy_backward
    """
    cdef arguments a = check(logits, targets, positive, negative, gamma, None)
    cdef double divisor = a.total if denominator is None else denominator
    shape2("dlogits", dlogits, a.rows, a.columns)
    check_factor(scale, divisor)
    cdef double numerator = run(&a, in2(logits), scale, divisor, out2(dlogits))
    if divisor == 0.0:
        dlogits[:, :] = 0.0
    return numerator, a.total
