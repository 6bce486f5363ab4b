"""Decoding of a page: the best legal BIO tagging; runs and tags; groups and pairs from pointers."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, raise_status, table
from dx_kernels._page cimport check_finite, check_schema

import numpy as np

cdef extern from "table.h" nogil:
    ctypedef struct decode_table "dx_kernels_table":
        int (*decode_tags)(int degree, Py_ssize_t n, Py_ssize_t fields, const float *logits,
                           const unsigned char *repeated, int *tags, double *score, double *bound,
                           int *exact) noexcept nogil


def decode_tags(const float[:, ::1] logits not None, const unsigned char[::1] repeated not None,
                int[::1] tags not None):
    """tags := the most probable legal tagging of the page; returns (score, bound, exact).

    Legal: an I only after B or I of its field; at most one run of a field unless it is repeated. score is the log of
    the tagging's probability over that of all O. exact: no legal tagging scores more. It is False only where many
    fields compete with themselves for several places and the search by prices does not settle (seen only on
    noise); then bound is an upper bound of the best score, else bound == score.

    Shapes    logits (n, 1 + 2 fields) of tags O, B-0, I-0, B-1, … · repeated (fields,) uint8 · tags (n,) int32
    Order     binary64, docs/numerics.md "Decoding"; n * (fields + 1) steps, times 2^(fields that compete)
    Edges     n == 0 → score 0 · no field → all O · O wins ties, then the lowest field, then the run that begins later
    Writes    tags assigned
    Raises    ValueError: a shape that does not fit, a logit that is not finite (word, tag), repeated not 0 or 1
    Source    design: joint decoding; bit-equal to dx_kernels.ref.decode
    """
    cdef Py_ssize_t fields = check_schema(logits, repeated), n = logits.shape[0]
    cdef const decode_table *t = <const decode_table *>table()
    cdef unsigned long long saved
    cdef int status, exact = 0
    cdef double score = 0, bound = 0
    check_finite(logits)
    if tags.shape[0] != n:
        raise ValueError(f"tags has shape ({tags.shape[0]},): expected ({n},)")
    cdef const float *pl = in2(logits)
    cdef const unsigned char *pr = NULL if fields == 0 else &repeated[0]
    cdef int *pt = NULL if n == 0 else &tags[0]
    with nogil:
        saved = fp_enter()
        status = t.decode_tags(degree_current(), n, fields, pl, pr, pt, &score, &bound, &exact)
        fp_leave(saved)
    raise_status(status)
    return score, bound, bool(exact)


def check_tags(const int[::1] tags not None, const unsigned char[::1] repeated not None):
    """Returns the first word that breaks the rules of a legal tagging, with the rule: (word, text), or None.

    Rules     a tag is 0..2 fields · an I follows B or I of its field · a second run only of a repeated field
    """
    cdef Py_ssize_t fields = repeated.shape[0], t
    cdef int before = 0, tag
    seen = np.zeros(fields + 1, np.uint8)
    cdef unsigned char[::1] mark = seen
    for t in range(tags.shape[0]):
        tag = tags[t]
        if tag < 0 or tag > 2 * fields:
            return t, f"tag {tag} is outside 0..{2 * fields}"
        if tag != 0 and tag % 2 == 0 and before != tag and before != tag - 1:
            return t, f"I of field {tag // 2 - 1} after tag {before}"
        if tag % 2 == 1:
            if mark[tag // 2] and not repeated[tag // 2]:
                return t, f"second run of field {tag // 2}"
            mark[tag // 2] = 1
        before = tag
    return None


def runs_of_tags(const int[::1] tags not None):
    """The runs of a tagging, in order of words: int32 (count, 3) of field, first word, last word.

    Raises    ValueError: a negative tag, an I that follows neither B nor I of its field
    """
    cdef Py_ssize_t n = tags.shape[0], t, count = 0
    cdef int before = 0, tag
    out = np.empty((n, 3), np.int32)
    cdef int[:, ::1] runs = out
    for t in range(n):
        tag = tags[t]
        if tag < 0:
            raise ValueError(f"tags[{t}] = {tag}: expected 0 or more")
        if tag % 2 == 1:
            runs[count, 0], runs[count, 1], runs[count, 2] = tag // 2, <int>t, <int>t
            count += 1
        elif tag != 0:
            if before != tag and before != tag - 1:
                raise ValueError(f"tags[{t}] = {tag}: I of field {tag // 2 - 1} after tag {before}")
            runs[count - 1, 2] = <int>t
        before = tag
    return out[:count].copy()


def tags_of_runs(const int[:, ::1] runs not None, int[::1] tags not None):
    """tags := B and I of the runs (field, first word, last word), O elsewhere.

    Raises    ValueError: runs not (count, 3), a negative field, words outside 0 <= first <= last < n, a word in two runs
    """
    cdef Py_ssize_t n = tags.shape[0], x, t
    if runs.shape[1] != 3:
        raise ValueError(f"runs has shape ({runs.shape[0]}, {runs.shape[1]}): expected (count, 3)")
    for t in range(n):
        tags[t] = 0
    for x in range(runs.shape[0]):
        if runs[x, 0] < 0 or runs[x, 0] > 16382:
            raise ValueError(f"runs[{x}] has field {runs[x, 0]}: expected 0..16382")
        if not 0 <= runs[x, 1] <= runs[x, 2] < n:
            raise ValueError(f"runs[{x}] has words {runs[x, 1]}..{runs[x, 2]}: expected 0 <= first <= last < {n}")
        for t in range(runs[x, 1], runs[x, 2] + 1):
            if tags[t] != 0:
                raise ValueError(f"runs[{x}]: word {t} is in two runs")
            tags[t] = 2 + 2 * runs[x, 0]
        tags[runs[x, 1]] = 1 + 2 * runs[x, 0]


def pointers_of_scores(const float[:, ::1] scores not None, int[::1] pointers not None):
    """pointers := for each row the column of the largest score, the first of equal ones.

    Shapes    scores (n, m), m >= 1 unless n == 0 · pointers (n,) int32
    Edges     −inf is a score like others · NaN → ValueError naming row and column
    Raises    ValueError: a shape that does not fit, a NaN
    """
    cdef Py_ssize_t n = scores.shape[0], m = scores.shape[1], t, j, best
    if pointers.shape[0] != n:
        raise ValueError(f"pointers has shape ({pointers.shape[0]},): expected ({n},)")
    if n > 0 and m == 0:
        raise ValueError(f"scores has shape ({n}, 0): expected at least one column")
    for t in range(n):
        best = 0
        for j in range(m):
            if scores[t, j] != scores[t, j]:
                raise ValueError(f"scores[{t}, {j}] = nan: expected a number")
            if scores[t, j] > scores[t, best]:
                best = j
        pointers[t] = <int>best


cdef int check_pointers(const int[::1] pointers) except -1:
    cdef Py_ssize_t n = pointers.shape[0], t
    for t in range(n):
        if not 0 <= pointers[t] < n:
            raise ValueError(f"pointers[{t}] = {pointers[t]}: expected 0..{n - 1}")
    return 0


def groups_of_pointers(const int[::1] pointers not None, int[::1] groups not None):
    """groups := for each word the anchor it ends at when pointers are followed; words with one anchor are one group.

    A word that points at itself is an anchor. Pointers that run in a circle: its lowest word is the anchor. So every
    word has one anchor in 0..n-1, a word with no partner is its own group, and groups[groups[t]] == groups[t].

    Shapes    pointers, groups (n,) int32, every pointer in 0..n-1
    Raises    ValueError: a shape that does not fit, a pointer outside
    """
    cdef Py_ssize_t n = pointers.shape[0], t
    cdef int x, y, anchor
    if groups.shape[0] != n:
        raise ValueError(f"groups has shape ({groups.shape[0]},): expected ({n},)")
    check_pointers(pointers)
    cdef int[::1] trail = np.full(n, -1, np.int32)      # the word whose walk passed here first
    for t in range(n):
        groups[t] = -1
    for t in range(n):
        x = <int>t
        while groups[x] < 0 and trail[x] != t:
            trail[x] = <int>t
            x = pointers[x]
        if groups[x] >= 0:
            anchor = groups[x]
        else:                                           # the walk met itself: x is on a circle
            anchor, y = x, pointers[x]
            while y != x:
                anchor = min(anchor, y)
                y = pointers[y]
        x = <int>t
        while groups[x] < 0:
            groups[x] = anchor
            x = pointers[x]


def pairs_of_pointers(const int[::1] pointers not None):
    """Key and value pairs: int32 (count, 2) of (word, the other word it points at), in order of the pointing word.

    A word that points at itself has no partner. Two words that point at each other give both pairs; roles decide
    which is the key.

    Raises    ValueError: a pointer outside 0..n-1
    """
    check_pointers(pointers)
    cdef Py_ssize_t t, count = 0
    out = np.empty((pointers.shape[0], 2), np.int32)
    cdef int[:, ::1] pairs = out
    for t in range(pointers.shape[0]):
        if pointers[t] != t:
            pairs[count, 0], pairs[count, 1] = <int>t, pointers[t]
            count += 1
    return out[:count].copy()
