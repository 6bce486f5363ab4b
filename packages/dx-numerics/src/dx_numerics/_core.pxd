# What packages above may cimport: free functions on pointers and sizes (their C signatures are checked at import).
cdef int path_current() noexcept nogil
cdef int degree_current() noexcept nogil
cdef unsigned long long fp_enter() noexcept nogil
cdef void fp_leave(unsigned long long saved) noexcept nogil
cdef void parallel(void (*task)(void *, Py_ssize_t, Py_ssize_t, int) noexcept nogil, void *context,
                   Py_ssize_t count, Py_ssize_t grain, int degree) noexcept nogil
# The per-path function table of this package (csrc/table.h) for the calling thread's path.
cdef const void *table_current() noexcept nogil
