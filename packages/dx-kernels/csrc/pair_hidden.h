/* The hidden layer of the pair MLP and its gradient over a chunk of pairs, for pair_mlp.c and pair_bias.c. */
#ifndef DX_PAIR_HIDDEN_H
#define DX_PAIR_HIDDEN_H

#include "activations_inline.h"
#include "short_dot.h"
#include "table.h"

DX_INLINE dx_vf dx_pair_relu(dx_vf v) { return dx_vselect(v < (dx_vf){0}, (dx_vf){0}, v + (dx_vf){0}); }

DX_INLINE void dx_pair_hidden_short(const int K, ptrdiff_t units, ptrdiff_t n, const float *weight, const float *bias,
                                    const float *features, ptrdiff_t stride, float *hidden, ptrdiff_t hidden_stride)
{
    for (ptrdiff_t p = 0; p < n; p += DX_VL) {
        dx_vf x[32];
        dx_short_load(K, features + p, stride, x);
        for (ptrdiff_t u = 0; u < units; u++) /* relu does not tell -0 from +0 */
            dx_vstore(hidden + u * hidden_stride + p,
                      dx_pair_relu(dx_short_dot(K, x, weight + u * K) + dx_vset(bias[u])));
    }
}

/* hidden[u][p] = relu(dot16 over inputs of weight[u], features[.][p]  + bias[u]), n pairs (a multiple of 16). */
DX_INLINE void dx_pair_hidden(ptrdiff_t units, ptrdiff_t inputs, ptrdiff_t n, const float *weight, const float *bias,
                              const float *features, ptrdiff_t stride, float *hidden, ptrdiff_t hidden_stride)
{
    if (inputs == DX_PAIR_FEATURE_COUNT && inputs <= DX_SHORT_K) {
        dx_pair_hidden_short(DX_PAIR_FEATURE_COUNT, units, n, weight, bias, features, stride, hidden, hidden_stride);
        return;
    }
    DX_FN(gemm_direct)(units, n, inputs, weight, inputs, features, stride, hidden, hidden_stride);
    for (ptrdiff_t u = 0; u < units; u++) {
        const float b = bias[u];
        float *h = hidden + u * hidden_stride;
        for (ptrdiff_t p = 0; p < n; p++) h[p] = dx_relu(h[p] + b);
    }
}

DX_INLINE void dx_pair_dhidden_short(const int K, ptrdiff_t units, ptrdiff_t n, const float *weight, const float *dy,
                                     ptrdiff_t stride, const float *hidden, float *dh)
{
    for (ptrdiff_t p = 0; p < n; p += DX_VL) {
        dx_vf x[32];
        dx_short_load(K, dy + p, stride, x);
        for (ptrdiff_t u = 0; u < units; u++) {
            const dx_vf d = dx_short_dot(K, x, weight + u * K) + (dx_vf){0}, h = dx_vload(hidden + u * stride + p);
            dx_vstore(dh + u * stride + p, dx_vselect(h <= (dx_vf){0}, (dx_vf){0}, d));
        }
    }
}

/* dh[u][p] = dot16 over heads of weight[u], dy[.][p];  +0 where hidden <= 0; n pairs (a multiple of 16), all rows stride
 * floats apart. */
DX_INLINE void dx_pair_dhidden(ptrdiff_t units, ptrdiff_t heads, ptrdiff_t n, const float *weight, const float *dy,
                               ptrdiff_t stride, const float *hidden, float *dh)
{
    switch (heads) {
    case 4: dx_pair_dhidden_short(4, units, n, weight, dy, stride, hidden, dh); return;
    case 6: dx_pair_dhidden_short(6, units, n, weight, dy, stride, hidden, dh); return;
    case 8: dx_pair_dhidden_short(8, units, n, weight, dy, stride, hidden, dh); return;
    default: break;
    }
    DX_FN(gemm_direct)(units, n, heads, weight, heads, dy, stride, dh, stride);
    for (ptrdiff_t u = 0; u < units; u++) {
        const float *h = hidden + u * stride;
        float *d = dh + u * stride;
        for (ptrdiff_t p = 0; p < n; p++) d[p] = dx_relu_grad(d[p], h[p]);
    }
}

#endif
