"""Rows of unit length and squared distances between rows: the geometry of embeddings, forward and backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2, \
    table, to_float

cdef extern from "table.h" nogil:
    ctypedef struct similarity_table "dx_kernels_table":
        int (*l2_normalize_forward)(int degree, Py_ssize_t rows, Py_ssize_t d, const float *x, float epsilon, float *y,
                                    float *norms) noexcept nogil
        int (*l2_normalize_backward)(int degree, Py_ssize_t rows, Py_ssize_t d, const float *dy, const float *y,
                                     const float *norms, float epsilon, float *dx) noexcept nogil
        int (*squared_distance_forward)(int degree, Py_ssize_t queries, Py_ssize_t documents, Py_ssize_t d,
                                        const float *q, const float *e, float *s) noexcept nogil
        int (*squared_distance_backward)(int degree, Py_ssize_t queries, Py_ssize_t documents, Py_ssize_t d,
                                         const float *ds, const float *q, const float *e, float *dq,
                                         float *de) noexcept nogil


cdef float epsilon_of(double epsilon) except? -1:
    if not 0 <= epsilon < 3.4028234e38:
        raise ValueError(f"epsilon = {epsilon}: expected a finite number >= 0")
    return to_float(epsilon)


def l2_normalize_forward(const float[:, ::1] x not None, float[:, ::1] y not None, float[::1] norms not None, *,
                         double epsilon=0.0):
    """y := x / max(norm, epsilon) row by row, norms := the Euclidean norms; with epsilon 0 a zero row is refused.

    Shapes    x, y (rows, d) · norms (rows,)
    Order     norm = sqrt(dot16(x, x)); one division each. Where dot16(x, x) is outside 2^-100..2^100 the row is first
              multiplied by the power of two that brings its largest magnitude into [1, 2), so no finite row overflows
              or vanishes; the norm is scaled back in binary64
    Edges     a norm below epsilon divides by epsilon · NaN in a row → NaN in the row · an infinity → NaN there, zeros in
              the rest of the row · rows == 0, or d == 0 with epsilon > 0 → nothing to write
    Aliasing  y may be x
    Raises    ValueError: a row of norm 0 with epsilon 0 (the first), epsilon negative or not finite, a shape
    Source    docs/readout.md; bit-equal to dx_kernels.ref.similarity.l2_normalize_forward
    """
    cdef Py_ssize_t rows = x.shape[0], d = x.shape[1], r
    cdef const similarity_table *t = <const similarity_table *>table()
    cdef float eps = epsilon_of(epsilon)
    cdef unsigned long long saved
    cdef int status
    shape2("y", y, rows, d)
    shape1("norms", norms, rows)
    cdef const float *px = in2(x)
    cdef float *py = out2(y)
    cdef float *pn = out1(norms)
    with nogil:
        saved = fp_enter()
        status = t.l2_normalize_forward(degree_current(), rows, d, px, eps, py, pn)
        fp_leave(saved)
    raise_status(status)
    if eps == 0.0:
        for r in range(rows):
            if norms[r] == 0.0:
                raise ValueError(f"x[{r}] has norm 0: expected a row with a direction (an epsilon > 0 declares that such "
                                 f"a row gives zeros)")


def l2_normalize_backward(const float[:, ::1] dy not None, const float[:, ::1] y not None,
                          const float[::1] norms not None, float[:, ::1] dx not None, *, double epsilon=0.0):
    """dx := (dy - y * dot16(y, dy)) / norm row by row; dy / epsilon where the norm is below epsilon.

    The part of dy along y does not come back: a longer row is the same unit row.

    Shapes    dy, dx (rows, d) · y, norms from l2_normalize_forward with the same epsilon
    Order     the product, the difference and the division are rounded one by one
    Edges     rows == 0 or d == 0 → nothing
    Writes    dx assigned                 Aliasing  dx may be dy
    Raises    ValueError: epsilon negative or not finite, a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.similarity.l2_normalize_backward
    """
    cdef Py_ssize_t rows = dy.shape[0], d = dy.shape[1]
    cdef const similarity_table *t = <const similarity_table *>table()
    cdef float eps = epsilon_of(epsilon)
    cdef unsigned long long saved
    cdef int status
    shape2("y", y, rows, d)
    shape1("norms", norms, rows)
    shape2("dx", dx, rows, d)
    cdef const float *pdy = in2(dy)
    cdef const float *py = in2(y)
    cdef const float *pn = in1(norms)
    cdef float *pdx = out2(dx)
    with nogil:
        saved = fp_enter()
        status = t.l2_normalize_backward(degree_current(), rows, d, pdy, py, pn, eps, pdx)
        fp_leave(saved)
    raise_status(status)


def squared_distance_forward(const float[:, ::1] q not None, const float[:, ::1] e not None,
                             float[:, ::1] s not None):
    """s[i, j] := dot16(q[i] - e[j], q[i] - e[j]), the squared Euclidean distance; smaller is nearer.

    Shapes    q (queries, d) · e (documents, d) · s (queries, documents)
    Edges     d == 0 → +0 · queries == 0 or documents == 0 → nothing
    Aliasing  s overlaps nothing
    Raises    ValueError: a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.similarity.squared_distance_forward
    """
    cdef Py_ssize_t queries = q.shape[0], documents = e.shape[0], d = q.shape[1]
    cdef const similarity_table *t = <const similarity_table *>table()
    cdef unsigned long long saved
    cdef int status
    shape2("e", e, documents, d)
    shape2("s", s, queries, documents)
    cdef const float *pq = in2(q)
    cdef const float *pe = in2(e)
    cdef float *ps = out2(s)
    with nogil:
        saved = fp_enter()
        status = t.squared_distance_forward(degree_current(), queries, documents, d, pq, pe, ps)
        fp_leave(saved)
    raise_status(status)


def squared_distance_backward(const float[:, ::1] ds not None, const float[:, ::1] q not None,
                              const float[:, ::1] e not None, float[:, ::1] dq=None, float[:, ::1] de=None):
    """dq[i] := sum16 over j of (2 ds[i, j]) (q[i] - e[j]); de[j] := sum16 over i of (2 ds[i, j]) (e[j] - q[i]).

    Shapes    ds (queries, documents) · q, dq (queries, d) · e, de (documents, d); an output that is None is left out
    Order     double ds (exact), difference, product: rounded one by one; sum16 over the other side's rows
    Edges     no rows on the other side → +0
    Writes    outputs assigned            Aliasing  outputs overlap nothing
    Raises    ValueError: a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.similarity.squared_distance_backward
    """
    cdef Py_ssize_t queries = q.shape[0], documents = e.shape[0], d = q.shape[1]
    cdef const similarity_table *t = <const similarity_table *>table()
    cdef unsigned long long saved
    cdef int status
    shape2("e", e, documents, d)
    shape2("ds", ds, queries, documents)
    shape2("dq", dq, queries, d)
    shape2("de", de, documents, d)
    cdef const float *pds = in2(ds)
    cdef const float *pq = in2(q)
    cdef const float *pe = in2(e)
    cdef float *pdq = out2(dq)
    cdef float *pde = out2(de)
    with nogil:
        saved = fp_enter()
        status = t.squared_distance_backward(degree_current(), queries, documents, d, pds, pq, pe, pdq, pde)
        fp_leave(saved)
    raise_status(status)
