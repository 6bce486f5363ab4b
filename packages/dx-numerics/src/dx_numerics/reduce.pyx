"""Sums of binary32 numbers in dx's one order (dx_numerics/dot.h): dot16, sum16, mean16, squared_norm16."""
from dx_numerics._core cimport fp_enter, fp_leave, table_current

cdef extern from "table.h" nogil:
    ctypedef struct reduce_table "dx_numerics_table":
        float (*dot16)(const float *a, const float *b, Py_ssize_t n) noexcept nogil
        float (*dot16_strided)(const float *a, Py_ssize_t a_stride, const float *b, Py_ssize_t b_stride, Py_ssize_t n) noexcept nogil
        float (*sum16)(const float *x, Py_ssize_t n) noexcept nogil
        float (*sum16_strided)(const float *x, Py_ssize_t stride, Py_ssize_t n) noexcept nogil


def dot16(const float[:] a not None, const float[:] b not None):
    """sum of a[i] * b[i] in the 16-lane order.

    Shapes    a (n,) · b (n,), any strides, read only
    Order     see dx_numerics/dot.h; contiguous and strided operands give the same bits
    Edges     n == 0 → +0 · NaN in → NaN out
    Returns   float, exactly a binary32 number
    Raises    ValueError: lengths differ
    """
    cdef Py_ssize_t n = a.shape[0]
    cdef float result
    cdef unsigned long long saved
    cdef const reduce_table *t = <const reduce_table *>table_current()
    if b.shape[0] != n:
        raise ValueError(f"b has length {b.shape[0]}: expected the length of a, {n}")
    if n == 0:
        return 0.0
    cdef const float *pa = &a[0]
    cdef const float *pb = &b[0]
    cdef Py_ssize_t sa = a.strides[0] // 4, sb = b.strides[0] // 4
    if a.strides[0] % 4 or b.strides[0] % 4:
        raise ValueError(f"a or b has a stride of {a.strides[0]}, {b.strides[0]} bytes: expected multiples of 4")
    with nogil:
        saved = fp_enter()
        if sa == 1 and sb == 1:
            result = t.dot16(pa, pb, n)
        else:
            result = t.dot16_strided(pa, sa, pb, sb, n)
        fp_leave(saved)
    return result
