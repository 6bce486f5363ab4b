/* Two layers over all pairs of words, pairs along rows: features (inputs, pairs), hidden (units, pairs), y and dy
 * (heads, pairs); weight1 (units, inputs), bias1 (units), weight2 (heads, units), bias2 (heads). hidden may be NULL:
 * forward does not keep it, backward computes it again. All four gradients are assigned. */
#define DX_PAIR_MLP(F) \
    F(int, pair_mlp_forward, (int degree, ptrdiff_t pairs, ptrdiff_t inputs, ptrdiff_t units, ptrdiff_t heads, \
                              const float *features, const float *weight1, const float *bias1, const float *weight2, \
                              const float *bias2, float *y, float *hidden)) \
    F(int, pair_mlp_backward, (int degree, ptrdiff_t pairs, ptrdiff_t inputs, ptrdiff_t units, ptrdiff_t heads, \
                               const float *dy, const float *features, const float *hidden, const float *weight1, \
                               const float *bias1, const float *weight2, float *dweight1, float *dbias1, \
                               float *dweight2, float *dbias2))
