/* Included before the one module of a package that acquires buffers for all its typed arguments (Cython's helpers):
 * an argument of contiguous elements is taken only when these are aligned, since C may rely on that. Strided
 * arguments check it themselves, with their strides. */
#ifndef DX_BUFFERS_H
#define DX_BUFFERS_H
#include <Python.h>
#include <stdint.h>

static int dx_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    if (PyObject_GetBuffer(object, view, flags) < 0) return -1;
    const Py_ssize_t size = view->itemsize;
    const int contiguous = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    if (contiguous && view->len > 0 && (size == 2 || size == 4 || size == 8) && (uintptr_t)view->buf % (size_t)size) {
        PyErr_Format(PyExc_ValueError, "an array of %zd-byte elements begins at address %p: expected a multiple of %zd",
                     size, view->buf, size);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}
#define PyObject_GetBuffer dx_get_buffer
#endif
