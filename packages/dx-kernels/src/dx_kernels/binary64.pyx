"""Binary64 softmax and sums of products: what fitting and applying calibrators needs, in a stated order."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, raise_status, table

cdef extern from "table.h" nogil:
    ctypedef struct binary64_table "dx_kernels_table":
        int (*softmax64)(int degree, Py_ssize_t rows, Py_ssize_t n, const double *z, double *p,
                         double *log_sum) noexcept nogil
        int (*products64)(int degree, Py_ssize_t rows, Py_ssize_t n, Py_ssize_t m, const double *a, const double *b,
                          double *s) noexcept nogil


def softmax64(const double[:, ::1] z not None, double[:, ::1] p not None, double[::1] log_sum not None):
    """p := softmax of the rows of z, log_sum := log of the sum of exp(z) of each row.

    Shapes    z, p (rows, n), log_sum (rows,) float64
    Order     m = largest; S = sum of exp64(z - m), ascending; p = exp64(z - m) / S; log_sum = log64(S) + m
    Edges     n == 0 → log_sum NaN · NaN or +inf in a row, or only -inf → NaN in the row
    Aliasing  p may be z
    Raises    ValueError: a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.binary64.softmax64
    """
    cdef const binary64_table *t = <const binary64_table *>table()
    cdef Py_ssize_t rows = z.shape[0], n = z.shape[1]
    cdef unsigned long long saved
    cdef int status
    if p.shape[0] != rows or p.shape[1] != n:
        raise ValueError(f"p has shape ({p.shape[0]}, {p.shape[1]}): expected ({rows}, {n})")
    if log_sum.shape[0] != rows:
        raise ValueError(f"log_sum has shape ({log_sum.shape[0]},): expected ({rows},)")
    cdef const double *pz = NULL if rows == 0 or n == 0 else &z[0, 0]
    cdef double *pp = NULL if rows == 0 or n == 0 else &p[0, 0]
    cdef double *pl = NULL if rows == 0 else &log_sum[0]
    with nogil:
        saved = fp_enter()
        status = t.softmax64(degree_current(), rows, n, pz, pp, pl)
        fp_leave(saved)
    raise_status(status)


def products64(const double[:, ::1] a not None, const double[:, ::1] b not None, double[:, ::1] s not None):
    """s[i, j] := sum over rows r of a[r, i] * b[r, j].

    Shapes    a (rows, n), b (rows, m), s (n, m) float64
    Order     ascending r, from +0; product and sum are rounded one by one
    Edges     rows == 0 → +0
    Aliasing  s overlaps nothing
    Raises    ValueError: a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.binary64.products64
    """
    cdef const binary64_table *t = <const binary64_table *>table()
    cdef Py_ssize_t rows = a.shape[0], n = a.shape[1], m = b.shape[1]
    cdef unsigned long long saved
    cdef int status
    if b.shape[0] != rows:
        raise ValueError(f"b has shape ({b.shape[0]}, {m}): expected ({rows}, {m})")
    if s.shape[0] != n or s.shape[1] != m:
        raise ValueError(f"s has shape ({s.shape[0]}, {s.shape[1]}): expected ({n}, {m})")
    cdef const double *pa = NULL if rows == 0 or n == 0 else &a[0, 0]
    cdef const double *pb = NULL if rows == 0 or m == 0 else &b[0, 0]
    cdef double *ps = NULL if n == 0 or m == 0 else &s[0, 0]
    with nogil:
        saved = fp_enter()
        status = t.products64(degree_current(), rows, n, m, pa, pb, ps)
        fp_leave(saved)
    raise_status(status)
