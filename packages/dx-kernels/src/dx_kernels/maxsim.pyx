"""Late interaction: every row of a query meets every row of a document; MaxSim and its log-sum-exp form, with adjoints."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in2, out2, raise_status, shape2, table

from libc.string cimport memset

cdef extern from "table.h" nogil:
    ctypedef struct dx_maxsim:
        Py_ssize_t d, queries, documents
        const long long *query_starts
        const long long *document_starts
        const float *q
        const float *docs
        const float *dscores
        const float *shares_in
        double temperature
        const int *winners_in
        float *scores
        float *shares
        float *dq
        float *ddocs
        int *winners
    ctypedef struct maxsim_table "dx_kernels_table":
        int (*maxsim_forward)(int degree, const dx_maxsim *a) noexcept nogil
        int (*maxsim_backward)(int degree, const dx_maxsim *a) noexcept nogil
        int (*maxsim_lse_forward)(int degree, const dx_maxsim *a) noexcept nogil
        int (*maxsim_lse_backward)(int degree, const dx_maxsim *a) noexcept nogil

cdef double INFINITY = float("inf")


cdef int check_starts(str name, const long long[::1] starts, Py_ssize_t rows) except -1:
    cdef Py_ssize_t i
    if starts.shape[0] < 1 or starts[0] != 0:
        raise ValueError(f"{name}: expected 0 first")
    for i in range(starts.shape[0] - 1):
        if starts[i + 1] <= starts[i]:
            raise ValueError(f"{name}[{i + 1}] = {starts[i + 1]}: expected more than {starts[i]}, the one before "
                             "(at least one row each)")
    if starts[starts.shape[0] - 1] != rows:
        raise ValueError(f"{name}[-1] = {starts[starts.shape[0] - 1]}: expected {rows}, the number of rows")
    return 0


cdef int fill(dx_maxsim *a, const float[:, ::1] queries, const long long[::1] query_starts,
              const float[:, ::1] documents, const long long[::1] document_starts) except -1:
    memset(a, 0, sizeof(dx_maxsim))
    a.d = queries.shape[1]
    if documents.shape[1] != a.d:
        raise ValueError(f"documents has rows of {documents.shape[1]}: expected {a.d}, as queries")
    check_starts("query_starts", query_starts, queries.shape[0])
    check_starts("document_starts", document_starts, documents.shape[0])
    if queries.shape[0] > 0x7fffffff or documents.shape[0] > 0x7fffffff:
        raise ValueError("queries or documents: expected at most 2^31 - 1 rows")
    a.queries = query_starts.shape[0] - 1
    a.documents = document_starts.shape[0] - 1
    a.query_starts = &query_starts[0]
    a.document_starts = &document_starts[0]
    a.q = in2(queries)
    a.docs = in2(documents)
    return 0


cdef int set_temperature(dx_maxsim *a, double temperature) except -1:
    if not 0 < temperature < INFINITY:
        raise ValueError(f"temperature = {temperature}: expected a finite number > 0")
    a.temperature = temperature
    return 0


cdef int set_gradients(dx_maxsim *a, const float[:, ::1] dscores, float[:, ::1] dqueries, float[:, ::1] ddocuments,
                       Py_ssize_t query_rows, Py_ssize_t document_rows) except -1:
    shape2("dscores", dscores, a.queries, a.documents)
    shape2("dqueries", dqueries, query_rows, a.d)
    shape2("ddocuments", ddocuments, document_rows, a.d)
    a.dscores = in2(dscores)
    a.dq = NULL if dqueries is None else out2(dqueries)
    a.ddocs = NULL if ddocuments is None else out2(ddocuments)
    return 0


cdef bint nothing(const dx_maxsim *a, float[:, ::1] dqueries, float[:, ::1] ddocuments) except -1:
    """Whether there is nothing to pair; the gradients are zeros then."""
    if a.queries and a.documents and a.d:
        return False
    if dqueries is not None:
        dqueries[:, :] = 0
    if ddocuments is not None:
        ddocuments[:, :] = 0
    return True


def maxsim_forward(const float[:, ::1] queries not None, const long long[::1] query_starts not None,
                   const float[:, ::1] documents not None, const long long[::1] document_starts not None,
                   float[:, ::1] scores not None, int[:, ::1] winners not None):
    """scores[a][b] := sum over the rows i of query a of the largest dot16(q_i, d_j) over the rows j of document b.

    Rows of all queries lie one after the other, and so do those of the documents: only rows that count, no padding.

    Shapes    queries (query_rows, d) · query_starts (Q + 1,) int64: query a has the rows query_starts[a] up to
              query_starts[a + 1] · documents (document_rows, d), document_starts (D + 1,) likewise · scores (Q, D) ·
              winners (query_rows, D) int32: the winning row, counted within its document
    Order     a similarity is one dot16 over d; the score is the sum16 of a query's maxima
    Edges     equal similarities → the first row wins · any NaN → NaN, the first NaN wins · d == 0 → zeros, row 0 wins ·
              no queries or no documents → nothing
    Aliasing  outputs overlap no input
    Raises    ValueError: starts that do not begin with 0, end with the number of rows and ascend (every query and
              document has a row), a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.maxsim.maxsim_forward
    """
    cdef const maxsim_table *t = <const maxsim_table *>table()
    cdef dx_maxsim a
    cdef unsigned long long saved
    cdef int status
    fill(&a, queries, query_starts, documents, document_starts)
    shape2("scores", scores, a.queries, a.documents)
    if winners.shape[0] != queries.shape[0] or winners.shape[1] != a.documents:
        raise ValueError(f"winners has shape ({winners.shape[0]}, {winners.shape[1]}): "
                         f"expected ({queries.shape[0]}, {a.documents})")
    if nothing(&a, None, None):
        scores[:, :] = 0
        winners[:, :] = 0
        return
    a.scores = out2(scores)
    a.winners = &winners[0, 0]
    with nogil:
        saved = fp_enter()
        status = t.maxsim_forward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)


def maxsim_backward(const float[:, ::1] dscores not None, const float[:, ::1] queries not None,
                    const long long[::1] query_starts not None, const float[:, ::1] documents not None,
                    const long long[::1] document_starts not None, const int[:, ::1] winners not None,
                    float[:, ::1] dqueries=None, float[:, ::1] ddocuments=None):
    """The adjoint of maxsim_forward: the gradients of the rows; each maximum's goes to its winner alone.

    Shapes    as maxsim_forward · dscores (Q, D) · dqueries (query_rows, d), ddocuments (document_rows, d), None: not
              computed
    Order     dqueries[i][c] = dot16 over the documents b ascending of dscores[a][b], documents[winner of b][c];
              ddocuments[j][c] = dot16 over the query rows i that chose j, ascending and gathered, of dscores[a][b],
              queries[i][c]
    Edges     a document row that nothing chose → +0 · no queries or no documents → zeros
    Writes    outputs assigned            Aliasing  outputs overlap no input
    Raises    as maxsim_forward; ValueError: a winner outside of its document
    Source    seed formulas; bit-equal to dx_kernels.ref.maxsim.maxsim_backward
    """
    cdef const maxsim_table *t = <const maxsim_table *>table()
    cdef dx_maxsim a
    cdef unsigned long long saved
    cdef Py_ssize_t i, b
    cdef int status
    fill(&a, queries, query_starts, documents, document_starts)
    set_gradients(&a, dscores, dqueries, ddocuments, queries.shape[0], documents.shape[0])
    if winners.shape[0] != queries.shape[0] or winners.shape[1] != a.documents:
        raise ValueError(f"winners has shape ({winners.shape[0]}, {winners.shape[1]}): "
                         f"expected ({queries.shape[0]}, {a.documents})")
    for i in range(queries.shape[0]):
        for b in range(a.documents):
            if not 0 <= winners[i, b] < document_starts[b + 1] - document_starts[b]:
                raise ValueError(f"winners[{i}, {b}] = {winners[i, b]}: expected a row of document {b}, "
                                 f"0..{document_starts[b + 1] - document_starts[b] - 1}")
    if nothing(&a, dqueries, ddocuments):
        return
    a.winners_in = &winners[0, 0]
    with nogil:
        saved = fp_enter()
        status = t.maxsim_backward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)


def maxsim_lse_forward(const float[:, ::1] queries not None, const long long[::1] query_starts not None,
                       const float[:, ::1] documents not None, const long long[::1] document_starts not None,
                       float[:, ::1] scores not None, float[:, ::1] shares=None, *, double temperature):
    """The smooth form, another score than MaxSim: each maximum is temperature * log(sum over j of
    exp(similarity / temperature)), which approaches it from above as temperature goes to 0.

    Shapes    as maxsim_forward · shares (document_rows, query_rows): the weight of a document row in a query row's
              value, saved for backward, or None
    Order     similarity by dot16; then binary64: z = similarity / temperature, m = largest, S = sum of exp64(z - m)
              over rows ascending, value = temperature * (m + log64(S)); the sum over the query's rows ascending,
              rounded to binary32 once; share = exp64(z - m) / S rounded once, below 2^-126 → +0
    Edges     NaN or +inf → NaN · d == 0 → temperature * log(rows) per query row · none of a side → nothing
    Aliasing  outputs overlap no input
    Raises    as maxsim_forward; ValueError: temperature <= 0 or not finite
    Source    seed formulas; bit-equal to dx_kernels.ref.maxsim.maxsim_lse_forward
    """
    cdef const maxsim_table *t = <const maxsim_table *>table()
    cdef dx_maxsim a
    cdef unsigned long long saved
    cdef int status
    fill(&a, queries, query_starts, documents, document_starts)
    set_temperature(&a, temperature)
    shape2("scores", scores, a.queries, a.documents)
    shape2("shares", shares, documents.shape[0], queries.shape[0])
    if a.queries == 0 or a.documents == 0:
        return
    a.scores = out2(scores)
    a.shares = NULL if shares is None else out2(shares)
    with nogil:
        saved = fp_enter()
        status = t.maxsim_lse_forward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)


def maxsim_lse_backward(const float[:, ::1] dscores not None, const float[:, ::1] queries not None,
                        const long long[::1] query_starts not None, const float[:, ::1] documents not None,
                        const long long[::1] document_starts not None, const float[:, ::1] shares not None,
                        float[:, ::1] dqueries=None, float[:, ::1] ddocuments=None):
    """The adjoint of maxsim_lse_forward: a document row takes part in proportion to its share.

    Shapes    as maxsim_backward · shares (document_rows, query_rows), the forward's
    Order     g[j][i] = shares[j][i] * dscores[a][b]; dqueries[i][c] = dot16 over all document rows j ascending of
              g[j][i], documents[j][c]; ddocuments[j][c] = dot16 over all query rows i ascending of g[j][i], queries[i][c]
    Edges     no queries or no documents → zeros
    Writes    outputs assigned            Aliasing  outputs overlap no input
    Raises    as maxsim_forward
    Source    seed formulas; bit-equal to dx_kernels.ref.maxsim.maxsim_lse_backward
    """
    cdef const maxsim_table *t = <const maxsim_table *>table()
    cdef dx_maxsim a
    cdef unsigned long long saved
    cdef int status
    fill(&a, queries, query_starts, documents, document_starts)
    set_gradients(&a, dscores, dqueries, ddocuments, queries.shape[0], documents.shape[0])
    shape2("shares", shares, documents.shape[0], queries.shape[0])
    if nothing(&a, dqueries, ddocuments):
        return
    a.shares_in = in2(shares)
    with nogil:
        saved = fp_enter()
        status = t.maxsim_lse_backward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)
