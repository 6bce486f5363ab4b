# The grid of patches over an image (csrc/patch.h), checked (patch, bfloat16).
cdef extern from "table.h" nogil:
    ctypedef struct dx_patch_grid:
        Py_ssize_t channels, height, width, patch, patches, d

cdef int set_grid(dx_patch_grid *g, Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t patch,
                  Py_ssize_t patches, Py_ssize_t d) except -1
cdef int shape4(str name, const float[:, :, :, ::1] a, Py_ssize_t n0, Py_ssize_t n1, Py_ssize_t n2,
                Py_ssize_t n3) except -1
