# Shared by the family modules: the current path's functions, entering and leaving a kernel, and argument checks.
from dx_numerics._core cimport degree_current, fp_enter, fp_leave

# The per-path function table (csrc/table.h) for the calling thread's path; a family casts it to the part it names.
cdef const void *table() noexcept nogil

# A kernel's status: MemoryError on DX_NO_MEMORY.
cdef int raise_status(int status) except -1

# A setting as binary32, rounded to nearest whatever mode the calling thread is in: arguments are declared double.
cdef float to_float(double value) noexcept nogil

# Addresses that are safe for views of size zero (NULL) and for None (NULL).
cdef const float *in1(const float[::1] a)
cdef const float *in2(const float[:, ::1] a)
cdef const float *in3(const float[:, :, ::1] a)
cdef float *out1(float[::1] a)
cdef float *out2(float[:, ::1] a)
cdef float *out3(float[:, :, ::1] a)

# ValueError "name has shape (…): expected (…)" unless the shape is the wanted one.
cdef int shape1(str name, const float[::1] a, Py_ssize_t n0) except -1
cdef int shape2(str name, const float[:, ::1] a, Py_ssize_t n0, Py_ssize_t n1) except -1
cdef int shape3(str name, const float[:, :, ::1] a, Py_ssize_t n0, Py_ssize_t n1, Py_ssize_t n2) except -1

# Any C-contiguous float32 array as one dimension, without a copy.
cdef object flat(a)
