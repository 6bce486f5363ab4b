"""The C kernels of every path, and what the family modules share. Nothing here is public."""
from dx_numerics._core cimport parallel, path_current

cdef extern from "table.h" nogil:
    ctypedef struct dx_runtime:
        void (*parallel)(void (*task)(void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil, void *context,
                         Py_ssize_t count, Py_ssize_t grain, int degree) noexcept nogil
    dx_runtime dx_rt
    const void *dx_kernels_tables[4]

cdef extern from *:
    const char *DX_BUILT_AGAINST

cdef extern from *:
    """
    /* Volatile, so that the compiler rounds between fp_enter and fp_leave. */
    static inline float dx_narrow(double x) { volatile double from = x; volatile float to = (float)from; return to; }
    """
    float dx_narrow(double x) nogil

BUILT_AGAINST = DX_BUILT_AGAINST.decode()
dx_rt.parallel = parallel


cdef const void *table() noexcept nogil:
    return dx_kernels_tables[path_current()]


cdef int raise_status(int status) except -1:
    if status != 0:
        raise MemoryError("not enough memory for the kernel's scratch space")
    return 0


cdef float to_float(double value) noexcept nogil:
    cdef unsigned long long saved = fp_enter()
    cdef float result = dx_narrow(value)
    fp_leave(saved)
    return result


cdef const float *in1(const float[::1] a):
    return NULL if a is None or a.shape[0] == 0 else &a[0]

cdef const float *in2(const float[:, ::1] a):
    return NULL if a is None or a.shape[0] == 0 or a.shape[1] == 0 else &a[0, 0]

cdef const float *in3(const float[:, :, ::1] a):
    return NULL if a is None or a.shape[0] == 0 or a.shape[1] == 0 or a.shape[2] == 0 else &a[0, 0, 0]

cdef float *out1(float[::1] a):
    return NULL if a is None or a.shape[0] == 0 else &a[0]

cdef float *out2(float[:, ::1] a):
    return NULL if a is None or a.shape[0] == 0 or a.shape[1] == 0 else &a[0, 0]

cdef float *out3(float[:, :, ::1] a):
    return NULL if a is None or a.shape[0] == 0 or a.shape[1] == 0 or a.shape[2] == 0 else &a[0, 0, 0]


cdef int shape1(str name, const float[::1] a, Py_ssize_t n0) except -1:
    if a is not None and a.shape[0] != n0:
        raise ValueError(f"{name} has shape ({a.shape[0]},): expected ({n0},)")
    return 0

cdef int shape2(str name, const float[:, ::1] a, Py_ssize_t n0, Py_ssize_t n1) except -1:
    if a is not None and (a.shape[0] != n0 or a.shape[1] != n1):
        raise ValueError(f"{name} has shape ({a.shape[0]}, {a.shape[1]}): expected ({n0}, {n1})")
    return 0

cdef int shape3(str name, const float[:, :, ::1] a, Py_ssize_t n0, Py_ssize_t n1, Py_ssize_t n2) except -1:
    if a is not None and (a.shape[0] != n0 or a.shape[1] != n1 or a.shape[2] != n2):
        raise ValueError(f"{name} has shape ({a.shape[0]}, {a.shape[1]}, {a.shape[2]}): expected ({n0}, {n1}, {n2})")
    return 0


cdef object flat(a):
    view = memoryview(a)
    if view.format != "f":  # a cast would take the bytes of any other type for floats
        raise ValueError(f"an array of format {view.format!r} and shape {view.shape}: expected float32 ('f')")
    if view.ndim == 1:
        return view
    if view.nbytes == 0:
        return memoryview(bytearray()).cast("f")
    return view.cast("B").cast("f")
