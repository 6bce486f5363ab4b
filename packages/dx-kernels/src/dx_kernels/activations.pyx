"""ReLU, tanh, sigmoid and the two forms of GELU, elementwise, forward and backward.

Arrays are one-dimensional views of any length: pass `x.reshape(-1)` for a matrix. An output may be one of the inputs
(the same memory), not a shifted part of it. Elements are independent, and NaN gives NaN.
"""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in1, out1, raise_status, shape1, table

ctypedef int (*unary)(int degree, Py_ssize_t n, const float *x, float *y) noexcept nogil
ctypedef int (*binary)(int degree, Py_ssize_t n, const float *dy, const float *x, float *dx) noexcept nogil

cdef extern from "table.h" nogil:
    ctypedef struct activations_table "dx_kernels_table":
        unary relu_forward
        binary relu_backward
        unary tanh_forward
        binary tanh_backward
        unary sigmoid_forward
        binary sigmoid_backward
        int (*gelu_tanh_forward)(int degree, Py_ssize_t n, const float *x, float *y, float *t) noexcept nogil
        int (*gelu_tanh_backward)(int degree, Py_ssize_t n, const float *dy, const float *x, const float *t,
                                  float *dx) noexcept nogil
        unary gelu_erf_forward
        binary gelu_erf_backward


cdef int apply1(unary function, const float[::1] x, float[::1] y) except -1:
    cdef Py_ssize_t n = x.shape[0]
    cdef unsigned long long saved
    cdef int status
    shape1("y", y, n)
    cdef const float *px = in1(x)
    cdef float *py = out1(y)
    with nogil:
        saved = fp_enter()
        status = function(degree_current(), n, px, py)
        fp_leave(saved)
    return raise_status(status)


cdef int apply2(binary function, str name, const float[::1] dy, const float[::1] x, float[::1] dx) except -1:
    cdef Py_ssize_t n = dy.shape[0]
    cdef unsigned long long saved
    cdef int status
    shape1(name, x, n)
    shape1("dx", dx, n)
    cdef const float *pdy = in1(dy)
    cdef const float *px = in1(x)
    cdef float *pdx = out1(dx)
    with nogil:
        saved = fp_enter()
        status = function(degree_current(), n, pdy, px, pdx)
        fp_leave(saved)
    return raise_status(status)


def relu_forward(const float[::1] x not None, float[::1] y not None):
    """y := x < 0 ? +0 : x + 0, so that -0 becomes +0 and NaN stays.

    Shapes    x, y (n,)
    Aliasing  y may be x
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.relu_forward
    """
    apply1((<const activations_table *>table()).relu_forward, x, y)


def relu_backward(const float[::1] dy not None, const float[::1] x not None, float[::1] dx not None):
    """dx := x <= 0 ? +0 : dy; x is relu_forward's input or its output, with the same result.

    Shapes    dy, x, dx (n,)
    Edges     dy of a NaN element passes; dy of an element at or below zero gives +0 whatever it is
    Aliasing  dx may be dy or x
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.relu_backward
    """
    apply2((<const activations_table *>table()).relu_backward, "x", dy, x, dx)


def tanh_forward(const float[::1] x not None, float[::1] y not None):
    """y := tanh32(x), dx-numerics' function (under 1 ulp).

    Shapes    x, y (n,)
    Edges     ±inf → ±1 · ±0 → ±0
    Aliasing  y may be x
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.tanh_forward
    """
    apply1((<const activations_table *>table()).tanh_forward, x, y)


def tanh_backward(const float[::1] dy not None, const float[::1] y not None, float[::1] dx not None):
    """dx := dy * (1 - y * y), y the output of tanh_forward.

    Shapes    dy, y, dx (n,)
    Aliasing  dx may be dy or y
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.tanh_backward
    """
    apply2((<const activations_table *>table()).tanh_backward, "y", dy, y, dx)


def sigmoid_forward(const float[::1] x not None, float[::1] y not None):
    """y := sigmoid32(x) = 1 / (1 + exp(-x)), dx-numerics' function (under 1 ulp).

    Shapes    x, y (n,)
    Edges     -inf → +0 · +inf → 1
    Aliasing  y may be x
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.sigmoid_forward
    """
    apply1((<const activations_table *>table()).sigmoid_forward, x, y)


def sigmoid_backward(const float[::1] dy not None, const float[::1] y not None, float[::1] dx not None):
    """dx := dy * (y * (1 - y)), y the output of sigmoid_forward.

    Shapes    dy, y, dx (n,)
    Aliasing  dx may be dy or y
    Raises    ValueError: a shape that does not fit
    Source    bit-equal to dx_kernels.ref.sigmoid_backward
    """
    apply2((<const activations_table *>table()).sigmoid_backward, "y", dy, y, dx)


def gelu_tanh_forward(const float[::1] x not None, float[::1] y not None, float[::1] t=None):
    """y := (0.5 x) (1 + t), t = tanh32(c0 (x + c1 (x (x x)))), c0 = 0x1.988454p-1, c1 = 0x1.6e4e26p-5.

    Shapes    x, y (n,) · t (n,): saved for backward when given
    Order     as written, every operation rounded
    Edges     +inf → +inf · -inf → NaN (-inf * 0) · finite x of any size → finite
    Accuracy  error at most 2^-23 |x| of the tanh formula; 1 + t cancels for negative x, so the relative error grows
              there (the erf form does not have this)
    Aliasing  y may be x when t is None or backward keeps its own copy of x; t may not be x
    Raises    ValueError: a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.gelu_tanh_forward
    """
    cdef const activations_table *f = <const activations_table *>table()
    cdef Py_ssize_t n = x.shape[0]
    cdef unsigned long long saved
    cdef int status
    shape1("y", y, n)
    shape1("t", t, n)
    cdef const float *px = in1(x)
    cdef float *py = out1(y)
    cdef float *pt = out1(t)
    with nogil:
        saved = fp_enter()
        status = f.gelu_tanh_forward(degree_current(), n, px, py, pt)
        fp_leave(saved)
    raise_status(status)


def gelu_tanh_backward(const float[::1] dy not None, const float[::1] x not None, const float[::1] t not None,
                       float[::1] dx not None):
    """dx := dy * (0.5 (1 + t) + 0.5 x (1 - t^2) c0 (1 + 3 c1 x^2)), t saved by gelu_tanh_forward.

    Shapes    dy, x, t, dx (n,)
    Order     s = 1 - t t; second term ((0.5 x) s) (c0 (1 + (3 c1) (x x))), +0 where s is 0; then sum, then product
    Edges     finite x of any size → finite factor · ±inf → factor 1 and 0
    Aliasing  dx may be dy or x
    Raises    ValueError: a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.gelu_tanh_backward
    """
    cdef const activations_table *f = <const activations_table *>table()
    cdef Py_ssize_t n = dy.shape[0]
    cdef unsigned long long saved
    cdef int status
    shape1("x", x, n)
    shape1("t", t, n)
    shape1("dx", dx, n)
    cdef const float *pdy = in1(dy)
    cdef const float *px = in1(x)
    cdef const float *pt = in1(t)
    cdef float *pdx = out1(dx)
    with nogil:
        saved = fp_enter()
        status = f.gelu_tanh_backward(degree_current(), n, pdy, px, pt, pdx)
        fp_leave(saved)
    raise_status(status)


def gelu_erf_forward(const float[::1] x not None, float[::1] y not None):
    """y := x P(x), P(x) = (1 + erf(x / sqrt 2)) / 2 the normal distribution function.

    Shapes    x, y (n,)
    Order     in binary64 from its own approximation of P's tail (docs/numerics.md), rounded to binary32 once
    Edges     +inf → +inf · -inf → -0 · ±0 → ±0
    Accuracy  at most 0.51 ulp for every x, in the far negative tail too
    Aliasing  y may be x
    Raises    ValueError: a shape that does not fit
    Source    ours; bit-equal to dx_kernels.ref.gelu_erf_forward
    """
    apply1((<const activations_table *>table()).gelu_erf_forward, x, y)


def gelu_erf_backward(const float[::1] dy not None, const float[::1] x not None, float[::1] dx not None):
    """dx := dy * (P(x) + x exp(-x^2/2) / sqrt(2 pi)), x the input of gelu_erf_forward.

    Shapes    dy, x, dx (n,)
    Order     the factor in binary64, times dy in binary64, rounded to binary32 once
    Edges     +inf → factor 1 · -inf → 0
    Accuracy  the factor's error is at most 2^-31 absolute and 2^-30 relative outside |x + 0.7518| < 0.1 (its zero)
    Aliasing  dx may be dy or x
    Raises    ValueError: a shape that does not fit
    Source    ours; bit-equal to dx_kernels.ref.gelu_erf_backward
    """
    apply2((<const activations_table *>table()).gelu_erf_backward, "x", dy, x, dx)
