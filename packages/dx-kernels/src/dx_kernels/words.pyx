"""Features of single words: text, place, amounts."""
from dx_kernels._core cimport fp_enter, fp_leave, out2, raise_status, table

cdef extern from "table.h" nogil:
    enum: DX_WORD_FEATURE_COUNT
    ctypedef struct word_features_table "dx_kernels_table":
        int (*word_features)(Py_ssize_t n, const long long *offset, const unsigned int *code,
                             const unsigned char *kind, const double *box, const int *row, const int *line,
                             const int *key, const unsigned char *glue, double line_height,
                             float *out) noexcept nogil

WORD_FEATURE_COUNT = DX_WORD_FEATURE_COUNT


def word_features(const long long[::1] offset not None, const unsigned int[::1] code not None,
                  const unsigned char[::1] kind not None, const double[:, ::1] box not None, const int[::1] row not None,
                  const int[::1] line not None, const int[::1] key not None, const unsigned char[::1] glue not None,
                  float[:, ::1] out not None, *, double line_height):
    """out := 24 features of the text, 15 of the place and 17 of the amount of each word, in reading order.

    Shapes    offset (n + 1,) int64, code (m,) uint32, kind (m,) uint8 · box (n, 4) float64 · row, line, key (n,) int32:
              row from reading_order, key from text_keys · glue (n,) uint8: 1 for a piece that is not the first of its
              word · out (n, 56)
    Order     binary64, one rounding to binary32 at the end; amounts in whole hundredths, int64
    Edges     n == 0 → nothing · a word of more than 13 digits is no amount · no extent, height or text is special
    Raises    ValueError: a shape or offset that does not fit, a coordinate not finite or beyond 2^30, row that falls or
              lies outside 0..n-1, key outside -n..n-1, line_height not above 0
    Source    ours (docs/numerics.md, section 17); bit-equal to dx_kernels.ref.words.word_features
    """
    cdef Py_ssize_t n = box.shape[0], m = code.shape[0], i, k
    cdef const word_features_table *t = <const word_features_table *>table()
    cdef unsigned long long saved
    cdef int status
    if box.shape[1] != 4:
        raise ValueError(f"box has shape ({n}, {box.shape[1]}): expected ({n}, 4)")
    if out.shape[0] != n or out.shape[1] != DX_WORD_FEATURE_COUNT:
        raise ValueError(f"out has shape ({out.shape[0]}, {out.shape[1]}): expected ({n}, {DX_WORD_FEATURE_COUNT})")
    for name, length, wanted in (("offset", offset.shape[0], n + 1), ("kind", kind.shape[0], m), ("row", row.shape[0], n),
                                 ("line", line.shape[0], n), ("key", key.shape[0], n), ("glue", glue.shape[0], n)):
        if length != wanted:
            raise ValueError(f"{name} has shape ({length},): expected ({wanted},)")
    if not 0 < line_height <= 2147483648.0:
        raise ValueError(f"line_height = {line_height}: expected a number above 0, at most 2^31")
    if offset[0] != 0 or offset[n] != m:
        raise ValueError(f"offset goes from {offset[0]} to {offset[n]}: expected 0 to {m}, the code points")
    for i in range(n):
        if offset[i] > offset[i + 1]:
            raise ValueError(f"offset[{i + 1}] = {offset[i + 1]}: expected at least {offset[i]}, the one before")
        if row[i] < (row[i - 1] if i else 0) or row[i] >= n:
            raise ValueError(f"row[{i}] = {row[i]}: expected {row[i - 1] if i else 0} to {n - 1}")
        if key[i] < -n or key[i] >= n:
            raise ValueError(f"key[{i}] = {key[i]}: expected {-n} to {n - 1}")
        for k in range(4):
            if not -1073741824.0 <= box[i, k] <= 1073741824.0:
                raise ValueError(f"box[{i}, {k}] = {box[i, k]}: expected a number from -2^30 to 2^30")
    cdef const unsigned int *pc = &code[0] if m else NULL
    cdef const unsigned char *pk = &kind[0] if m else NULL
    cdef float *po = out2(out)
    if n:
        with nogil:
            saved = fp_enter()
            status = t.word_features(n, &offset[0], pc, pk, &box[0, 0], &row[0], &line[0], &key[0], &glue[0],
                                     line_height, po)
            fp_leave(saved)
        raise_status(status)
