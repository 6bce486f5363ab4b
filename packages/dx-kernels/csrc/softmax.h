/* Row softmax with scale, bias and admitted columns. raw, bias, p, dp, draw, dbias are (rows, n) row-major; bias
 * may be NULL. scale divides (1: none). mask is NULL or bytes, row r at mask + r * mask_stride (0: one row for all),
 * nonzero admits the column; limits is NULL or (rows): row r admits columns below limits[r], which is in 0..n. */
#define DX_SOFTMAX(F) \
    F(int, softmax_forward, (int degree, ptrdiff_t rows, ptrdiff_t n, const float *raw, float scale, \
                             const float *bias, const unsigned char *mask, ptrdiff_t mask_stride, \
                             const int32_t *limits, float *p)) \
    F(int, softmax_backward, (int degree, ptrdiff_t rows, ptrdiff_t n, const float *p, const float *dp, float scale, \
                              float *draw, float *dbias))
