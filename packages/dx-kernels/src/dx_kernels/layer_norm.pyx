"""Layer normalisation over the last axis, forward and backward."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2,
                               table, to_float)

cdef extern from "table.h" nogil:
    ctypedef struct layer_norm_table "dx_kernels_table":
        int (*layer_norm_forward)(int degree, Py_ssize_t rows, Py_ssize_t d, const float *x, const float *weight,
                                  const float *bias, float eps, float *y, float *xhat, float *inv) noexcept nogil
        int (*layer_norm_backward)(int degree, Py_ssize_t rows, Py_ssize_t d, const float *dy, const float *xhat,
                                   const float *inv, const float *weight, float *dx, int add, float *dweight,
                                   float *dbias) noexcept nogil


cdef int check_size(Py_ssize_t d, double eps) except -1:
    if d < 1:
        raise ValueError(f"x has rows of {d} elements: expected at least 1")
    if not eps >= 0:
        raise ValueError(f"eps = {eps}: expected a number >= 0")
    return 0


def layer_norm_forward(const float[:, ::1] x not None, const float[::1] weight, const float[::1] bias,
                       float[:, ::1] y not None, float[:, ::1] xhat=None, float[::1] inv=None, *, double eps=1e-5):
    """y := xhat * weight + bias, xhat = (x - mean) * inv, inv = 1 / sqrt(variance + eps), row by row.

    Shapes    x (rows, d) read only · weight, bias (d,) or None (1 and 0) · y (rows, d) · xhat (rows, d) and
              inv (rows,): saved for backward when given
    Order     x - mean, then that minus its own mean (both sum16 / d); variance = dot16 of the centred row / d; each
              element separately rounded
    Edges     rows == 0 → nothing · constant row → exactly bias · NaN or inf in a row → NaN in that row
    Aliasing  y may be x; xhat may not
    Raises    ValueError: d < 1, eps < 0 or NaN, a shape that does not fit (argument, rule, value)
    Source    seed formulas; bit-equal to dx_kernels.ref.layer_norm_forward
    """
    cdef Py_ssize_t rows = x.shape[0], d = x.shape[1]
    cdef const layer_norm_table *t = <const layer_norm_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_size(d, eps)
    shape1("weight", weight, d)
    shape1("bias", bias, d)
    shape2("y", y, rows, d)
    shape2("xhat", xhat, rows, d)
    shape1("inv", inv, rows)
    cdef const float *px = in2(x)
    cdef const float *pw = in1(weight)
    cdef const float *pb = in1(bias)
    cdef float *py = out2(y)
    cdef float *ph = out2(xhat)
    cdef float *pi = out1(inv)
    cdef float added = to_float(eps)
    if rows == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.layer_norm_forward(degree_current(), rows, d, px, pw, pb, added, py, ph, pi)
        fp_leave(saved)
    raise_status(status)


def layer_norm_backward(const float[:, ::1] dy not None, const float[:, ::1] xhat not None,
                        const float[::1] inv not None, const float[::1] weight, float[:, ::1] dx=None,
                        float[::1] dweight=None, float[::1] dbias=None):
    """dx := inv * ((g - mean(g)) - xhat * mean(g * xhat)) with g = dy * weight; dweight, dbias := column sums.

    Shapes    dy, xhat (rows, d) · inv (rows,) · weight (d,) or None · dx (rows, d) · dweight, dbias (d,); outputs
              that are None are not computed
    Order     both means dot16 / d; dweight = sum16 over rows of round(dy * xhat); dbias = sum16 over rows of dy
    Edges     rows == 0 → dweight and dbias are zeros
    Writes    outputs assigned            Aliasing  dx may be dy
    Raises    ValueError: a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.layer_norm_backward
    """
    cdef Py_ssize_t rows = dy.shape[0], d = dy.shape[1]
    cdef const layer_norm_table *t = <const layer_norm_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_size(d, 0.0)
    shape2("xhat", xhat, rows, d)
    shape1("inv", inv, rows)
    shape1("weight", weight, d)
    shape2("dx", dx, rows, d)
    shape1("dweight", dweight, d)
    shape1("dbias", dbias, d)
    cdef const float *pdy = in2(dy)
    cdef const float *ph = in2(xhat)
    cdef const float *pi = in1(inv)
    cdef const float *pw = in1(weight)
    cdef float *pdx = out2(dx)
    cdef float *pdw = out1(dweight)
    cdef float *pdb = out1(dbias)
    with nogil:
        saved = fp_enter()
        status = t.layer_norm_backward(degree_current(), rows, d, pdy, ph, pi, pw, pdx, 0, pdw, pdb)
        fp_leave(saved)
    raise_status(status)
