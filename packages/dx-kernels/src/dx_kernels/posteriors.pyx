"""Probabilities of runs under the page model: confidences of decoded fields and their alternatives."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, raise_status, table
from dx_kernels._page cimport check_finite, check_runs, check_schema

import numpy as np

cdef extern from "table.h" nogil:
    ctypedef struct posteriors_table "dx_kernels_table":
        int (*run_posteriors)(int degree, Py_ssize_t n, Py_ssize_t fields, const float *logits,
                              const unsigned char *repeated, double *absent, Py_ssize_t q, const int *given,
                              double *given_p, double floor, Py_ssize_t capacity, int *found, double *found_p,
                              Py_ssize_t *count) noexcept nogil


def page_model(const unsigned char[::1] repeated not None):
    """Which model the schema's posteriors and run loss use: "joint" or "each" (docs/numerics.md, "Decoding").

    joint     every field that is not repeated has at most one run: 2^(such fields) * (fields + 1) <= 4096
    each      for the field in question that holds, the other fields may have several runs
    """
    cdef Py_ssize_t fields = repeated.shape[0], k, single = 0
    for k in range(fields):
        single += not repeated[k]
    return "joint" if single == 0 or (single <= 8 and (fields + 1) << single <= 4096) else "each"


def run_posteriors(const float[:, ::1] logits not None, const unsigned char[::1] repeated not None,
                   double[::1] absent not None, const int[:, ::1] runs not None, double[::1] p not None, *,
                   double floor=float("inf"), Py_ssize_t capacity=1024):
    """absent := probability that a field has no run; p := probability of each given run; returns the runs found.

    The probabilities are exact sums over all legal taggings of the page. With floor <= 1 every run of probability
    >= floor is found: (found, found_p) = int32 (count, 3) of field, first word, last word, in that order, and float64
    (count,). Probabilities of alternatives of a field add up: the places where one text stands are worth their sum.

    Shapes    logits (n, 1 + 2 fields) of tags O, B-0, I-0, … · repeated, absent (fields,) · runs (q, 3) int32 · p (q,)
    Order     binary64, docs/numerics.md "Decoding"
    Edges     n == 0 → absent is 1 · floor > 1 → nothing is sought
    Writes    absent and p assigned
    Raises    ValueError: a shape that does not fit, a logit that is not finite (word, tag), a run outside the page,
              floor below 1e-9 or NaN, capacity < 0; OverflowError: more than capacity runs reach floor
    Source    design: confidences; bit-equal to dx_kernels.ref.posteriors
    """
    cdef Py_ssize_t fields = check_schema(logits, repeated), n = logits.shape[0], count = 0
    cdef const posteriors_table *t = <const posteriors_table *>table()
    cdef unsigned long long saved
    cdef int status
    check_finite(logits)
    check_runs("runs", runs, n, fields)
    if absent.shape[0] != fields:
        raise ValueError(f"absent has shape ({absent.shape[0]},): expected ({fields},)")
    if p.shape[0] != runs.shape[0]:
        raise ValueError(f"p has shape ({p.shape[0]},): expected ({runs.shape[0]},)")
    if not floor >= 1e-9:
        raise ValueError(f"floor = {floor}: expected at least 1e-9")
    if capacity < 0:
        raise ValueError(f"capacity = {capacity}: expected at least 0")
    found = np.empty((capacity, 3), np.int32)
    found_p = np.empty(capacity, np.float64)
    cdef int[:, ::1] f = found
    cdef double[::1] fp = found_p
    cdef const float *pl = in2(logits)
    cdef const unsigned char *pr = NULL if fields == 0 else &repeated[0]
    cdef double *pa = NULL if fields == 0 else &absent[0]
    cdef const int *pg = NULL if runs.shape[0] == 0 else &runs[0, 0]
    cdef double *pp = NULL if runs.shape[0] == 0 else &p[0]
    cdef int *pf = NULL if capacity == 0 else &f[0, 0]
    cdef double *pfp = NULL if capacity == 0 else &fp[0]
    cdef Py_ssize_t q = runs.shape[0]
    with nogil:
        saved = fp_enter()
        status = t.run_posteriors(degree_current(), n, fields, pl, pr, pa, q, pg, pp, floor, capacity, pf, pfp, &count)
        fp_leave(saved)
    raise_status(status)
    if count > capacity:
        raise OverflowError(f"{count} runs reach floor = {floor}: capacity = {capacity}")
    return found[:count].copy(), found_p[:count].copy()
