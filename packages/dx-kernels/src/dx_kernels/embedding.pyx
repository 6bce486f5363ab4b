"""Embedding tables: rows by id, sums of rows from several tables, and the table's gradient."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2
from dx_kernels._core cimport table as table_current

cdef extern from "table.h" nogil:
    ctypedef struct embedding_table "dx_kernels_table":
        int (*embedding_forward)(int degree, Py_ssize_t n, Py_ssize_t d, const float *table, const int *ids,
                                 int padding, float *y) noexcept nogil
        int (*embedding_sum_forward)(int degree, Py_ssize_t n, Py_ssize_t d, int count, const float **tables,
                                     const int *ids, const float *x, float *y) noexcept nogil
        int (*embedding_backward)(Py_ssize_t n, Py_ssize_t d, Py_ssize_t rows, const float *dy, const int *ids,
                                  int padding, float *dtable) noexcept nogil

cdef enum:
    MOST_TABLES = 8


cdef int check_ids(str name, const int *ids, Py_ssize_t n, Py_ssize_t rows) except -1:
    cdef Py_ssize_t i
    for i in range(n):
        if ids[i] < 0 or ids[i] >= rows:
            raise ValueError(f"{name}[{i}] = {ids[i]}: expected an id in 0..{rows - 1}")
    return 0


cdef int check_padding(int padding, Py_ssize_t rows) except? -2:
    if padding < -1 or padding >= rows:
        raise ValueError(f"padding = {padding}: expected an id in 0..{rows - 1}, or -1 for none")
    return padding


def embedding_forward(const float[:, ::1] table not None, const int[::1] ids not None, float[:, ::1] y not None, *,
                      int padding=-1):
    """y[i] := table[ids[i]]; the padding id reads as a row of +0, whatever the table holds there.

    Shapes    table (rows, d) · ids (n,) int32 · y (n, d); padding -1: every id reads its row
    Edges     n == 0 or d == 0 → nothing
    Aliasing  none
    Raises    ValueError: an id outside the table (position and value), a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.embedding_forward
    """
    cdef Py_ssize_t n = ids.shape[0], rows = table.shape[0], d = table.shape[1]
    cdef const embedding_table *t = <const embedding_table *>table_current()
    cdef const int *pi = NULL if n == 0 else &ids[0]
    cdef int status
    shape2("y", y, n, d)
    check_padding(padding, rows)
    check_ids("ids", pi, n, rows)
    cdef const float *pt = in2(table)
    cdef float *py = out2(y)
    if n == 0 or d == 0:
        return
    with nogil:
        status = t.embedding_forward(degree_current(), n, d, pt, pi, padding, py)
    raise_status(status)


def embedding_sum_forward(tables, const int[:, ::1] ids not None, float[:, ::1] y not None,
                          const float[:, ::1] x=None):
    """y[i] := ((x[i] + tables[0][ids[0, i]]) + tables[1][ids[1, i]]) + …, in the order of the tables.

    Shapes    tables: 1 to 8 arrays (rows_k, d) · ids (tables, n) int32 · x, y (n, d); x None starts with the first
              table's row as it is
    Edges     n == 0 or d == 0 → nothing
    Aliasing  y may be x
    Raises    ValueError: an id outside its table (table, position and value), a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.embedding_sum_forward. The gradient of each table is
              embedding_backward(dy, ids[k], dtablek), that of x is dy
    """
    cdef Py_ssize_t k, count = len(tables), n = ids.shape[1], d = y.shape[1]
    cdef const float *pt[MOST_TABLES]
    cdef const float[:, ::1] view
    cdef const embedding_table *t = <const embedding_table *>table_current()
    cdef unsigned long long saved
    cdef int status
    if count < 1 or count > MOST_TABLES:
        raise ValueError(f"tables has {count} tables: expected 1 to {MOST_TABLES}")
    if ids.shape[0] != count:
        raise ValueError(f"ids has shape ({ids.shape[0]}, {n}): expected ({count}, {n})")
    shape2("y", y, n, d)
    shape2("x", x, n, d)
    held = [memoryview(a) for a in tables]
    for k in range(count):
        view = held[k]
        shape2(f"tables[{k}]", view, view.shape[0], d)
        check_ids(f"ids[{k}]", NULL if n == 0 else &ids[k, 0], n, view.shape[0])
        pt[k] = in2(view)
    cdef const int *pi = NULL if n == 0 else &ids[0, 0]
    cdef const float *px = in2(x)
    cdef float *py = out2(y)
    if n == 0 or d == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.embedding_sum_forward(degree_current(), n, d, <int>count, pt, pi, px, py)
        fp_leave(saved)
    raise_status(status)


def embedding_backward(const float[:, ::1] dy not None, const int[::1] ids not None, float[:, ::1] dtable not None, *,
                       int padding=-1):
    """dtable[r] := sum of the rows dy[i] with ids[i] == r, +0 for an id that does not occur and for the padding id.

    Shapes    dy (n, d) · ids (n,) int32 · dtable (rows, d)
    Order     from +0, plain additions in ascending i, on one thread
    Edges     n == 0 → zeros
    Writes    dtable assigned             Aliasing  none
    Raises    ValueError: an id outside the table (position and value), a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.embedding_backward
    """
    cdef Py_ssize_t n = ids.shape[0], rows = dtable.shape[0], d = dtable.shape[1]
    cdef const embedding_table *t = <const embedding_table *>table_current()
    cdef const int *pi = NULL if n == 0 else &ids[0]
    cdef unsigned long long saved
    cdef int status
    shape2("dy", dy, n, d)
    check_padding(padding, rows)
    check_ids("ids", pi, n, rows)
    cdef const float *pdy = in2(dy)
    cdef float *pdt = out2(dtable)
    if rows == 0 or d == 0:
        return
    with nogil:
        saved = fp_enter()
        status = t.embedding_backward(n, d, rows, pdy, pi, padding, pdt)
        fp_leave(saved)
    raise_status(status)
