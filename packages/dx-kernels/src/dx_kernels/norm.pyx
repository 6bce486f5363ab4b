"""Gradient norm and clipping by the global norm."""
from dx_kernels._core cimport degree_current, flat, fp_enter, fp_leave, in1, out1, raise_status, table

cdef extern from "table.h" nogil:
    ctypedef struct norm_table "dx_kernels_table":
        double (*squared_norm)(Py_ssize_t n, const float *g) noexcept nogil
        double (*joint_norm)(Py_ssize_t count, const double *squares) noexcept nogil
        double (*clip_factor)(double norm, double max_norm) noexcept nogil
        int (*scale_in_place)(int degree, Py_ssize_t n, double factor, float *g) noexcept nogil

cdef double INFINITY = float("inf")


cdef double checked(str name, const float[::1] g) except? -1:
    cdef const norm_table *t = <const norm_table *>table()
    cdef Py_ssize_t i, n = g.shape[0]
    cdef const float *pg = in1(g)
    cdef unsigned long long saved
    cdef double total
    with nogil:
        saved = fp_enter()
        total = t.squared_norm(n, pg)
        fp_leave(saved)
    if not total < INFINITY:
        for i in range(n):
            if not -INFINITY < g[i] < INFINITY:
                raise FloatingPointError(f"{name} holds {g[i]} at element {i}: expected finite gradients")
    return total


def squared_norm(const float[::1] g not None, name="g"):
    """The sum of the squares of g, a Python float.

    Shapes    g (n,)
    Order     dot16(g, g); where that overflows, dot16 of g * 2^-80 with itself, times 2^160 in binary64
    Edges     n == 0 → 0.0 · squares below binary32's range are lost
    Raises    FloatingPointError: an element that is not finite (name, value and position)
    Source    ours; bit-equal to dx_kernels.ref.squared_norm
    """
    return checked(name, g)


def gradient_norm(gradients, names=None):
    """The norm of all gradients together: sqrt of the sum of squared_norm over the tensors, a Python float.

    Shapes    gradients: C-contiguous float32 arrays of any shape · names: their names for errors, or None
    Order     binary64, tensors in the given order, from 0.0; then the square root
    Raises    FloatingPointError: an element that is not finite (tensor, value and position)
    Source    ours; bit-equal to dx_kernels.ref.gradient_norm
    """
    cdef const norm_table *t = <const norm_table *>table()
    cdef double[::1] squares
    cdef const double *ps
    cdef Py_ssize_t i, count
    cdef unsigned long long saved
    cdef double norm
    gradients = list(gradients)
    names = [f"gradients[{i}]" for i in range(len(gradients))] if names is None else list(names)
    if len(names) != len(gradients):
        raise ValueError(f"names has {len(names)} entries: expected {len(gradients)}")
    count = len(gradients)
    if count == 0:
        return 0.0
    squares = memoryview(bytearray(8 * count)).cast("d")
    for i in range(count):
        squares[i] = checked(names[i], flat(gradients[i]))
    ps = &squares[0]
    with nogil:
        saved = fp_enter()
        norm = t.joint_norm(count, ps)
        fp_leave(saved)
    return norm


def clip_factor(double norm, double max_norm):
    """max_norm / (norm + 1e-6) in binary64, 1.0 where that is at least 1; max_norm 0 switches clipping off (1.0).

    Raises    ValueError: norm or max_norm negative, NaN or infinite
    """
    cdef const norm_table *t = <const norm_table *>table()
    cdef unsigned long long saved
    cdef double factor
    if not 0 <= norm < INFINITY:
        raise ValueError(f"norm = {norm}: expected a finite number >= 0")
    if not 0 <= max_norm < INFINITY:
        raise ValueError(f"max_norm = {max_norm}: expected a finite number > 0, or 0 for no clipping")
    with nogil:
        saved = fp_enter()
        factor = t.clip_factor(norm, max_norm)
        fp_leave(saved)
    return factor


def clip_gradients(gradients, double max_norm, names=None):
    """Scales all gradients by clip_factor(norm, max_norm), in place; returns their norm before, a Python float.

    Shapes    gradients: C-contiguous float32 arrays of any shape · names: their names for errors, or None
    Order     norm as gradient_norm; each element g := round(g * factor), the product in binary64
    Edges     factor 1 → nothing is written · max_norm 0: no clipping, the norm is still checked and returned
    Raises    FloatingPointError: an element that is not finite (tensor, value and position), before anything is
              changed; ValueError: max_norm negative, NaN or infinite
    Source    ours; bit-equal to dx_kernels.ref.clip_gradients
    """
    cdef const norm_table *t = <const norm_table *>table()
    cdef unsigned long long saved
    cdef float[::1] g
    cdef float *pg
    cdef double norm, factor
    cdef Py_ssize_t n
    cdef int status
    clip_factor(0.0, max_norm)
    gradients = list(gradients)
    norm = gradient_norm(gradients, names)
    factor = clip_factor(norm, max_norm)
    if factor == 1.0:
        return norm
    for a in [flat(a) for a in gradients]:
        g = a
        n = g.shape[0]
        pg = out1(g)
        with nogil:
            saved = fp_enter()
            status = t.scale_in_place(degree_current(), n, factor, pg)
            fp_leave(saved)
        raise_status(status)
    return norm
