/* Late interaction: similarities of all rows of some queries with all rows of some documents, reduced per query row.
 *
 * Rows of all queries lie one after the other in q (query_rows, d), those of query a at query_starts[a] up to
 * query_starts[a + 1]; documents likewise in docs, every document with at least one row. scores is (queries, documents).
 *
 *   maxsim_forward         scores; winners (query_rows, documents): the winning row within the document
 *   maxsim_backward        dq, ddocs (NULL: not wanted) from dscores and winners
 *   maxsim_lse_forward     scores of the log-sum-exp form; shares (document_rows, query_rows), unless NULL
 *   maxsim_lse_backward    dq, ddocs (NULL: not wanted) from dscores and shares */
#ifndef DX_MAXSIM_H
#define DX_MAXSIM_H

typedef struct {
    ptrdiff_t d, queries, documents;
    const int64_t *query_starts, *document_starts;
    const float *q, *docs, *dscores, *shares_in;
    double temperature;
    const int32_t *winners_in;
    float *scores, *shares, *dq, *ddocs;
    int32_t *winners;
} dx_maxsim;

#endif

#define DX_MAXSIM(F) \
    F(int, maxsim_forward, (int degree, const dx_maxsim *a)) \
    F(int, maxsim_backward, (int degree, const dx_maxsim *a)) \
    F(int, maxsim_lse_forward, (int degree, const dx_maxsim *a)) \
    F(int, maxsim_lse_backward, (int degree, const dx_maxsim *a))
