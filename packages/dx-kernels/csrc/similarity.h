/* Unit rows and squared distances (docs/readout.md). x, y, dy, dx (rows, d); norms (rows); a row of norm 0 with epsilon 0
 * gives NaN. q (queries, d), e (documents, d), s, ds (queries, documents); dq or de may be NULL. */
#define DX_SIMILARITY(F) \
    F(int, l2_normalize_forward, (int degree, ptrdiff_t rows, ptrdiff_t d, const float *x, float epsilon, float *y, \
                                  float *norms)) \
    F(int, l2_normalize_backward, (int degree, ptrdiff_t rows, ptrdiff_t d, const float *dy, const float *y, \
                                   const float *norms, float epsilon, float *dx)) \
    F(int, squared_distance_forward, (int degree, ptrdiff_t queries, ptrdiff_t documents, ptrdiff_t d, \
                                      const float *q, const float *e, float *s)) \
    F(int, squared_distance_backward, (int degree, ptrdiff_t queries, ptrdiff_t documents, ptrdiff_t d, \
                                       const float *ds, const float *q, const float *e, float *dq, float *de))
