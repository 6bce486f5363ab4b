/* dot16: the one way in which dx adds many binary32 numbers.
 *
 *     16 accumulators start at +0
 *     element i goes to lane i mod 16:  lane = fma(a[i], b[i], lane),  i ascending
 *     a partial last chunk is padded with +0 * +0, and the padding is executed (fma(+0, +0, -0) is +0)
 *     tree: lane l += lane l+8 (l < 8), l+4 (l < 4), l+2 (l < 2), l+1; the result is lane 0
 *
 * sum16 is dot16 with ones (fma(x, 1, lane) is x + lane, so it is written with plain additions), mean16 is
 * sum16 / n, one division. All are bit-equal on every path; an empty dot is +0. */
#ifndef DX_NUMERICS_DOT_H
#define DX_NUMERICS_DOT_H

#include "vec.h"

typedef struct { dx_vf v[DX_NV]; } dx_lanes;

DX_INLINE dx_lanes dx_lanes_zero(void)
{
    dx_lanes s;
    for (int h = 0; h < DX_NV; h++) s.v[h] = (dx_vf){0};
    return s;
}

/* The first n (1..15) of 16 floats, the rest +0. */
DX_INLINE void dx_pad16(float out[16], const float *x, ptrdiff_t n, ptrdiff_t stride)
{
    for (ptrdiff_t l = 0; l < 16; l++) out[l] = l < n ? x[l * stride] : 0.0f;
}

/* The tree on whole vectors: the lanes above the ones that count hold sums that nobody reads. */
DX_INLINE float dx_lanes_tree(dx_lanes s)
{
    for (int width = DX_NV / 2; width; width >>= 1)
        for (int h = 0; h < width; h++) s.v[h] = s.v[h] + s.v[h + width];
    dx_vf v = s.v[0];
#if DX_VL >= 16
    v = v + DX_VSWAP(v, 8);
#endif
#if DX_VL >= 8
    v = v + DX_VSWAP(v, 4);
#endif
    v = v + DX_VSWAP(v, 2);
    v = v + DX_VSWAP(v, 1);
    return v[0];
}

DX_INLINE void dx_lanes_fma(dx_lanes *s, const float *a, const float *b)
{
    for (int h = 0; h < DX_NV; h++) s->v[h] = dx_vfma(dx_vload(a + h * DX_VL), dx_vload(b + h * DX_VL), s->v[h]);
}

DX_INLINE void dx_lanes_add(dx_lanes *s, const float *x)
{
    for (int h = 0; h < DX_NV; h++) s->v[h] = dx_vload(x + h * DX_VL) + s->v[h];
}

DX_INLINE float dx_dot16(const float *a, const float *b, ptrdiff_t n)
{
    dx_lanes s = dx_lanes_zero();
    ptrdiff_t i = 0;
    for (; i + 16 <= n; i += 16) dx_lanes_fma(&s, a + i, b + i);
    if (i < n) {
        float ta[16], tb[16];
        dx_pad16(ta, a + i, n - i, 1);
        dx_pad16(tb, b + i, n - i, 1);
        dx_lanes_fma(&s, ta, tb);
    }
    return dx_lanes_tree(s);
}

/* Strides count elements. */
DX_INLINE float dx_dot16_strided(const float *a, ptrdiff_t a_stride, const float *b, ptrdiff_t b_stride, ptrdiff_t n)
{
    dx_lanes s = dx_lanes_zero();
    float ta[16], tb[16];
    for (ptrdiff_t i = 0; i < n; i += 16) {
        ptrdiff_t left = n - i < 16 ? n - i : 16;
        dx_pad16(ta, a + i * a_stride, left, a_stride);
        dx_pad16(tb, b + i * b_stride, left, b_stride);
        dx_lanes_fma(&s, ta, tb);
    }
    return dx_lanes_tree(s);
}

DX_INLINE float dx_sum16(const float *x, ptrdiff_t n)
{
    dx_lanes s = dx_lanes_zero();
    ptrdiff_t i = 0;
    for (; i + 16 <= n; i += 16) dx_lanes_add(&s, x + i);
    if (i < n) {
        float t[16];
        dx_pad16(t, x + i, n - i, 1);
        dx_lanes_add(&s, t);
    }
    return dx_lanes_tree(s);
}

DX_INLINE float dx_sum16_strided(const float *x, ptrdiff_t stride, ptrdiff_t n)
{
    dx_lanes s = dx_lanes_zero();
    float t[16];
    for (ptrdiff_t i = 0; i < n; i += 16) {
        dx_pad16(t, x + i * stride, n - i < 16 ? n - i : 16, stride);
        dx_lanes_add(&s, t);
    }
    return dx_lanes_tree(s);
}

#endif
