/* Pooling of listed rows. x (x_rows, d) row-major; segment b is the listed rows rows[starts[b]] .. rows[starts[b + 1]-1]
 * of x, at least one; all listed rows ascend strictly, so segments share none. rows NULL: row i is i.
 * weights (listed), divisors (segments) and dweights (listed) may be NULL; x is read by pool_sum_backward for dweights
 * only. Outputs are assigned, all of them. Scores, p, dp, dscores: (heads, listed). */
typedef struct {
    ptrdiff_t segments, listed, x_rows, d;
    const int32_t *rows;
    const int64_t *starts;
} dx_segments;

#define DX_POOLING(F) \
    F(int, pool_sum_forward, (int degree, const dx_segments *s, const float *x, const float *weights, \
                              const float *divisors, float *y)) \
    F(int, pool_sum_backward, (int degree, const dx_segments *s, const float *dy, const float *x, \
                               const float *weights, const float *divisors, float *dx, float *dweights)) \
    F(int, pool_max_forward, (int degree, const dx_segments *s, const float *x, float *y, int32_t *argmax)) \
    F(int, pool_max_backward, (int degree, ptrdiff_t segments, ptrdiff_t x_rows, ptrdiff_t d, const float *dy, \
                               const int32_t *argmax, float *dx)) \
    F(int, pool_softmax_forward, (int degree, ptrdiff_t heads, const dx_segments *s, const float *scores, float *p)) \
    F(int, pool_softmax_backward, (int degree, ptrdiff_t heads, const dx_segments *s, const float *p, \
                                   const float *dp, float *dscores))
