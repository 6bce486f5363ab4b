"""Row softmax with scale, bias, mask and limits, forward and backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table, to_float

cdef extern from "table.h" nogil:
    ctypedef struct softmax_table "dx_kernels_table":
        int (*softmax_forward)(int degree, Py_ssize_t rows, Py_ssize_t n, const float *raw, float scale,
                               const float *bias, const unsigned char *mask, Py_ssize_t mask_stride,
                               const int *limits, float *p) noexcept nogil
        int (*softmax_backward)(int degree, Py_ssize_t rows, Py_ssize_t n, const float *p, const float *dp,
                                float scale, float *draw, float *dbias) noexcept nogil


cdef float check_scale(double scale) except -1:
    cdef float divisor = to_float(scale)
    if not 0 < divisor < float("inf"):
        raise ValueError(f"scale = {scale}: expected a finite number > 0")
    return divisor


def softmax_forward(const float[:, ::1] raw not None, float[:, ::1] p not None, *, double scale=1.0,
                    const float[:, ::1] bias=None, const unsigned char[:, ::1] mask=None,
                    const int[::1] limits=None):
    """p := softmax(raw / scale + bias) row by row, over the admitted columns; +0 elsewhere.

    Shapes    raw, bias, p (rows, n) · mask (rows, n), or (1, n) for all rows: a nonzero byte admits the column ·
              limits (rows,): row r admits columns below limits[r] · None: no bias, all columns
    Order     s = raw / scale, + bias; the maximum is subtracted; exp32; sum16; one division each; exponentials and
              probabilities below 2^-126 become +0
    Edges     nothing admitted, or only -inf → a row of +0 · NaN in an admitted column, or +inf (inf - inf) → NaN in
              every admitted column of that row · what stands in a column that is not admitted never matters
    Aliasing  p may be raw
    Raises    ValueError: scale not finite and > 0, a limit outside 0..n, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.softmax.softmax_forward
    """
    cdef Py_ssize_t rows = raw.shape[0], n = raw.shape[1], r, mask_stride = 0
    cdef const softmax_table *t = <const softmax_table *>table()
    cdef const unsigned char *pm = NULL
    cdef const int *pl = NULL
    cdef unsigned long long saved
    cdef int status
    cdef float divisor = check_scale(scale)
    shape2("bias", bias, rows, n)
    shape2("p", p, rows, n)
    if mask is not None and ((mask.shape[0] != rows and mask.shape[0] != 1) or mask.shape[1] != n):
        raise ValueError(f"mask has shape ({mask.shape[0]}, {mask.shape[1]}): expected ({rows}, {n}) or (1, {n})")
    if limits is not None:
        if limits.shape[0] != rows:
            raise ValueError(f"limits has shape ({limits.shape[0]},): expected ({rows},)")
        for r in range(rows):
            if not 0 <= limits[r] <= n:
                raise ValueError(f"limits[{r}] = {limits[r]}: expected 0..{n}")
    if rows == 0 or n == 0:
        return
    if mask is not None:
        pm = &mask[0, 0]
        mask_stride = n if mask.shape[0] == rows else 0
    if limits is not None:
        pl = &limits[0]
    cdef const float *praw = in2(raw)
    cdef const float *pb = in2(bias)
    cdef float *pp = out2(p)
    with nogil:
        saved = fp_enter()
        status = t.softmax_forward(degree_current(), rows, n, praw, divisor, pb, pm, mask_stride, pl, pp)
        fp_leave(saved)
    raise_status(status)


def softmax_backward(const float[:, ::1] p not None, const float[:, ::1] dp not None, float[:, ::1] draw=None,
                     float[:, ::1] dbias=None, *, double scale=1.0):
    """ds = p * (dp - dot16(p, dp)) row by row; draw := ds / scale, dbias := ds.

    Shapes    p (softmax_forward's), dp, draw, dbias (rows, n); an output that is None is not computed
    Order     dot16 over the whole row, columns that are not admitted taking part with p = 0
    Edges     a row of zeros in p has zero gradients (for a finite dp)
    Writes    outputs assigned            Aliasing  draw or dbias may be dp
    Raises    ValueError: scale not finite and > 0, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.softmax.softmax_backward
    """
    cdef Py_ssize_t rows = p.shape[0], n = p.shape[1]
    cdef const softmax_table *t = <const softmax_table *>table()
    cdef unsigned long long saved
    cdef int status
    cdef float divisor = check_scale(scale)
    shape2("dp", dp, rows, n)
    shape2("draw", draw, rows, n)
    shape2("dbias", dbias, rows, n)
    cdef const float *pp = in2(p)
    cdef const float *pdp = in2(dp)
    cdef float *pdraw = out2(draw)
    cdef float *pdb = out2(dbias)
    if rows == 0 or n == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.softmax_backward(degree_current(), rows, n, pp, pdp, divisor, pdraw, pdb)
        fp_leave(saved)
    raise_status(status)
