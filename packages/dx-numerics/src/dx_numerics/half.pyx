"""float16 and bfloat16 numbers to and from binary32 (dx_numerics/half.h): widening is exact, narrowing rounds once, to
nearest, ties to even. Between the two everything is computed in binary32: half precision is for storage."""
import numpy as np

from dx_numerics._core cimport fp_enter, fp_leave, table_current

ctypedef void (*widen)(Py_ssize_t n, const unsigned short *x, float *out) noexcept nogil
ctypedef void (*narrow)(Py_ssize_t n, const float *x, unsigned short *out) noexcept nogil

cdef extern from "table.h" nogil:
    ctypedef struct half_table "dx_numerics_table":
        widen widen_float16
        widen widen_bfloat16
        narrow narrow_float16
        narrow narrow_bfloat16


def _source(x, dtypes):
    x = np.asarray(x)
    if x.dtype not in dtypes:
        raise TypeError(f"x has dtype {x.dtype}: expected {' or '.join(str(np.dtype(d)) for d in dtypes)}")
    return np.require(x, requirements=("C", "A"))


cdef object apply_widen(widen function, x):
    out = np.empty(x.shape, np.float32)
    cdef const unsigned short[::1] source = x.reshape(-1).view(np.uint16)
    cdef float[::1] target = out.reshape(-1)
    cdef Py_ssize_t n = source.shape[0]
    cdef unsigned long long saved
    if n:
        with nogil:
            saved = fp_enter()
            function(n, &source[0], &target[0])
            fp_leave(saved)
    return out


cdef object apply_narrow(narrow function, x):
    out = np.empty(x.shape, np.uint16)
    cdef const float[::1] source = x.reshape(-1)
    cdef unsigned short[::1] target = out.reshape(-1)
    cdef Py_ssize_t n = source.shape[0]
    cdef unsigned long long saved
    if n:
        with nogil:
            saved = fp_enter()
            function(n, &source[0], &target[0])
            fp_leave(saved)
    return out


cdef const half_table *functions() noexcept nogil:
    return <const half_table *>table_current()


def widen_float16(x):
    """binary16 → binary32, exactly.

    Shapes    x float16, or uint16 that holds the bits; any shape and strides
    Edges     subnormals exact · ±0, ±inf kept · NaN → NaN with its payload, quiet
    Returns   new float32 array of the same shape
    Raises    TypeError: dtype of x
    Source    dx_numerics/half.h; bit-equal to dx_numerics.ref.widen_float16
    """
    return apply_widen(functions().widen_float16, _source(x, (np.float16, np.uint16)))


def widen_bfloat16(x):
    """bfloat16 → binary32, exactly: the upper half of the bits.

    Shapes    x uint16 that holds the bits, any shape and strides
    Edges, Returns, Raises    as widen_float16
    Source    dx_numerics/half.h; bit-equal to dx_numerics.ref.widen_bfloat16
    """
    return apply_widen(functions().widen_bfloat16, _source(x, (np.uint16,)))


def narrow_float16(x):
    """binary32 → binary16, rounded to nearest, ties to even.

    Shapes    x float32, any shape and strides
    Edges     |x| >= 65520 → ±inf · results below 2^-14 are subnormal, not flushed · NaN → NaN
    Returns   new float16 array of the same shape
    Raises    TypeError: dtype of x
    Source    dx_numerics/half.h; bit-equal to dx_numerics.ref.narrow_float16
    """
    return apply_narrow(functions().narrow_float16, _source(x, (np.float32,))).view(np.float16)


def narrow_bfloat16(x):
    """binary32 → bfloat16, rounded to nearest, ties to even.

    Shapes    x float32, any shape and strides
    Edges     ±inf kept, and what rounds above the largest bfloat16 → ±inf · NaN → NaN
    Returns   new uint16 array of the bits, same shape
    Raises    TypeError: dtype of x
    Source    dx_numerics/half.h; bit-equal to dx_numerics.ref.narrow_bfloat16
    """
    return apply_narrow(functions().narrow_bfloat16, _source(x, (np.float32,)))
