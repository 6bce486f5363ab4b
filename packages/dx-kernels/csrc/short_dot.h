/* dot16 over a short contraction that is not a multiple of 16, for a vector of columns at once: all operands of the
 * columns in registers, no partial tiles in memory. K is a constant where it is called.
 *
 * Where K % 16 != 0 some lanes end in padding, and neither that padding nor lanes without any element need be executed:
 * gemm_kernel.h has the proof that it changes the sign of zero sums alone and that adding +0 to the dot puts it right.
 * For the same reason the first element of a lane is a product, which differs from fma(a, b, +0) in -0 for +0. */
#ifndef DX_SHORT_DOT_H
#define DX_SHORT_DOT_H

#include <dx_numerics/vec.h>

/* Registers enough for the operands. */
#if DX_PATH == DX_PATH_AVX512 || DX_PATH == DX_PATH_NEON
#define DX_SHORT_K 24
#else
#define DX_SHORT_K 8
#endif

DX_INLINE dx_vf dx_short_lane(const int K, int l, const dx_vf *x, const float *w)
{
    dx_vf s = dx_vset(w[l]) * x[l];
    return l + 16 < K ? dx_vfma(dx_vset(w[l + 16]), x[l + 16], s) : s;
}

#define DX_SHORT_LEVEL(name, below, step) \
    DX_INLINE dx_vf name(const int K, int l, const dx_vf *x, const float *w) \
    { \
        dx_vf s = below(K, l, x, w); \
        return l + step < K ? s + below(K, l + step, x, w) : s; \
    }
DX_SHORT_LEVEL(dx_short_8, dx_short_lane, 8)
DX_SHORT_LEVEL(dx_short_4, dx_short_8, 4)
DX_SHORT_LEVEL(dx_short_2, dx_short_4, 2)
DX_SHORT_LEVEL(dx_short_1, dx_short_2, 1)

/* dot16 of w[0..K) and x[0..K) for every lane of the vectors, but for -0 where it is +0: the caller adds +0, or does
 * something else that makes no difference between the two. 0 < K < 32, K != 16. */
DX_INLINE dx_vf dx_short_dot(const int K, const dx_vf *x, const float *w) { return dx_short_1(K, 0, x, w); }

DX_INLINE void dx_short_load(const int K, const float *rows, ptrdiff_t stride, dx_vf *x)
{
    DX_UNROLL(32)
    for (int k = 0; k < K; k++) x[k] = dx_vload(rows + k * stride);
}

#endif
