"""The functions of dx over arrays: exp32, tanh32, erf32, sigmoid32, rsqrt32 (binary32), exp64, log64, log1p64,
softplus64 (binary64). Own code without libm: the same bits on every kernel path and degree (dx_numerics/math32.h and
math64.h hold the formulas and the measured worst errors)."""
import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from dx_numerics._core cimport degree_current, fp_enter, fp_leave, parallel, table_current

ctypedef void (*map32)(Py_ssize_t n, const float *x, float *out) noexcept nogil
ctypedef void (*map64)(Py_ssize_t n, const double *x, double *out) noexcept nogil

cdef extern from "table.h" nogil:
    ctypedef struct functions_table "dx_numerics_table":
        map32 exp32
        map32 tanh32
        map32 erf32
        map32 sigmoid32
        map32 rsqrt32
        map64 exp64
        map64 log64
        map64 log1p64
        map64 softplus64

cdef struct job:
    map32 narrow  # one of the two, the other is NULL
    map64 wide
    const char *x
    char *out

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)

# Elements that one thread does faster alone than it wakes another; pieces are multiples of 64 elements.
cdef enum:
    SERIAL = 32768


cdef void run(void *context, Py_ssize_t begin, Py_ssize_t end, int worker) noexcept nogil:
    cdef job *j = <job *>context
    if j.narrow != NULL:
        j.narrow(end - begin, <const float *>j.x + begin, <float *>j.out + begin)
    else:
        j.wide(end - begin, <const double *>j.x + begin, <double *>j.out + begin)


cdef Py_ssize_t grain_of(Py_ssize_t n, int degree) noexcept nogil:
    cdef Py_ssize_t pieces = 4 * degree
    if degree <= 1 or n < SERIAL:
        return n
    return max(SERIAL // 4, ((n + pieces - 1) // pieces + 63) // 64 * 64)


def _arrays(x, out, dtype):
    """x and out as checked C-contiguous arrays of the same shape; a new out when it is None."""
    x = np.asarray(x)
    if x.dtype != dtype:
        raise TypeError(f"x has dtype {x.dtype}: expected {dtype}")
    if out is None:
        out = np.empty(x.shape, dtype)
    elif not isinstance(out, np.ndarray) or out.dtype != dtype:
        raise TypeError(f"out is {getattr(out, 'dtype', type(out).__name__)}: expected an array of {dtype}")
    elif out.shape != x.shape:
        raise ValueError(f"out has shape {out.shape}: expected the shape of x, {x.shape}")
    elif not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise ValueError("out is read-only, unaligned or not C-contiguous: expected a writeable C-contiguous array")
    if not (x.flags.c_contiguous and x.flags.aligned):
        x = np.array(x, dtype, order="C")
    return x, out


cdef object apply(map32 narrow, map64 wide, x, out):
    cdef Py_buffer source, target
    cdef Py_ssize_t n
    cdef int degree = degree_current()
    cdef unsigned long long saved
    cdef job j
    x, out = _arrays(x, out, _F32 if narrow != NULL else _F64)
    PyObject_GetBuffer(x, &source, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(out, &target, PyBUF_WRITABLE)
        try:
            j.narrow, j.wide, j.x, j.out = narrow, wide, <const char *>source.buf, <char *>target.buf
            if j.x != j.out and j.x < j.out + target.len and j.out < j.x + source.len:
                raise ValueError("out overlaps x: expected x itself or other memory")
            n = source.len // source.itemsize
            if n:
                with nogil:
                    saved = fp_enter()
                    parallel(run, &j, n, grain_of(n, degree), degree)
                    fp_leave(saved)
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
    return out


cdef const functions_table *functions() noexcept nogil:
    return <const functions_table *>table_current()


def exp32(x, out=None):
    """exp(x), elementwise in binary32.

    Shapes    x float32, any shape and strides (copied unless C-contiguous) · out same shape, C-contiguous, or None
    Edges     +inf → +inf, -inf → +0, NaN → NaN · overflow → +inf · subnormal results are kept
    Returns   out, or a new array         Aliasing  out may be x; no other overlap
    Raises    TypeError: dtype of x or out · ValueError: shape, layout or overlap of out
    Source    dx_numerics/math32.h; bit-equal to dx_numerics.ref.exp32
    """
    return apply(functions().exp32, NULL, x, out)


def tanh32(x, out=None):
    """tanh(x), elementwise in binary32.

    Shapes    as exp32
    Edges     ±inf → ±1, NaN → NaN, ±0 → ±0
    Returns, Aliasing, Raises  as exp32
    Source    dx_numerics/math32.h; bit-equal to dx_numerics.ref.tanh32
    """
    return apply(functions().tanh32, NULL, x, out)


def erf32(x, out=None):
    """erf(x), the Gauss error function, elementwise in binary32.

    Shapes    as exp32
    Edges     ±inf → ±1, NaN → NaN, ±0 → ±0
    Returns, Aliasing, Raises  as exp32
    Source    dx_numerics/math32.h; bit-equal to dx_numerics.ref.erf32
    """
    return apply(functions().erf32, NULL, x, out)


def sigmoid32(x, out=None):
    """1 / (1 + exp(-x)), elementwise in binary32.

    Shapes    as exp32
    Edges     +inf → 1, -inf → +0, NaN → NaN · subnormal results are kept
    Returns, Aliasing, Raises  as exp32
    Source    dx_numerics/math32.h; bit-equal to dx_numerics.ref.sigmoid32
    """
    return apply(functions().sigmoid32, NULL, x, out)


def rsqrt32(x, out=None):
    """1 / sqrt(x), elementwise in binary32, as two correctly rounded operations.

    Shapes    as exp32
    Edges     ±0 → ±inf, +inf → +0, x < 0 → NaN, NaN → NaN
    Returns, Aliasing, Raises  as exp32
    Source    dx_numerics/math32.h; bit-equal to dx_numerics.ref.rsqrt32
    """
    return apply(functions().rsqrt32, NULL, x, out)


def exp64(x, out=None):
    """exp(x), elementwise in binary64.

    Shapes    x float64, any shape and strides (copied unless C-contiguous) · out same shape, C-contiguous, or None
    Edges     +inf → +inf, -inf → +0, NaN → NaN · overflow → +inf · subnormal results are kept
    Returns   out, or a new array         Aliasing  out may be x; no other overlap
    Raises    TypeError: dtype of x or out · ValueError: shape, layout or overlap of out
    Source    dx_numerics/math64.h; bit-equal to dx_numerics.ref.exp64
    """
    return apply(NULL, functions().exp64, x, out)


def log64(x, out=None):
    """log(x), the natural logarithm, elementwise in binary64.

    Shapes    as exp64
    Edges     ±0 → -inf, +inf → +inf, x < 0 → NaN, NaN → NaN · 1 → +0
    Returns, Aliasing, Raises  as exp64
    Source    dx_numerics/math64.h; bit-equal to dx_numerics.ref.log64
    """
    return apply(NULL, functions().log64, x, out)


def log1p64(x, out=None):
    """log(1 + x), elementwise in binary64, exact to an ulp for small x too.

    Shapes    as exp64
    Edges     -1 → -inf, +inf → +inf, x < -1 → NaN, NaN → NaN, ±0 → ±0
    Returns, Aliasing, Raises  as exp64
    Source    dx_numerics/math64.h; bit-equal to dx_numerics.ref.log1p64
    """
    return apply(NULL, functions().log1p64, x, out)


def softplus64(x, out=None):
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), elementwise in binary64; never overflows.

    Shapes    as exp64
    Edges     +inf → +inf, -inf → +0, NaN → NaN
    Returns, Aliasing, Raises  as exp64
    Source    dx_numerics/math64.h; bit-equal to dx_numerics.ref.softplus64
    """
    return apply(NULL, functions().softplus64, x, out)
