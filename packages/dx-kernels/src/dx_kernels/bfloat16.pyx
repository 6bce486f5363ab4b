"""bfloat16 weight gradients: operands rounded to bfloat16, products and sums in binary32."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in1, in2, in3, out1, out2, raise_status, shape1, \
    shape2, shape3, table
from dx_kernels.patch cimport dx_patch_grid, set_grid, shape4

cdef extern from "table.h" nogil:
    ctypedef struct bfloat16_table "dx_kernels_table":
        int (*round_bfloat16)(int degree, Py_ssize_t n, const float *x, float *y) noexcept nogil
        int (*linear_weight_gradient_bfloat16)(int degree, Py_ssize_t batch, Py_ssize_t rows, Py_ssize_t n_in,
                                               Py_ssize_t n_out, const float *dy, const float *x,
                                               float *dweight) noexcept nogil
        int (*patch_weight_gradient_bfloat16)(int degree, Py_ssize_t batch, const dx_patch_grid *g, const float *dy,
                                              const float *images, float *dweight) noexcept nogil


def round_bfloat16(const float[::1] x not None, float[::1] y not None):
    """y := x rounded to the nearest bfloat16 value, ties to even, kept as binary32.

    Shapes    x, y (n,)
    Edges     ±0, ±inf kept · what rounds above the largest bfloat16 → ±inf · NaN stays NaN · subnormals exact
    Aliasing  y may be x
    Raises    ValueError: shapes that differ
    Source    numerics.md "Half precision"; bit-equal to dx_kernels.ref.bfloat16.round_bfloat16
    """
    cdef Py_ssize_t n = x.shape[0]
    cdef const bfloat16_table *t = <const bfloat16_table *>table()
    cdef unsigned long long saved
    shape1("y", y, n)
    cdef const float *px = in1(x)
    cdef float *py = out1(y)
    with nogil:
        saved = fp_enter()
        t.round_bfloat16(degree_current(), n, px, py)
        fp_leave(saved)


def linear_weight_gradient_bfloat16(const float[:, :, ::1] dy not None, const float[:, :, ::1] x not None,
                                    float[:, ::1] dweight not None):
    """dweight := sum over the batch of round(dy[b]).T @ round(x[b]), round to bfloat16.

    Shapes    dy (batch, rows, out) · x (batch, rows, in) · dweight (out, in)
    Order     each example: dot16 over rows; examples added in order, one plain addition each, starting as the first
              example's; the result is binary32, not rounded to bfloat16
    Edges     batch == 0 or rows == 0 → +0 · NaN stays NaN
    Writes    dweight assigned
    Raises    ValueError: a shape that does not fit
    Source    backward-numerics.md "bfloat16 gradient nodes"; bit-equal to dx_kernels.ref.bfloat16
    """
    cdef Py_ssize_t batch = x.shape[0], rows = x.shape[1], n_in = x.shape[2], n_out = dweight.shape[0]
    cdef const bfloat16_table *t = <const bfloat16_table *>table()
    cdef unsigned long long saved
    cdef int status
    shape3("dy", dy, batch, rows, n_out)
    shape2("dweight", dweight, n_out, n_in)
    cdef const float *pdy = in3(dy)
    cdef const float *px = in3(x)
    cdef float *pdw = out2(dweight)
    if pdw == NULL:
        return
    with nogil:
        saved = fp_enter()
        status = t.linear_weight_gradient_bfloat16(degree_current(), batch, rows, n_in, n_out, pdy, px, pdw)
        fp_leave(saved)
    raise_status(status)


def patch_weight_gradient_bfloat16(const float[:, :, ::1] dy not None, const float[:, :, :, ::1] images not None,
                                   float[:, :, :, ::1] dweight not None):
    """dweight := round(sum over the batch of the patch embedding's weight gradient of round(dy[b]), round(images[b])).

    Shapes    dy (batch, patches + 1, d), row 0 the class token's, which takes no part · images (batch, channels,
              height, width) · dweight (d, channels, patch, patch)
    Order     each example: dot16 over patches; examples added in order; the sum rounded to bfloat16 once
    Edges     batch == 0 or no patches → +0 · NaN stays NaN
    Writes    dweight assigned
    Raises    ValueError: patch > width, dy without a row, a shape that does not fit
    Source    backward-numerics.md "bfloat16 gradient nodes"; bit-equal to dx_kernels.ref.bfloat16
    """
    cdef Py_ssize_t batch = images.shape[0], d = dweight.shape[0], patch = dweight.shape[2], b
    cdef const bfloat16_table *t = <const bfloat16_table *>table()
    cdef dx_patch_grid g
    cdef unsigned long long saved
    cdef int status
    if dy.shape[1] < 1:
        raise ValueError("dy has no row: expected one for the class token and one for each patch")
    set_grid(&g, images.shape[1], images.shape[2], images.shape[3], patch, dy.shape[1] - 1, d)
    shape3("dy", dy, batch, g.patches + 1, d)
    shape4("dweight", dweight, d, g.channels, patch, patch)
    if d == 0 or g.channels == 0:
        return
    cdef const float *pdy = in3(dy)
    cdef const float *pi = NULL
    if batch and g.height:
        pi = &images[0, 0, 0, 0]
    cdef float *pdw = &dweight[0, 0, 0, 0]
    with nogil:
        saved = fp_enter()
        status = t.patch_weight_gradient_bfloat16(degree_current(), batch, &g, pdy, pi, pdw)
        fp_leave(saved)
    raise_status(status)
