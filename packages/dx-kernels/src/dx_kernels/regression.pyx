"""Losses of real targets: squared, absolute, Huber, Gaussian with a predicted variance; forward and backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table
from dx_kernels._loss cimport check_factor

cdef extern from "table.h" nogil:
    ctypedef struct regression_table "dx_kernels_table":
        int (*regression)(int degree, Py_ssize_t count, int kind, double delta, const float *prediction,
                          const double *target, const unsigned char *counted, double scale, double denominator,
                          double *losses, double *numerator, float *dprediction) noexcept nogil
        int (*gaussian_nll)(int degree, Py_ssize_t count, const float *mean, const float *log_variance,
                            const double *target, const unsigned char *counted, double scale, double denominator,
                            double *losses, double *numerator, float *dmean, float *dlog_variance) noexcept nogil

KINDS = {"squared": 0, "absolute": 1, "huber": 2}


cdef struct arguments:
    Py_ssize_t count
    const double *target
    const unsigned char *counted
    double *losses
    double total


cdef arguments check(Py_ssize_t rows, Py_ssize_t columns, const double[:, ::1] target,
                     const unsigned char[:, ::1] counted, double[:, ::1] losses) except *:
    cdef arguments a
    cdef Py_ssize_t r, j, total = 0
    if target.shape[0] != rows or target.shape[1] != columns:
        raise ValueError(f"target has shape ({target.shape[0]}, {target.shape[1]}): expected ({rows}, {columns})")
    if counted is not None and (counted.shape[0] != rows or counted.shape[1] != columns):
        raise ValueError(f"counted has shape ({counted.shape[0]}, {counted.shape[1]}): expected ({rows}, {columns})")
    if losses is not None and (losses.shape[0] != rows or losses.shape[1] != columns):
        raise ValueError(f"losses has shape ({losses.shape[0]}, {losses.shape[1]}): expected ({rows}, {columns})")
    a.count = rows * columns
    a.target = NULL if a.count == 0 else &target[0, 0]
    a.counted = NULL if counted is None or a.count == 0 else &counted[0, 0]
    a.losses = NULL if losses is None or a.count == 0 else &losses[0, 0]
    if counted is None:
        total = a.count
    else:
        for r in range(rows):
            for j in range(columns):
                total += counted[r, j] != 0
    a.total = total
    return a


cdef int kind_of(kind, double delta) except -1:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind = {kind!r}: expected one of {', '.join(map(repr, KINDS))}")
    if not (delta > 0 and delta - delta == 0):
        raise ValueError(f"delta = {delta}: expected a finite number > 0")
    return KINDS[kind]


cdef double run(const arguments *a, int kind, double delta, const float *prediction, double scale, double denominator,
                float *dprediction) except? -1:
    cdef const regression_table *t = <const regression_table *>table()
    cdef unsigned long long saved
    cdef double numerator = 0.0
    cdef int status
    with nogil:
        saved = fp_enter()
        status = t.regression(degree_current(), a.count, kind, delta, prediction, a.target, a.counted, scale,
                              denominator, a.losses, &numerator, dprediction)
        fp_leave(saved)
    raise_status(status)
    return numerator


def regression_forward(const float[:, ::1] prediction not None, const double[:, ::1] target not None,
                       const unsigned char[:, ::1] counted=None, double[:, ::1] losses=None, *, kind="squared",
                       double delta=1.0):
    """(numerator, denominator): the sum of the losses of the counted elements, and how many are counted.

    kind      "squared" e^2 · "absolute" |e| · "huber" e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2);
              e = prediction - target
    Shapes    prediction, target, counted, losses (rows, columns) · counted uint8: 0 where the target is missing (what
              stands there never matters), None: all are there · losses float64, 0 where not counted
    Order     binary64, element by element; the sum in row-major order
    Edges     nothing counted → (0, 0) · NaN in a counted element → NaN
    Raises    ValueError: an unknown kind, delta not finite and > 0, a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.regression.regression_forward
    """
    cdef arguments a = check(prediction.shape[0], prediction.shape[1], target, counted, losses)
    return run(&a, kind_of(kind, delta), delta, in2(prediction), 1.0, 1.0, NULL), a.total


def regression_backward(const float[:, ::1] prediction not None, const double[:, ::1] target not None,
                        const unsigned char[:, ::1] counted, float[:, ::1] dprediction not None, *, kind="squared",
                        double delta=1.0, double scale=1.0, denominator=None):
    """dprediction := scale / denominator * d loss / d prediction; returns what regression_forward returns.

    The derivative is 2 e (squared), the sign of e with 0 at e = 0 (absolute), e up to delta and delta times the sign
    beyond (huber). denominator None: the number of counted elements.

    Shapes    as regression_forward · dprediction (rows, columns)
    Order     binary64, rounded to binary32 once
    Edges     an element not counted → +0 · denominator 0 → zeros
    Writes    dprediction assigned        Aliasing  dprediction may not be prediction
    Raises    as regression_forward; ValueError: scale not finite, denominator negative or not finite
    Source    docs/readout.md; bit-equal to dx_kernels.ref.regression.regression_backward
    """
    cdef arguments a = check(prediction.shape[0], prediction.shape[1], target, counted, None)
    cdef double divisor = a.total if denominator is None else denominator
    shape2("dprediction", dprediction, prediction.shape[0], prediction.shape[1])
    check_factor(scale, divisor)
    cdef double numerator = run(&a, kind_of(kind, delta), delta, in2(prediction), scale, divisor, out2(dprediction))
    if divisor == 0.0:
        dprediction[:, :] = 0.0
    return numerator, a.total


cdef double run_gaussian(const arguments *a, const float *mean, const float *log_variance, double scale,
                         double denominator, float *dmean, float *dlog_variance) except? -1:
    cdef const regression_table *t = <const regression_table *>table()
    cdef unsigned long long saved
    cdef double numerator = 0.0
    cdef int status
    with nogil:
        saved = fp_enter()
        status = t.gaussian_nll(degree_current(), a.count, mean, log_variance, a.target, a.counted, scale, denominator,
                                a.losses, &numerator, dmean, dlog_variance)
        fp_leave(saved)
    raise_status(status)
    return numerator


def gaussian_nll_forward(const float[:, ::1] mean not None, const float[:, ::1] log_variance not None,
                         const double[:, ::1] target not None, const unsigned char[:, ::1] counted=None,
                         double[:, ::1] losses=None):
    """(numerator, denominator) of the negative log density of each target under a normal distribution.

    loss = (s + (mean - target)^2 exp(-s) + log 2 pi) / 2 with s the log variance: no variance can be 0 or negative.

    Shapes    mean, log_variance, target, counted, losses (rows, columns); counted and losses as regression_forward
    Order     binary64, element by element: 0.5 * ((s + (e * e) * exp64(-s)) + log 2 pi); the sum in row-major order
    Edges     nothing counted → (0, 0) · NaN in a counted element → NaN
    Raises    ValueError: a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.regression.gaussian_nll_forward
    """
    shape2("log_variance", log_variance, mean.shape[0], mean.shape[1])
    cdef arguments a = check(mean.shape[0], mean.shape[1], target, counted, losses)
    return run_gaussian(&a, in2(mean), in2(log_variance), 1.0, 1.0, NULL, NULL), a.total


def gaussian_nll_backward(const float[:, ::1] mean not None, const float[:, ::1] log_variance not None,
                          const double[:, ::1] target not None, const unsigned char[:, ::1] counted,
                          float[:, ::1] dmean not None, float[:, ::1] dlog_variance not None, *, double scale=1.0,
                          denominator=None):
    """dmean := factor * e exp(-s), dlog_variance := factor * (1 - e^2 exp(-s)) / 2; returns as gaussian_nll_forward.

    factor = scale / denominator; denominator None: the number of counted elements.

    Shapes    as gaussian_nll_forward · dmean, dlog_variance (rows, columns)
    Order     binary64, rounded to binary32 once
    Edges     an element not counted → +0 · denominator 0 → zeros
    Writes    outputs assigned            Aliasing  outputs overlap nothing
    Raises    as gaussian_nll_forward; ValueError: scale not finite, denominator negative or not finite
    Source    docs/readout.md; bit-equal to dx_kernels.ref.regression.gaussian_nll_backward
    """
    shape2("log_variance", log_variance, mean.shape[0], mean.shape[1])
    shape2("dmean", dmean, mean.shape[0], mean.shape[1])
    shape2("dlog_variance", dlog_variance, mean.shape[0], mean.shape[1])
    cdef arguments a = check(mean.shape[0], mean.shape[1], target, counted, None)
    cdef double divisor = a.total if denominator is None else denominator
    check_factor(scale, divisor)
    cdef double numerator = run_gaussian(&a, in2(mean), in2(log_variance), scale, divisor, out2(dmean),
                                         out2(dlog_variance))
    if divisor == 0.0:
        dmean[:, :] = 0.0
        dlog_variance[:, :] = 0.0
    return numerator, a.total
