"""Sums of binary32 numbers in dx's one order (dx_numerics/dot.h): dot16, sum16, mean16, squared_norm16."""
from dx_numerics._core cimport fp_enter, fp_leave, table_current

cdef extern from "table.h" nogil:
    ctypedef struct reduce_table "dx_numerics_table":
        float (*dot16)(const float *a, const float *b, Py_ssize_t n) noexcept nogil
        float (*dot16_strided)(const float *a, Py_ssize_t a_stride, const float *b, Py_ssize_t b_stride, Py_ssize_t n) noexcept nogil
        float (*sum16)(const float *x, Py_ssize_t n) noexcept nogil
        float (*sum16_strided)(const float *x, Py_ssize_t stride, Py_ssize_t n) noexcept nogil

cdef extern from *:
    """
    /* A result as a double, made before the caller's own floating-point mode is back (a mode that flushes subnormals
       would widen them to zero): the volatile store keeps the compiler from doing it later. */
    static inline double dx_seal(float x) { volatile double y = x; return y; }
    """
    double dx_seal(float x) nogil


cdef int check_layout(str name, size_t address, Py_ssize_t stride) except -1:
    if stride % 4 or address % 4:
        raise ValueError(f"{name} has a stride of {stride} bytes at address {address:#x}: expected multiples of 4")
    return 0


def dot16(const float[:] a not None, const float[:] b not None):
    """sum of a[i] * b[i] in the 16-lane order.

    Shapes    a (n,) · b (n,), any strides (negative and zero too), read only
    Order     see dx_numerics/dot.h; contiguous and strided operands give the same bits
    Edges     n == 0 → +0 · NaN in → NaN out · only -0 products → +0, since the lanes start at +0
    Returns   float, exactly a binary32 number
    Raises    ValueError: lengths differ, elements not aligned
    Source    dx_numerics/dot.h; bit-equal to dx_numerics.ref.dot16
    """
    cdef Py_ssize_t n = a.shape[0]
    cdef double result
    cdef unsigned long long saved
    cdef const reduce_table *t = <const reduce_table *>table_current()
    if b.shape[0] != n:
        raise ValueError(f"b has length {b.shape[0]}: expected the length of a, {n}")
    if n == 0:
        return 0.0
    cdef const float *pa = &a[0]
    cdef const float *pb = &b[0]
    check_layout("a", <size_t>pa, a.strides[0])
    check_layout("b", <size_t>pb, b.strides[0])
    cdef Py_ssize_t sa = a.strides[0] // 4, sb = b.strides[0] // 4
    with nogil:
        saved = fp_enter()
        if sa == 1 and sb == 1:
            result = dx_seal(t.dot16(pa, pb, n))
        else:
            result = dx_seal(t.dot16_strided(pa, sa, pb, sb, n))
        fp_leave(saved)
    return result


def dot16_rows(const float[:, :] a not None, const float[:, :] b not None, float[::1] out not None):
    """out[r] := dot16 of row r of a and row r of b.

    Shapes    a (rows, n) · b (rows, n), any strides, read only · out (rows,)
    Order     each row as dot16
    Edges     rows == 0 → nothing · n == 0 → zeros
    Writes    out assigned            Aliasing  out shares no memory with a and b
    Raises    ValueError: a shape that does not fit, elements not aligned
    Source    dx_numerics/dot.h; bit-equal to dx_numerics.ref.dot16
    """
    cdef Py_ssize_t rows = a.shape[0], n = a.shape[1], r
    cdef unsigned long long saved
    cdef const reduce_table *t = <const reduce_table *>table_current()
    if b.shape[0] != rows or b.shape[1] != n:
        raise ValueError(f"b has shape ({b.shape[0]}, {b.shape[1]}): expected ({rows}, {n})")
    if out.shape[0] != rows:
        raise ValueError(f"out has shape ({out.shape[0]},): expected ({rows},)")
    if rows == 0:
        return
    if n == 0:
        out[:] = 0.0
        return
    check_layout("a", <size_t>&a[0, 0] | <size_t>a.strides[0], a.strides[1])
    check_layout("b", <size_t>&b[0, 0] | <size_t>b.strides[0], b.strides[1])
    cdef Py_ssize_t sa = a.strides[1] // 4, sb = b.strides[1] // 4
    with nogil:
        saved = fp_enter()
        for r in range(rows):
            if sa == 1 and sb == 1:
                out[r] = t.dot16(&a[r, 0], &b[r, 0], n)
            else:
                out[r] = t.dot16_strided(&a[r, 0], sa, &b[r, 0], sb, n)
        fp_leave(saved)


def squared_norm16(const float[:] x not None):
    """sum of x[i]^2: dot16 of x with itself.

    Shapes, Order, Edges, Returns, Raises    as dot16
    Source    dx_numerics/dot.h; bit-equal to dx_numerics.ref.squared_norm16
    """
    return dot16(x, x)


cdef object total(const float[:] x, bint mean):
    """sum16, or that divided by the length (one binary32 division)."""
    cdef Py_ssize_t n = x.shape[0]
    cdef double result
    cdef float s
    cdef unsigned long long saved
    cdef const reduce_table *t = <const reduce_table *>table_current()
    cdef const float *p = NULL
    cdef Py_ssize_t stride = 1
    if n:
        p = &x[0]
        check_layout("x", <size_t>p, x.strides[0])
        stride = x.strides[0] // 4
    with nogil:
        saved = fp_enter()
        s = t.sum16(p, n) if stride == 1 else t.sum16_strided(p, stride, n)
        result = dx_seal(s / <float>n if mean else s)
        fp_leave(saved)
    return result


def sum16(const float[:] x not None):
    """sum of x[i] in the 16-lane order: dot16 with ones.

    Shapes    x (n,), any strides (negative and zero too), read only
    Order     see dx_numerics/dot.h; contiguous and strided operands give the same bits
    Edges     n == 0 → +0 · NaN in → NaN out · only -0 → +0
    Returns   float, exactly a binary32 number
    Raises    ValueError: elements not aligned
    Source    dx_numerics/dot.h; bit-equal to dx_numerics.ref.sum16
    """
    return total(x, False)


def mean16(const float[:] x not None):
    """sum16 / n, one binary32 division by n rounded to binary32.

    Shapes, Order, Returns, Raises    as sum16
    Edges     n == 0 → NaN · otherwise as sum16. Half precision: widen first (widen_float16), narrow the result.
    Source    dx_numerics/dot.h; bit-equal to dx_numerics.ref.mean16
    """
    return total(x, True)
