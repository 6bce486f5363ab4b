/* The attention bias of all pairs of words straight from where the words stand: pair features and pair MLP over tiles
 * that stay in cache, so that neither the features nor the hidden layer of n * n pairs ever exists. real (6, n) and
 * whole (3, n) as in pairs.h; weight1 (units, 20), bias1 (units), weight2 (heads, units), bias2 (heads); out
 * (heads, n, n), bit-equal to pair_features followed by pair_mlp_forward. Backward: the gradients of pair_mlp_backward
 * from dy (heads, n, n), the features made again tile by tile. */
#define DX_PAIR_BIAS(F) \
    F(int, pair_bias_forward, (int degree, ptrdiff_t n, ptrdiff_t units, ptrdiff_t heads, const double *real, \
                               const int32_t *whole, const float *weight1, const float *bias1, const float *weight2, \
                               const float *bias2, float *out)) \
    F(int, pair_bias_backward, (int degree, ptrdiff_t n, ptrdiff_t units, ptrdiff_t heads, const float *dy, \
                                const double *real, const int32_t *whole, const float *weight1, const float *bias1, \
                                const float *weight2, float *dweight1, float *dbias1, float *dweight2, float *dbias2))
