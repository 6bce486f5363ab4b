/* Table rows by id. table (rows, d), ids (n), y and dy (n, d) row-major; ids lie in 0..rows-1; padding is an id whose
 * row reads as zeros and gets no gradient, or -1. sum: count tables and their ids, x (n, d) or NULL. */
#define DX_EMBEDDING(F) \
    F(int, embedding_forward, (int degree, ptrdiff_t n, ptrdiff_t d, const float *table, const int32_t *ids, \
                               int padding, float *y)) \
    F(int, embedding_sum_forward, (int degree, ptrdiff_t n, ptrdiff_t d, int count, const float *const *tables, \
                                   const int32_t *ids, const float *x, float *y)) \
    F(int, embedding_backward, (ptrdiff_t n, ptrdiff_t d, ptrdiff_t rows, const float *dy, const int32_t *ids, \
                                int padding, float *dtable))
