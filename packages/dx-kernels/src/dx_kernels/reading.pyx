"""Reading order of words by position."""
from dx_kernels._core cimport fp_enter, fp_leave, raise_status, table

cdef extern from "table.h" nogil:
    ctypedef struct reading_order_table "dx_kernels_table":
        int (*reading_order)(Py_ssize_t n, const double *box, const int *line, const long long *offset,
                             const unsigned int *code, int *order, int *row) noexcept nogil


def reading_order(const double[:, ::1] box not None, const int[::1] line not None, const long long[::1] offset not None,
                  const unsigned int[::1] code not None, int[::1] order not None, int[::1] row not None):
    """order[r] := the word at place r; row[r] := its visual row, from 0, never falling.

    Words with the same line number >= 0 form a segment, unless they are together more than twice as high as the highest
    of them; every other word is a segment. Segments go by the middle of their height, then x0; one begins a new row
    unless its middle is nearer to that of the row's first segment than half its own height. Within a row segments go by
    x0, within a segment words by x0. Every comparison ends with y0, x0, y1, x1, text, so only words that are the same
    in all of these keep their input order.

    Shapes    box (n, 4) float64 · line (n,) int32, below 0 for none · offset (n + 1,) int64, code (m,) uint32: the
              texts · order, row (n,) int32
    Raises    ValueError: a shape or offset that does not fit, a coordinate that is not finite or beyond 2^30
    Source    ours; bit-equal to dx_kernels.ref.reading.reading_order
    """
    cdef Py_ssize_t n = box.shape[0], i, k
    cdef const reading_order_table *t = <const reading_order_table *>table()
    cdef unsigned long long saved
    cdef int status
    if box.shape[1] != 4:
        raise ValueError(f"box has shape ({n}, {box.shape[1]}): expected ({n}, 4)")
    if offset.shape[0] != n + 1:
        raise ValueError(f"offset has shape ({offset.shape[0]},): expected ({n + 1},)")
    for name, length in (("line", line.shape[0]), ("order", order.shape[0]), ("row", row.shape[0])):
        if length != n:
            raise ValueError(f"{name} has shape ({length},): expected ({n},)")
    if offset[0] != 0 or offset[n] != code.shape[0]:
        raise ValueError(f"offset goes from {offset[0]} to {offset[n]}: expected 0 to {code.shape[0]}, the code points")
    for i in range(n):
        if offset[i] > offset[i + 1]:
            raise ValueError(f"offset[{i + 1}] = {offset[i + 1]}: expected at least {offset[i]}, the one before")
        for k in range(4):
            if not -1073741824.0 <= box[i, k] <= 1073741824.0:
                raise ValueError(f"box[{i}, {k}] = {box[i, k]}: expected a number from -2^30 to 2^30")
    cdef const unsigned int *pc = &code[0] if code.shape[0] else NULL
    if n:
        with nogil:
            saved = fp_enter()
            status = t.reading_order(n, &box[0, 0], &line[0], &offset[0], pc, &order[0], &row[0])
            fp_leave(saved)
        raise_status(status)
