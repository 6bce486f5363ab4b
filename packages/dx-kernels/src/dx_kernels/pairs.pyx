"""Positions of words on the page, and features of pairs of words."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, out3, raise_status, table

cdef extern from "table.h" nogil:
    enum: DX_PAIR_FEATURE_COUNT, DX_PAIR_REALS, DX_PAIR_WHOLES
    ctypedef struct pair_features_table "dx_kernels_table":
        int (*page_geometry)(Py_ssize_t n, const double *box, const int *row, const int *line, const int *key,
                             double *relative, double *real, int *whole, double *line_height) noexcept nogil
        int (*positions)(Py_ssize_t n, const double *relative, int size, int *position) noexcept nogil
        int (*pair_features)(int degree, Py_ssize_t n, const double *real, const int *whole, Py_ssize_t i0,
                             Py_ssize_t i1, float *out) noexcept nogil

PAIR_FEATURE_COUNT = DX_PAIR_FEATURE_COUNT
PAIR_REALS = DX_PAIR_REALS
PAIR_WHOLES = DX_PAIR_WHOLES


def page_geometry(const double[:, ::1] box not None, const int[::1] row not None, const int[::1] line not None,
                  const int[::1] key not None, double[:, ::1] relative not None, double[:, ::1] real not None,
                  int[:, ::1] whole not None):
    """Where words in reading order stand; returns the line height (float).

    relative := box edges from the corner of the page's content, by its extent (0..1; 0 where the extent is 0)
    real     := middle x and y (relative), x0, x1 and middle y in line heights, log of the height in line heights
    whole    := row, line, key
    The line height is the lower median of the heights above 0 (1 without any), at least 2^-20 of the larger extent.

    Shapes    box (n, 4) float64 · row, line, key (n,) int32 · relative (n, 4) float64 · real (6, n) float64 ·
              whole (3, n) int32
    Edges     n == 0 → line height 1 · the log of a height below 2^-10 is that of 2^-10
    Raises    ValueError: a shape that does not fit, a coordinate not finite or beyond 2^30, x0 > x1 or y0 > y1
    Source    ours; bit-equal to dx_kernels.ref.pairs.page_geometry
    """
    cdef Py_ssize_t n = box.shape[0], i, k
    cdef const pair_features_table *t = <const pair_features_table *>table()
    cdef unsigned long long saved
    cdef double line_height = 1.0
    cdef int status
    if box.shape[1] != 4:
        raise ValueError(f"box has shape ({n}, {box.shape[1]}): expected ({n}, 4)")
    for name, length in (("row", row.shape[0]), ("line", line.shape[0]), ("key", key.shape[0])):
        if length != n:
            raise ValueError(f"{name} has shape ({length},): expected ({n},)")
    if relative.shape[0] != n or relative.shape[1] != 4:
        raise ValueError(f"relative has shape ({relative.shape[0]}, {relative.shape[1]}): expected ({n}, 4)")
    if real.shape[0] != DX_PAIR_REALS or real.shape[1] != n:
        raise ValueError(f"real has shape ({real.shape[0]}, {real.shape[1]}): expected ({DX_PAIR_REALS}, {n})")
    if whole.shape[0] != DX_PAIR_WHOLES or whole.shape[1] != n:
        raise ValueError(f"whole has shape ({whole.shape[0]}, {whole.shape[1]}): expected ({DX_PAIR_WHOLES}, {n})")
    for i in range(n):
        for k in range(4):
            if not -1073741824.0 <= box[i, k] <= 1073741824.0:
                raise ValueError(f"box[{i}, {k}] = {box[i, k]}: expected a number from -2^30 to 2^30")
        if box[i, 0] > box[i, 2] or box[i, 1] > box[i, 3]:
            raise ValueError(f"box[{i}] = ({box[i, 0]}, {box[i, 1]}, {box[i, 2]}, {box[i, 3]}): expected x0 <= x1, "
                             "y0 <= y1")
    if n:
        with nogil:
            saved = fp_enter()
            status = t.page_geometry(n, &box[0, 0], &row[0], &line[0], &key[0], &relative[0, 0], &real[0, 0],
                                     &whole[0, 0], &line_height)
            fp_leave(saved)
        raise_status(status)
    return line_height


def positions(const double[:, ::1] relative not None, int[:, ::1] position not None, *, int size):
    """position[k, i] := floor(relative[i, k] * size), clamped to 0..size-1 before the cast; NaN gives 0.

    Shapes    relative (n, 4) float64 · position (4, n) int32: one row a position table (x0, y0, x1, y1)
    Raises    ValueError: size < 1, a shape that does not fit
    Source    ours; bit-equal to dx_kernels.ref.pairs.positions
    """
    cdef Py_ssize_t n = relative.shape[0]
    cdef const pair_features_table *t = <const pair_features_table *>table()
    cdef unsigned long long saved
    if size < 1:
        raise ValueError(f"size = {size}: expected at least 1")
    if relative.shape[1] != 4:
        raise ValueError(f"relative has shape ({n}, {relative.shape[1]}): expected ({n}, 4)")
    if position.shape[0] != 4 or position.shape[1] != n:
        raise ValueError(f"position has shape ({position.shape[0]}, {position.shape[1]}): expected (4, {n})")
    if n:
        with nogil:
            saved = fp_enter()
            t.positions(n, &relative[0, 0], size, &position[0, 0])
            fp_leave(saved)


cdef int check_places(const double[:, ::1] real, const int[:, ::1] whole) except -1:
    """ValueError unless the two have the shapes that page_geometry gives and rows that differences cannot overflow."""
    cdef Py_ssize_t n = real.shape[1], i
    if real.shape[0] != DX_PAIR_REALS:
        raise ValueError(f"real has shape ({real.shape[0]}, {n}): expected ({DX_PAIR_REALS}, n)")
    if whole.shape[0] != DX_PAIR_WHOLES or whole.shape[1] != n:
        raise ValueError(f"whole has shape ({whole.shape[0]}, {whole.shape[1]}): expected ({DX_PAIR_WHOLES}, {n})")
    for i in range(n):
        if whole[0, i] < 0 or whole[0, i] > 16777216:
            raise ValueError(f"whole[0, {i}] = {whole[0, i]}: expected a row of the page, 0 to 2^24")
    return 0


def pair_features(const double[:, ::1] real not None, const int[:, ::1] whole not None, float[:, :, ::1] out not None,
                  *, Py_ssize_t i0=0):
    """out[f, i - i0, j] := feature f of the pair (word i, word j), for the rows i0 .. i0 + out.shape[1] - 1.

    Shapes    real (6, n) float64 and whole (3, n) int32 from page_geometry (a window's columns, copied, are as good) ·
              out (20, rows, n)
    Order     differences in binary64, one rounding to binary32; tanh is tanh32 of the rounded argument
    Edges     n == 0 or no rows → nothing
    Raises    ValueError: a shape that does not fit, rows outside 0..n-1, a page row outside 0..2^24
    Source    ours (docs/numerics.md, section 17); bit-equal to dx_kernels.ref.pairs.pair_features
    """
    cdef Py_ssize_t n = real.shape[1], rows = out.shape[1]
    cdef const pair_features_table *t = <const pair_features_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_places(real, whole)
    if out.shape[0] != DX_PAIR_FEATURE_COUNT or out.shape[2] != n:
        raise ValueError(f"out has shape ({out.shape[0]}, {rows}, {out.shape[2]}): expected "
                         f"({DX_PAIR_FEATURE_COUNT}, rows, {n})")
    if not 0 <= i0 <= n - rows:  # i0 + rows could overflow
        raise ValueError(f"i0 = {i0} with {rows} rows: expected rows within 0 to {n - 1}")
    cdef float *po = out3(out)
    if n and rows:
        with nogil:
            saved = fp_enter()
            status = t.pair_features(degree_current(), n, &real[0, 0], &whole[0, 0], i0, i0 + rows, po)
            fp_leave(saved)
        raise_status(status)
