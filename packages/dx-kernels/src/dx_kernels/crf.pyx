"""Linear-chain conditional random field: loss and gradient, marginals, and the best tagging, of many sequences."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2, \
    table
from dx_kernels._loss cimport check_factor

import numpy as np

cdef extern from *:
    """
    /* Volatile, so that the sum is done before fp_leave. */
    static inline double dx_seal(double x) { volatile double y = x; return y; }
    """
    double dx_seal(double x) nogil

cdef extern from "table.h" nogil:
    ctypedef struct crf_table "dx_kernels_table":
        int (*crf_loss)(int degree, Py_ssize_t sequences, Py_ssize_t tags, const float *emissions,
                        const float *transitions, const float *first, const float *last, const int *targets,
                        const int *begin, double scale, double denominator, double *losses, float *demissions,
                        float *dtransitions, float *dfirst, float *dlast) noexcept nogil
        int (*crf_marginals)(int degree, Py_ssize_t sequences, Py_ssize_t tags, const float *emissions,
                             const float *transitions, const float *first, const float *last, const int *begin,
                             double *log_partition, double *marginals) noexcept nogil
        int (*crf_decode)(int degree, Py_ssize_t sequences, Py_ssize_t tags, const float *emissions,
                          const float *transitions, const float *first, const float *last, const int *begin,
                          double *scores, int *best) noexcept nogil


cdef struct chain:
    Py_ssize_t sequences, tags
    const float *emissions
    const float *transitions
    const float *first
    const float *last
    const int *begin


cdef chain check(const float[:, ::1] emissions, const float[:, ::1] transitions, const float[::1] first,
                 const float[::1] last, const int[::1] begin) except *:
    cdef chain a
    cdef Py_ssize_t s, rows = emissions.shape[0]
    a.tags, a.sequences = emissions.shape[1], begin.shape[0] - 1
    if a.tags < 1 or a.tags > 32767:
        raise ValueError(f"emissions has shape ({rows}, {a.tags}): expected 1 to 32767 tags")
    shape2("transitions", transitions, a.tags, a.tags)
    shape1("first", first, a.tags)
    shape1("last", last, a.tags)
    if begin.shape[0] < 1 or begin[0] != 0 or begin[a.sequences] != rows:
        raise ValueError(f"begin = {np.asarray(begin).tolist()[:8]}: expected to begin with 0 and end with {rows}, the rows")
    for s in range(a.sequences):
        if begin[s + 1] < begin[s]:
            raise ValueError(f"begin[{s + 1}] = {begin[s + 1]}: expected at least begin[{s}] = {begin[s]}")
    a.emissions, a.transitions, a.first, a.last, a.begin = in2(emissions), in2(transitions), in1(first), in1(last), \
        &begin[0]
    return a


cdef const int *targets_of(const int[::1] targets, Py_ssize_t rows, Py_ssize_t tags) except? NULL:
    cdef Py_ssize_t r
    if targets.shape[0] != rows:
        raise ValueError(f"targets has shape ({targets.shape[0]},): expected ({rows},)")
    for r in range(rows):
        if targets[r] < -1 or targets[r] >= tags:
            raise ValueError(f"targets[{r}] = {targets[r]}: expected a tag in 0..{tags - 1}, or -1 (any)")
    return NULL if rows == 0 else &targets[0]


cdef int run(const chain *a, const int *targets, double scale, double denominator, double[::1] losses,
             float *demissions, float *dtransitions, float *dfirst, float *dlast, double *sums) except -1:
    """sums: numerator and denominator."""
    cdef const crf_table *t = <const crf_table *>table()
    cdef unsigned long long saved
    cdef Py_ssize_t s
    cdef int status
    cdef double *each
    if losses is None:
        losses = np.empty(a.sequences + 1)
    elif losses.shape[0] != a.sequences:
        raise ValueError(f"losses has shape ({losses.shape[0]},): expected ({a.sequences},)")
    each = NULL if losses.shape[0] == 0 else &losses[0]
    with nogil:
        saved = fp_enter()
        status = t.crf_loss(degree_current(), a.sequences, a.tags, a.emissions, a.transitions, a.first, a.last, targets,
                            a.begin, scale, denominator, each, demissions, dtransitions, dfirst, dlast)
        sums[0] = sums[1] = 0.0
        if status == 0:
            for s in range(a.sequences):
                sums[0] = dx_seal(sums[0] + each[s])
                sums[1] = sums[1] + (a.begin[s + 1] > a.begin[s])
        fp_leave(saved)
    return raise_status(status)


def crf_forward(const float[:, ::1] emissions not None, const float[:, ::1] transitions not None,
                const float[::1] first not None, const float[::1] last not None, const int[::1] targets not None,
                const int[::1] begin not None, double[::1] losses=None):
    """(numerator, denominator): the sum over sequences of -log p(targets), and how many sequences have rows.

    The score of a tagging y is first[y0] + e[0, y0] + sum of (transitions[y(t-1), yt] + e[t, yt]) + last[y(n-1)];
    p is exp(score) over the sum for all taggings, so whole taggings compete, not the tags of a row. A target of -1
    is any tag: such rows are summed out.

    Shapes    emissions (rows, tags): the rows of all sequences one after another · transitions (tags, tags) from row to
              column · first, last (tags,) · targets (rows,) int32 · begin (sequences + 1,) int32: sequence s has rows
              begin[s]..begin[s + 1] - 1 · losses (sequences,) float64
    Order     binary64; docs/readout.md "Linear-chain CRF"
    Edges     -inf forbids a transition or tag; targets that are forbidden → inf · a sequence without rows → 0, not
              counted · NaN or +inf → NaN
    Raises    ValueError: a target that is neither a tag nor -1, begin that is not ascending from 0 to rows, no tag,
              a shape that does not fit
    Source    docs/readout.md; bit-equal to dx_kernels.ref.crf.crf_forward
    """
    cdef chain a = check(emissions, transitions, first, last, begin)
    cdef double sums[2]
    run(&a, targets_of(targets, emissions.shape[0], a.tags), 1.0, 1.0, losses, NULL, NULL, NULL, NULL, sums)
    return sums[0], sums[1]


def crf_backward(const float[:, ::1] emissions not None, const float[:, ::1] transitions not None,
                 const float[::1] first not None, const float[::1] last not None, const int[::1] targets not None,
                 const int[::1] begin not None, float[:, ::1] demissions not None, float[:, ::1] dtransitions not None,
                 float[::1] dfirst not None, float[::1] dlast not None, *, double scale=1.0, denominator=None):
    """Gradients := scale / denominator * (expected counts - expected counts under the targets).

    Returns what crf_forward returns. denominator None: the number of sequences that have rows.

    Shapes    as crf_forward; each gradient as its argument
    Order     binary64, rounded to binary32 once; sums over a sequence's rows ascending, sequences in order
    Edges     no rows → zeros · denominator 0 → zeros · forbidden targets → NaN
    Writes    outputs assigned            Aliasing  outputs overlap nothing
    Raises    as crf_forward; ValueError: scale not finite, denominator negative or not finite
    Source    docs/readout.md; bit-equal to dx_kernels.ref.crf.crf_backward
    """
    cdef chain a = check(emissions, transitions, first, last, begin)
    cdef const int *pt = targets_of(targets, emissions.shape[0], a.tags)
    cdef double sums[2]
    cdef double divisor = 0.0
    cdef Py_ssize_t s
    for s in range(a.sequences):
        divisor += begin[s + 1] > begin[s]
    if denominator is not None:
        divisor = denominator
    shape2("demissions", demissions, emissions.shape[0], a.tags)
    shape2("dtransitions", dtransitions, a.tags, a.tags)
    shape1("dfirst", dfirst, a.tags)
    shape1("dlast", dlast, a.tags)
    check_factor(scale, divisor)
    if emissions.shape[0] == 0 or divisor == 0.0:
        run(&a, pt, 1.0, 1.0, None, NULL, NULL, NULL, NULL, sums)
        demissions[:, :] = 0.0
        dtransitions[:, :] = 0.0
        dfirst[:] = 0.0
        dlast[:] = 0.0
    else:
        run(&a, pt, scale, divisor, None, out2(demissions), out2(dtransitions), out1(dfirst), out1(dlast), sums)
    return sums[0], sums[1]


def crf_marginals(const float[:, ::1] emissions not None, const float[:, ::1] transitions not None,
                  const float[::1] first not None, const float[::1] last not None, const int[::1] begin not None,
                  double[::1] log_partition not None, double[:, ::1] marginals not None):
    """marginals[t, j] := the probability that row t has tag j; log_partition := log of the sum over all taggings.

    Shapes    as crf_forward · log_partition (sequences,), marginals (rows, tags) float64
    Edges     a sequence without rows → log_partition 0 · no admitted tagging → log_partition -inf, marginals NaN
    Writes    outputs assigned
    Raises    ValueError: as crf_forward
    Source    docs/readout.md; bit-equal to dx_kernels.ref.crf.crf_marginals
    """
    cdef chain a = check(emissions, transitions, first, last, begin)
    cdef const crf_table *t = <const crf_table *>table()
    cdef unsigned long long saved
    cdef int status
    if log_partition.shape[0] != a.sequences:
        raise ValueError(f"log_partition has shape ({log_partition.shape[0]},): expected ({a.sequences},)")
    if marginals.shape[0] != emissions.shape[0] or marginals.shape[1] != a.tags:
        raise ValueError(f"marginals has shape ({marginals.shape[0]}, {marginals.shape[1]}): expected "
                         f"({emissions.shape[0]}, {a.tags})")
    cdef double *pz = NULL if a.sequences == 0 else &log_partition[0]
    cdef double *pm = NULL if emissions.shape[0] == 0 else &marginals[0, 0]
    with nogil:
        saved = fp_enter()
        status = t.crf_marginals(degree_current(), a.sequences, a.tags, a.emissions, a.transitions, a.first, a.last,
                                 a.begin, pz, pm)
        fp_leave(saved)
    raise_status(status)


def crf_decode(const float[:, ::1] emissions not None, const float[:, ::1] transitions not None,
               const float[::1] first not None, const float[::1] last not None, const int[::1] begin not None,
               double[::1] scores not None, int[::1] best not None):
    """best := the tagging of each sequence with the largest score, scores := those scores (Viterbi).

    Shapes    as crf_forward · scores (sequences,) float64 · best (rows,) int32
    Order     binary64: v[t, j] = max over i (v[t - 1, i] + transitions[i, j]) + e[t, j]; the lowest tag wins ties, at
              the last row and among the tags before
    Edges     a sequence without rows → score 0
    Writes    outputs assigned
    Raises    ValueError: NaN or +inf in an argument, a sequence without an admitted tagging (the first); as crf_forward
    Source    docs/readout.md; bit-equal to dx_kernels.ref.crf.crf_decode
    """
    cdef chain a = check(emissions, transitions, first, last, begin)
    cdef const crf_table *t = <const crf_table *>table()
    cdef unsigned long long saved
    cdef int status
    cdef Py_ssize_t s
    for name, values in (("emissions", emissions), ("transitions", transitions), ("first", first), ("last", last)):
        array = np.asarray(values)
        wrong = np.argwhere(~(array < np.inf))
        if len(wrong):
            place = ", ".join(map(str, wrong[0].tolist()))
            raise ValueError(f"{name}[{place}] = {array[tuple(wrong[0])]}: expected a number, or -inf (forbidden)")
    if scores.shape[0] != a.sequences:
        raise ValueError(f"scores has shape ({scores.shape[0]},): expected ({a.sequences},)")
    if best.shape[0] != emissions.shape[0]:
        raise ValueError(f"best has shape ({best.shape[0]},): expected ({emissions.shape[0]},)")
    cdef double *ps = NULL if a.sequences == 0 else &scores[0]
    cdef int *pb = NULL if emissions.shape[0] == 0 else &best[0]
    with nogil:
        saved = fp_enter()
        status = t.crf_decode(degree_current(), a.sequences, a.tags, a.emissions, a.transitions, a.first, a.last,
                              a.begin, ps, pb)
        fp_leave(saved)
    raise_status(status)
    for s in range(a.sequences):
        if scores[s] == -float("inf"):
            raise ValueError(f"sequence {s}: no tagging is admitted")
