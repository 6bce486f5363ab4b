"""Words as code points: cleaning, kinds of characters, cuts, text keys, character ids, distinct words."""
from dx_kernels._core cimport raise_status, table

cdef extern from "table.h" nogil:
    ctypedef struct text_table "dx_kernels_table":
        int (*text_clean)(Py_ssize_t n, const unsigned int *code, unsigned int *out) noexcept nogil
        int (*text_kinds)(Py_ssize_t n, const unsigned int *code, unsigned char *kind) noexcept nogil
        int (*text_cuts)(Py_ssize_t words, const long long *offset, const unsigned int *code,
                         const unsigned char *kind, unsigned char *cut) noexcept nogil
        int (*text_keys)(Py_ssize_t words, const long long *offset, const unsigned int *code,
                         const unsigned char *kind, int *key) noexcept nogil
        int (*character_ids)(Py_ssize_t words, const long long *offset, const unsigned int *code,
                             const unsigned char *kind, Py_ssize_t max_chars, int *ids) noexcept nogil
        int (*distinct_rows)(Py_ssize_t rows, Py_ssize_t width, const int *ids, int *distinct, int *inverse,
                             long long *count) noexcept nogil

cdef Py_ssize_t MOST_WORDS = 1 << 24


cdef int check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    if got != wanted:
        raise ValueError(f"{name} has shape ({got},): expected ({wanted},)")
    return 0


# The number of words of offset (words + 1) over n code points.
cdef Py_ssize_t check_words(const long long[::1] offset, Py_ssize_t n) except -1:
    cdef Py_ssize_t w, words = offset.shape[0] - 1
    if words < 0 or words > MOST_WORDS:
        raise ValueError(f"offset has shape ({offset.shape[0]},): expected 1 to {MOST_WORDS + 1} numbers")
    if offset[0] != 0 or offset[words] != n:
        raise ValueError(f"offset goes from {offset[0]} to {offset[words]}: expected 0 to {n}, the code points")
    for w in range(words):
        if offset[w] > offset[w + 1]:
            raise ValueError(f"offset[{w + 1}] = {offset[w + 1]}: expected at least {offset[w]}, the one before")
    return words


def text_clean(const unsigned int[::1] code not None, unsigned int[::1] out not None):
    """out := code, U+FFFD where the code point is not assigned in Unicode 14.0 or is a surrogate.

    Shapes    code, out (n,) uint32
    Edges     numbers above U+10FFFF become U+FFFD · n == 0 → nothing
    Aliasing  out may be code
    Raises    ValueError: a shape that does not fit
    Source    table by tools/unicode_table.py; bit-equal to dx_kernels.ref.text.text_clean
    """
    cdef Py_ssize_t n = code.shape[0]
    cdef const text_table *t = <const text_table *>table()
    check_length("out", out.shape[0], n)
    if n:
        with nogil:
            t.text_clean(n, &code[0], &out[0])


def text_kinds(const unsigned int[::1] code not None, unsigned char[::1] kind not None):
    """kind := kind of the code point | digit value * 16.

    Kinds: 0 not assigned, 1 other, 2 digit, 3 upper case, 4 lower case, 5 other letter, 6 white space,
    7 punctuation or symbol, 8 currency sign.

    Shapes    code (n,) uint32 · kind (n,) uint8
    Raises    ValueError: a shape that does not fit
    Source    Unicode 14.0 general categories; bit-equal to dx_kernels.ref.text.text_kinds
    """
    cdef Py_ssize_t n = code.shape[0]
    cdef const text_table *t = <const text_table *>table()
    check_length("kind", kind.shape[0], n)
    if n:
        with nogil:
            t.text_kinds(n, &code[0], &kind[0])


def text_cuts(const long long[::1] offset not None, const unsigned int[::1] code not None,
              const unsigned char[::1] kind not None, unsigned char[::1] cut not None):
    """cut := 1 at the code points where a word is cut into a further piece, else 0.

    A word is cut around a date that is not all of its letters and digits, after LABEL:, before an opening and after a
    closing bracket, and after a currency code that begins a piece and that a digit follows.

    Shapes    offset (words + 1,) int64 · code (n,) uint32 · kind (n,) uint8 from text_kinds · cut (n,) uint8
    Edges     never at the first code point of a word · an empty word has no cut
    Raises    ValueError: a shape or offset that does not fit
    Source    ours; bit-equal to dx_kernels.ref.text.text_cuts
    """
    cdef Py_ssize_t n = code.shape[0], words = check_words(offset, n)
    cdef const text_table *t = <const text_table *>table()
    check_length("kind", kind.shape[0], n)
    check_length("cut", cut.shape[0], n)
    if n:
        with nogil:
            t.text_cuts(words, &offset[0], &code[0], &kind[0], &cut[0])


def text_keys(const long long[::1] offset not None, const unsigned int[::1] code not None,
              const unsigned char[::1] kind not None, int[::1] key not None):
    """key[w] := the first word with the letters and digits of word w, ASCII case ignored; -1 - w when it has none.

    Shapes    offset (words + 1,) int64 · code (n,) uint32 · kind (n,) uint8 · key (words,) int32
    Raises    ValueError: a shape or offset that does not fit
    Source    ours; bit-equal to dx_kernels.ref.text.text_keys
    """
    cdef Py_ssize_t n = code.shape[0], words = check_words(offset, n)
    cdef const text_table *t = <const text_table *>table()
    cdef int status
    check_length("kind", kind.shape[0], n)
    check_length("key", key.shape[0], words)
    cdef const unsigned int *pc = &code[0] if n else NULL
    cdef const unsigned char *pk = &kind[0] if n else NULL
    if words:
        with nogil:
            status = t.text_keys(words, &offset[0], pc, pk, &key[0])
        raise_status(status)


def character_ids(const long long[::1] offset not None, const unsigned int[::1] code not None,
                  const unsigned char[::1] kind not None, int[:, ::1] ids not None):
    """ids[w] := the character ids of word w, padded with 0; 256 ids in all.

    U+0020..U+007E have 1..95, every other code point 96 + (code * 2654435761 mod 2^32) mod 160. White space at both
    ends is dropped; a word without any other character is one space. A word with more than max_chars characters keeps
    its first max_chars - floor(max_chars / 2) and its last floor(max_chars / 2).

    Shapes    offset (words + 1,) int64 · code (n,) uint32 · kind (n,) uint8 · ids (words, max_chars) int32
    Raises    ValueError: max_chars < 1, a shape or offset that does not fit
    Source    ours; bit-equal to dx_kernels.ref.text.character_ids
    """
    cdef Py_ssize_t n = code.shape[0], words = check_words(offset, n), max_chars = ids.shape[1]
    cdef const text_table *t = <const text_table *>table()
    if ids.shape[0] != words or max_chars < 1:
        raise ValueError(f"ids has shape ({ids.shape[0]}, {max_chars}): expected ({words}, max_chars >= 1)")
    check_length("kind", kind.shape[0], n)
    cdef const unsigned int *pc = &code[0] if n else NULL
    cdef const unsigned char *pk = &kind[0] if n else NULL
    if words:
        with nogil:
            t.character_ids(words, &offset[0], pc, pk, max_chars, &ids[0, 0])


def distinct_rows(const int[:, ::1] ids not None, int[:, ::1] distinct not None, int[::1] inverse not None):
    """The distinct rows of ids in order of first occurrence: ids == distinct[inverse]. Returns how many there are.

    Shapes    ids, distinct (rows, width) int32; only the first rows of distinct are written · inverse (rows,) int32
    Aliasing  distinct may not be ids
    Raises    ValueError: a shape that does not fit
    Source    ours; bit-equal to dx_kernels.ref.text.distinct_rows
    """
    cdef Py_ssize_t rows = ids.shape[0], width = ids.shape[1]
    cdef const text_table *t = <const text_table *>table()
    cdef long long count = 0
    cdef int status
    if width < 1 or rows > MOST_WORDS:
        raise ValueError(f"ids has shape ({rows}, {width}): expected (at most {MOST_WORDS}, at least 1)")
    if distinct.shape[0] != rows or distinct.shape[1] != width:
        raise ValueError(f"distinct has shape ({distinct.shape[0]}, {distinct.shape[1]}): expected ({rows}, {width})")
    check_length("inverse", inverse.shape[0], rows)
    if rows:
        with nogil:
            status = t.distinct_rows(rows, width, &ids[0, 0], &distinct[0, 0], &inverse[0], &count)
        raise_status(status)
    return count
