"""The attention bias of all pairs of words, from where the words stand, and the gradients of its weights."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in1, in2, in3, out1, out2, out3, raise_status, shape1,
                               shape2, shape3, table)
from dx_kernels.pairs cimport check_places

cdef extern from "table.h" nogil:
    enum:
        DX_PAIR_FEATURE_COUNT
    ctypedef struct pair_bias_table "dx_kernels_table":
        int (*pair_bias_forward)(int degree, Py_ssize_t n, Py_ssize_t units, Py_ssize_t heads, const double *real,
                                 const int *whole, const float *weight1, const float *bias1, const float *weight2,
                                 const float *bias2, float *out) noexcept nogil
        int (*pair_bias_backward)(int degree, Py_ssize_t n, Py_ssize_t units, Py_ssize_t heads, const float *dy,
                                  const double *real, const int *whole, const float *weight1, const float *bias1,
                                  const float *weight2, float *dweight1, float *dbias1, float *dweight2,
                                  float *dbias2) noexcept nogil


def pair_bias_forward(const double[:, ::1] real not None, const int[:, ::1] whole not None,
                      const float[:, ::1] weight1 not None, const float[::1] bias1 not None,
                      const float[:, ::1] weight2 not None, const float[::1] bias2 not None,
                      float[:, :, ::1] out not None):
    """out[o, i, j] := pair2(relu(pair1(features of the pair (i, j))))[o], without storing features or hidden values.

    Shapes    real (6, n) float64 and whole (3, n) int32 from page_geometry · weight1 (units, 20) · bias1 (units,) ·
              weight2 (heads, units) · bias2 (heads,) · out (heads, n, n)
    Order     as pair_features and pair_mlp_forward one after the other, bit for bit
    Edges     n == 0 → nothing
    Raises    ValueError: as pair_features; a shape that does not fit
    Source    docs/docextract-v0.md; bit-equal to dx_kernels.ref.pair_bias.pair_bias_forward
    """
    cdef Py_ssize_t n = real.shape[1], units = weight1.shape[0], heads = weight2.shape[0]
    cdef const pair_bias_table *t = <const pair_bias_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_places(real, whole)
    shape2("weight1", weight1, units, DX_PAIR_FEATURE_COUNT)
    shape1("bias1", bias1, units)
    shape2("weight2", weight2, heads, units)
    shape1("bias2", bias2, heads)
    shape3("out", out, heads, n, n)
    if n == 0 or heads == 0:
        return
    if units == 0:
        raise ValueError("weight1 has 0 units: expected at least 1")
    cdef const double *pr = &real[0, 0]
    cdef const int *pw = &whole[0, 0]
    cdef const float *w1 = in2(weight1)
    cdef const float *b1 = in1(bias1)
    cdef const float *w2 = in2(weight2)
    cdef const float *b2 = in1(bias2)
    cdef float *po = out3(out)
    with nogil:
        saved = fp_enter()
        status = t.pair_bias_forward(degree_current(), n, units, heads, pr, pw, w1, b1, w2, b2, po)
        fp_leave(saved)
    raise_status(status)


def pair_bias_backward(const float[:, :, ::1] dy not None, const double[:, ::1] real not None,
                       const int[:, ::1] whole not None, const float[:, ::1] weight1 not None,
                       const float[::1] bias1 not None, const float[:, ::1] weight2 not None,
                       float[:, ::1] dweight1 not None, float[::1] dbias1 not None, float[:, ::1] dweight2 not None,
                       float[::1] dbias2 not None):
    """The gradients of pair_bias_forward's weights and biases, from dy (heads, n, n), the gradient of its output.

    Features and hidden values are made again, tile by tile; they are data of the page and get no gradient.

    Shapes    dy (heads, n, n) · real, whole, weight1, bias1, weight2 as forward · dweight1, dbias1, dweight2, dbias2
              like the weights and biases
    Order     as pair_features and pair_mlp_backward one after the other, bit for bit
    Edges     n == 0 → zeros
    Writes    outputs assigned            Aliasing  none
    Raises    ValueError: as pair_features; no units or heads, a shape that does not fit
    Source    docs/backward-numerics.md; bit-equal to dx_kernels.ref.pair_bias.pair_bias_backward
    """
    cdef Py_ssize_t n = real.shape[1], units = weight1.shape[0], heads = weight2.shape[0]
    cdef const pair_bias_table *t = <const pair_bias_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_places(real, whole)
    if units == 0 or heads == 0:
        raise ValueError(f"the layers have {units} units and {heads} heads: expected at least 1 of each")
    shape2("weight1", weight1, units, DX_PAIR_FEATURE_COUNT)
    shape1("bias1", bias1, units)
    shape2("weight2", weight2, heads, units)
    shape3("dy", dy, heads, n, n)
    shape2("dweight1", dweight1, units, DX_PAIR_FEATURE_COUNT)
    shape1("dbias1", dbias1, units)
    shape2("dweight2", dweight2, heads, units)
    shape1("dbias2", dbias2, heads)
    cdef const double *pr = &real[0, 0] if n else NULL
    cdef const int *pw = &whole[0, 0] if n else NULL
    cdef const float *pdy = in3(dy)
    cdef const float *w1 = in2(weight1)
    cdef const float *b1 = in1(bias1)
    cdef const float *w2 = in2(weight2)
    cdef float *dw1 = out2(dweight1)
    cdef float *db1 = out1(dbias1)
    cdef float *dw2 = out2(dweight2)
    cdef float *db2 = out1(dbias2)
    with nogil:
        saved = fp_enter()
        status = t.pair_bias_backward(degree_current(), n, units, heads, pdy, pr, pw, w1, b1, w2, dw1, db1, dw2, db2)
        fp_leave(saved)
    raise_status(status)
