# PackedMatrix for the families that take one (linear).
cdef class PackedMatrix:
    cdef readonly object source
    cdef readonly bint transpose_b
    cdef readonly Py_ssize_t rows, columns
    cdef object lock, state
    # The packed form for the calling thread's path as a float32 array; the caller keeps it while it uses its memory.
    cdef object packed(self)

# Address and row stride of a 2-D view with contiguous rows; ValueError otherwise.
cdef int rows_of(str name, const float[:, :] a, const float **address, Py_ssize_t *stride) except -1
cdef const float *address_of(object packed) except? NULL
