/* Softmax of one row and its adjoint, shared by softmax.c and attention.c (so that the fused attention has the bits
 * of the separate operations).
 *
 *   s = raw / scale + bias        m = maximum of the admitted s       e = exp32(s - m)       p = e / sum16(e)
 *                                 e := +0 where exp32 is below 2^-126                        p := +0 below 2^-126
 *   ds = p * (dp - dot16(p, dp))  draw = ds / scale                   dbias = ds
 *
 * A column that is not admitted has s = -inf, so e = +0: exactly neutral in the sum. Maximum, exponential, sum and
 * division are four loops: interleaving them costs more than the loads from the first-level cache. */
#ifndef DX_SOFTMAX_ROW_H
#define DX_SOFTMAX_ROW_H

#include <dx_numerics/dot.h>
#include <dx_numerics/math32.h>

#define DX_SMALLEST_NORMAL 0x1p-126f
#define DX_LEAST_EXPONENT -0x1.5d589ep+6f /* the least x with exp32(x) >= 2^-126 */

DX_INLINE ptrdiff_t dx_round16(ptrdiff_t n) { return (n + 15) & ~(ptrdiff_t)15; }

/* s[0..n) = raw / scale + bias, -inf where the mask does not admit, and -inf up to the next multiple of 16.
 * raw may be s. bias and mask may be NULL. */
DX_INLINE void dx_scores_row(ptrdiff_t n, const float *raw, float scale, const float *bias, const unsigned char *mask,
                             float *s)
{
    const float minus_infinity = -__builtin_inff();
    const dx_vf divisor = dx_vset(scale);
    ptrdiff_t j = 0;
    for (; j + DX_VL <= n; j += DX_VL) {
        dx_vf v = dx_vload(raw + j);
        if (scale != 1.0f) v = v / divisor;
        if (bias) v = v + dx_vload(bias + j);
        dx_vstore(s + j, v);
    }
    for (; j < n; j++) {
        float v = raw[j] / scale;
        s[j] = bias ? v + bias[j] : v;
    }
    if (mask) for (j = 0; j < n; j++) s[j] = mask[j] ? s[j] : minus_infinity;
    for (j = n; j < dx_round16(n); j++) s[j] = minus_infinity;
}

DX_INLINE dx_vf dx_vlarger(dx_vf a, dx_vf b) { return dx_vselect(a > b, a, b); }

/* The largest of n values (a multiple of 16), NaN passed over; -inf when there is none. Which of +0 and -0 comes out
 * does not matter: exp32(+0) and exp32(-0) are both 1. */
DX_INLINE float dx_maximum_row(ptrdiff_t n, const float *s)
{
    dx_vf m[2 * DX_NV]; /* two sets of 16 lanes: one waits for its comparison while the other goes on */
    for (int h = 0; h < 2 * DX_NV; h++) m[h] = dx_vset(-__builtin_inff());
    ptrdiff_t j = 0;
    for (; j + 32 <= n; j += 32)
        for (int h = 0; h < 2 * DX_NV; h++) m[h] = dx_vlarger(dx_vload(s + j + h * DX_VL), m[h]);
    for (int h = 0; j < n && h < DX_NV; h++) m[h] = dx_vlarger(dx_vload(s + j + h * DX_VL), m[h]);
    for (int width = DX_NV; width; width >>= 1)
        for (int h = 0; h < width; h++) m[h] = dx_vlarger(m[h + width], m[h]);
    dx_vf v = m[0];
#if DX_VL >= 16
    v = dx_vlarger(DX_VSWAP(v, 8), v);
#endif
#if DX_VL >= 8
    v = dx_vlarger(DX_VSWAP(v, 4), v);
#endif
    v = dx_vlarger(DX_VSWAP(v, 2), v);
    v = dx_vlarger(DX_VSWAP(v, 1), v);
    return v[0];
}

/* exp32 for DX_LEAST_EXPONENT <= x <= 0 and NaN, where one exact scaling by 2^n takes the place of exp32's selects;
 * any other value for smaller x. */
DX_INLINE float dx_exp32_below_one(float x)
{
    dx_exp32_parts p = dx_split_exp32(x);
    return p.y * dx_float_of_bits((p.t + 127u) << 23);
}

/* Divides a row of exponentials by their total: p[0..count). */
DX_INLINE void dx_divide_row(ptrdiff_t count, const float *e, float total, float *p)
{
    const dx_vf divisor = dx_vset(total), smallest = dx_vset(DX_SMALLEST_NORMAL);
    ptrdiff_t j = 0;
    for (; j + DX_VL <= count; j += DX_VL) {
        dx_vf v = dx_vload(e + j) / divisor;
        dx_vstore(p + j, dx_vselect(v < smallest, (dx_vf){0}, v));
    }
    for (; j < count; j++) {
        float v = e[j] / total;
        p[j] = v < DX_SMALLEST_NORMAL ? 0.0f : v;
    }
}

/* A block of rows. Row r has n columns at raw + r * raw_stride and so on (bias, mask, limits may be NULL; a stride
 * may be 0), admits columns below limits[r], and leaves its probabilities, +0 elsewhere, at p + r * p_stride. s is
 * scratch of DX_SOFTMAX_ROWS rows of s_stride floats, at least n rounded up to 16. raw may be s; p may be s, and then
 * all of the rounded row is written, zeros at its end. */
typedef struct {
    ptrdiff_t n, raw_stride, bias_stride, mask_stride, s_stride, p_stride;
    const float *raw, *bias;
    const unsigned char *mask;
    const int32_t *limits;
    float scale, *s, *p;
} dx_softmax_block;

#define DX_SOFTMAX_ROWS 8

/* Each step runs over all rows of the block, so that short rows do not wait for one another's results. */
DX_INLINE void dx_softmax_rows(const dx_softmax_block *a, ptrdiff_t rows)
{
    const float minus_infinity = -__builtin_inff();
    const ptrdiff_t count = a->p == a->s ? dx_round16(a->n) : a->n;
    float maximum[DX_SOFTMAX_ROWS], total[DX_SOFTMAX_ROWS];
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t limit = a->limits ? a->limits[r] : a->n;
        float *s = a->s + r * a->s_stride;
        dx_scores_row(limit, a->raw + r * a->raw_stride, a->scale, a->bias ? a->bias + r * a->bias_stride : NULL,
                      a->mask ? a->mask + r * a->mask_stride : NULL, s);
        maximum[r] = dx_maximum_row(dx_round16(limit), s);
        if (maximum[r] == minus_infinity) { /* nothing admitted (then subtract 0: e is +0), unless there is a NaN */
            int nan = 0;
            for (ptrdiff_t j = 0; j < limit; j++) nan |= s[j] != s[j];
            if (!nan) maximum[r] = 0.0f;
        }
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        float *s = a->s + r * a->s_stride, m = maximum[r];
        const ptrdiff_t padded = dx_round16(a->limits ? a->limits[r] : a->n);
        for (ptrdiff_t j = 0; j < padded; j++) {
            float x = s[j] - m, e = dx_exp32_below_one(x);
            s[j] = x < DX_LEAST_EXPONENT ? 0.0f : e;
        }
    }
    for (ptrdiff_t r = 0; r < rows; r++)
        total[r] = dx_sum16(a->s + r * a->s_stride, dx_round16(a->limits ? a->limits[r] : a->n));
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t limit = a->limits ? a->limits[r] : a->n, padded = dx_round16(limit);
        const unsigned char *mask = a->mask ? a->mask + r * a->mask_stride : NULL;
        float *p = a->p + r * a->p_stride;
        ptrdiff_t j = padded < count ? padded : count;
        if (total[r] > 0.0f) dx_divide_row(j, a->s + r * a->s_stride, total[r], p);
        else if (total[r] != total[r]) /* NaN goes to every admitted column, and to no other */
            for (ptrdiff_t i = 0; i < j; i++) p[i] = i < limit && (!mask || mask[i]) ? total[r] : 0.0f;
        else j = 0;
        for (; j < count; j++) p[j] = 0.0f;
    }
}

/* draw and dbias may be NULL; draw may be dp, dbias may be dp when draw is not. */
DX_INLINE void dx_softmax_backward_row(ptrdiff_t n, const float *p, const float *dp, float scale, float *draw,
                                       float *dbias)
{
    const float inner = dx_dot16(p, dp, n);
    const dx_vf inner_v = dx_vset(inner), divisor = dx_vset(scale);
    ptrdiff_t j = 0;
    for (; j + DX_VL <= n; j += DX_VL) {
        dx_vf ds = dx_vload(p + j) * (dx_vload(dp + j) - inner_v);
        if (dbias) dx_vstore(dbias + j, ds);
        if (draw) dx_vstore(draw + j, scale != 1.0f ? ds / divisor : ds);
    }
    for (; j < n; j++) {
        float ds = p[j] * (dp[j] - inner);
        if (dbias) dbias[j] = ds;
        if (draw) draw[j] = ds / scale;
    }
}

/* out = x / scale. */
DX_INLINE void dx_scale_row(ptrdiff_t n, const float *x, float scale, float *out)
{
    for (ptrdiff_t j = 0; j < n; j++) out[j] = x[j] / scale;
}

#endif
