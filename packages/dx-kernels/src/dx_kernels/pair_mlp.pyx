"""The pair MLP: two layers over the features of all ordered pairs of words, one bias per pair and head."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2,
                               table)

cdef extern from "table.h" nogil:
    ctypedef struct pair_mlp_table "dx_kernels_table":
        int (*pair_mlp_forward)(int degree, Py_ssize_t pairs, Py_ssize_t inputs, Py_ssize_t units, Py_ssize_t heads,
                                const float *features, const float *weight1, const float *bias1,
                                const float *weight2, const float *bias2, float *y, float *hidden) noexcept nogil
        int (*pair_mlp_backward)(int degree, Py_ssize_t pairs, Py_ssize_t inputs, Py_ssize_t units, Py_ssize_t heads,
                                 const float *dy, const float *features, const float *hidden, const float *weight1,
                                 const float *bias1, const float *weight2, float *dweight1, float *dbias1,
                                 float *dweight2, float *dbias2) noexcept nogil


cdef int check(Py_ssize_t inputs, const float[:, ::1] weight1, const float[::1] bias1,
               const float[:, ::1] weight2) except -1:
    if inputs < 1 or weight1.shape[0] < 1 or weight2.shape[0] < 1:
        raise ValueError(f"the layers have {inputs} inputs, {weight1.shape[0]} units and {weight2.shape[0]} heads: "
                         "expected at least 1 of each")
    shape2("weight1", weight1, weight1.shape[0], inputs)
    shape1("bias1", bias1, weight1.shape[0])
    shape2("weight2", weight2, weight2.shape[0], weight1.shape[0])
    return 0


def pair_mlp_forward(const float[:, ::1] features not None, const float[:, ::1] weight1 not None,
                     const float[::1] bias1 not None, const float[:, ::1] weight2 not None,
                     const float[::1] bias2 not None, float[:, ::1] y not None, float[:, ::1] hidden=None):
    """y := weight2 relu(weight1 features + bias1) + bias2, column by column; a column is a pair (i, j row-major).

    Shapes    features (inputs, pairs) · weight1 (units, inputs) · bias1 (units,) · weight2 (heads, units) ·
              bias2 (heads,) · y (heads, pairs) · hidden (units, pairs): saved for backward when given
    Order     both products one dot16 an element (over inputs, over units); bias, then relu
    Edges     pairs == 0 → nothing · NaN in a pair's features → NaN in that pair
    Aliasing  none
    Raises    ValueError: no inputs, units or heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.pair_mlp_forward
    """
    cdef Py_ssize_t inputs = features.shape[0], pairs = features.shape[1]
    cdef Py_ssize_t units = weight1.shape[0], heads = weight2.shape[0]
    cdef const pair_mlp_table *t = <const pair_mlp_table *>table()
    cdef unsigned long long saved
    cdef int status
    check(inputs, weight1, bias1, weight2)
    shape1("bias2", bias2, heads)
    shape2("y", y, heads, pairs)
    shape2("hidden", hidden, units, pairs)
    cdef const float *pf = in2(features)
    cdef const float *pw1 = in2(weight1)
    cdef const float *pb1 = in1(bias1)
    cdef const float *pw2 = in2(weight2)
    cdef const float *pb2 = in1(bias2)
    cdef float *py = out2(y)
    cdef float *ph = out2(hidden)
    if pairs == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.pair_mlp_forward(degree_current(), pairs, inputs, units, heads, pf, pw1, pb1, pw2, pb2, py, ph)
        fp_leave(saved)
    raise_status(status)


def pair_mlp_backward(const float[:, ::1] dy not None, const float[:, ::1] features not None,
                      const float[:, ::1] hidden, const float[:, ::1] weight1 not None,
                      const float[::1] bias1 not None, const float[:, ::1] weight2 not None,
                      float[:, ::1] dweight1 not None, float[::1] dbias1 not None, float[:, ::1] dweight2 not None,
                      float[::1] dbias2 not None):
    """The gradients of pair_mlp_forward's weights and biases; the features are data and get none.

    hidden None computes the hidden layer again, tile by tile: the same bits, less memory.

    Shapes    dy (heads, pairs) · features, hidden, weight1, bias1, weight2 as forward · dweight1, dbias1, dweight2,
              dbias2 like the weights and biases
    Order     dh = dot16 over heads, +0 where hidden <= 0; weight gradients dot16 over pairs, bias gradients sum16 over
              pairs, in row-major order of the pairs
    Edges     pairs == 0 → zeros
    Writes    outputs assigned            Aliasing  none
    Raises    ValueError: no inputs, units or heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.pair_mlp_backward
    """
    cdef Py_ssize_t inputs = features.shape[0], pairs = features.shape[1]
    cdef Py_ssize_t units = weight1.shape[0], heads = weight2.shape[0]
    cdef const pair_mlp_table *t = <const pair_mlp_table *>table()
    cdef unsigned long long saved
    cdef int status
    check(inputs, weight1, bias1, weight2)
    shape2("dy", dy, heads, pairs)
    shape2("hidden", hidden, units, pairs)
    shape2("dweight1", dweight1, units, inputs)
    shape1("dbias1", dbias1, units)
    shape2("dweight2", dweight2, heads, units)
    shape1("dbias2", dbias2, heads)
    cdef const float *pdy = in2(dy)
    cdef const float *pf = in2(features)
    cdef const float *ph = in2(hidden)
    cdef const float *pw1 = in2(weight1)
    cdef const float *pb1 = in1(bias1)
    cdef const float *pw2 = in2(weight2)
    cdef float *pdw1 = out2(dweight1)
    cdef float *pdb1 = out1(dbias1)
    cdef float *pdw2 = out2(dweight2)
    cdef float *pdb2 = out1(dbias2)
    with nogil:
        saved = fp_enter()
        status = t.pair_mlp_backward(degree_current(), pairs, inputs, units, heads, pdy, pf, ph, pw1, pb1, pw2, pdw1,
                                     pdb1, pdw2, pdb2)
        fp_leave(saved)
    raise_status(status)
