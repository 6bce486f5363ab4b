/* Layer normalisation, forward and backward (seed 000 "Backward kernels").
 *
 *   b = x - sum16(x) / d     c = b - sum16(b) / d     var = dot16(c, c) / d      inv = 1 / sqrt(var + eps)
 *   xhat = c * inv           y = xhat * weight + bias
 *   g = dy * weight          dx = inv * ((g - sum16(g) / d) - xhat * (dot16(g, xhat) / d))
 *   dweight[j] = sum16 over rows of round(dy * xhat)            dbias[j] = sum16 over rows of dy
 *
 * Centred twice: the second mean takes away the rounding of the first, so the error does not grow with the row's mean
 * and a row of one repeated value is exactly zero; the variance is that of the centred row and cannot cancel. */
#include <dx_numerics/dot.h>
#include "table.h"

#define COLUMN_VECTORS 4

typedef struct {
    ptrdiff_t rows, d;
    const float *x, *weight, *bias, *dy, *xhat_in, *inv_in;
    float eps, *y, *xhat, *inv, *dx, *dweight, *dbias, *scratch;
    int add;
} job;

/* out = x - shift; returns sum16(out), or dot16(out, out). One pass, the operations of the dot unchanged. */
DX_INLINE float shifted(const int squared, const float *x, float shift, ptrdiff_t d, float *out)
{
    const dx_vf by = dx_vset(shift);
    dx_lanes s = dx_lanes_zero();
    ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (int h = 0; h < DX_NV; h++) {
            dx_vf v = dx_vload(x + j + h * DX_VL) - by;
            dx_vstore(out + j + h * DX_VL, v);
            s.v[h] = squared ? dx_vfma(v, v, s.v[h]) : v + s.v[h];
        }
    if (j < d) {
        float t[16] = {0};
        for (ptrdiff_t l = 0; l < d - j; l++) out[j + l] = t[l] = x[j + l] - shift;
        if (squared) dx_lanes_fma(&s, t, t);
        else dx_lanes_add(&s, t);
    }
    return dx_lanes_tree(s);
}

static void forward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    const float *weight = a->weight, *bias = a->bias;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = a->x + r * d;
        float *y = a->y + r * d;
        float *restrict xhat = a->xhat ? a->xhat + r * d : a->scratch + worker * d;
        float mean = dx_sum16(x, d) / (float)d;
        float rest = shifted(0, x, mean, d, xhat) / (float)d;
        float variance = shifted(1, xhat, rest, d, xhat) / (float)d;
        float inv = 1.0f / __builtin_sqrtf(variance + a->eps);
        if (a->inv) a->inv[r] = inv;
        if (weight && bias)
            for (ptrdiff_t j = 0; j < d; j++) {
                xhat[j] = xhat[j] * inv;
                y[j] = xhat[j] * weight[j] + bias[j];
            }
        else
            for (ptrdiff_t j = 0; j < d; j++) {
                xhat[j] = xhat[j] * inv;
                float v = weight ? xhat[j] * weight[j] : xhat[j];
                y[j] = bias ? v + bias[j] : v;
            }
    }
}

int DX_FN(layer_norm_forward)(int degree, ptrdiff_t rows, ptrdiff_t d, const float *x, const float *weight,
                              const float *bias, float eps, float *y, float *xhat, float *inv)
{
    job a = {.rows = rows, .d = d, .x = x, .weight = weight, .bias = bias, .eps = eps, .y = y, .xhat = xhat, .inv = inv};
    dx_mark mark = dx_scratch_mark();
    if (!xhat && !(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * d)))) return DX_NO_MEMORY;
    dx_rt.parallel(forward_rows, &a, rows, dx_grain(rows, 4.0 * (double)d, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* g = dy * weight; returns sum16(g) and sets *dot to dot16(g, xhat), in one pass. */
DX_INLINE float gradient_dots(const float *dy, const float *weight, const float *xhat, ptrdiff_t d, float *g, float *dot)
{
    dx_lanes sum = dx_lanes_zero(), product = dx_lanes_zero();
    ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (ptrdiff_t i = j; i < j + 16; i += DX_VL) {
            const int h = (int)(i - j) / DX_VL;
            dx_vf v = dx_vload(dy + i);
            if (weight) v = v * dx_vload(weight + i);
            dx_vstore(g + i, v);
            sum.v[h] = v + sum.v[h];
            product.v[h] = dx_vfma(v, dx_vload(xhat + i), product.v[h]);
        }
    if (j < d) {
        float tg[16] = {0}, tx[16] = {0};
        for (ptrdiff_t l = 0; l < d - j; l++) {
            g[j + l] = tg[l] = weight ? dy[j + l] * weight[j + l] : dy[j + l];
            tx[l] = xhat[j + l];
        }
        dx_lanes_add(&sum, tg);
        dx_lanes_fma(&product, tg, tx);
    }
    *dot = dx_lanes_tree(product);
    return dx_lanes_tree(sum);
}

static void backward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    float *g = a->scratch + worker * d;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *dy = a->dy + r * d, *xhat = a->xhat_in + r * d;
        float *dx = a->dx + r * d, inv = a->inv_in[r];
        float dot, mean_g = gradient_dots(dy, a->weight, xhat, d, g, &dot) / (float)d, mean_gx = dot / (float)d;
        for (ptrdiff_t j = 0; j < d; j++) dx[j] = inv * ((g[j] - mean_g) - xhat[j] * mean_gx);
    }
}

/* The two column sums of vectors vectors of columns from j0 on (the last may be cut at d): 16 row lanes in cache. */
DX_INLINE void column_block(const job *a, ptrdiff_t j0, const int vectors)
{
    dx_vf w[16][COLUMN_VECTORS], b[16][COLUMN_VECTORS];
    const ptrdiff_t left = a->d - j0, padded = (a->rows + 15) / 16 * 16;
    for (int l = 0; l < 16; l++)
        for (int v = 0; v < vectors; v++) w[l][v] = b[l][v] = (dx_vf){0};
    for (ptrdiff_t r = 0; r < padded; r++) {
        const float *dy = a->dy + r * a->d + j0, *xhat = a->xhat_in + r * a->d + j0;
        dx_vf *restrict wl = w[r & 15], *restrict bl = b[r & 15];
        if (r < a->rows && left >= vectors * DX_VL) {
            DX_UNROLL(8)
            for (int v = 0; v < vectors; v++) {
                dx_vf g = dx_vload(dy + v * DX_VL);
                wl[v] += g * dx_vload(xhat + v * DX_VL);
                bl[v] += g;
            }
        } else { /* a cut vector, or the padding of the last chunk */
            dx_vf g = {0}, x = {0};
            for (ptrdiff_t c = 0; r < a->rows && c < left; c++) { g[c] = dy[c]; x[c] = xhat[c]; }
            for (int v = 0; v < vectors; v++) { wl[v] += g * x; bl[v] += g; }
        }
    }
    for (int h = 8; h; h >>= 1)
        for (int l = 0; l < h; l++)
            for (int v = 0; v < vectors; v++) { w[l][v] += w[l + h][v]; b[l][v] += b[l + h][v]; }
    for (ptrdiff_t c = 0; c < vectors * DX_VL && c < left; c++) {
        const float dw = w[0][c / DX_VL][c % DX_VL], db = b[0][c / DX_VL][c % DX_VL];
        if (a->dweight) a->dweight[j0 + c] = a->add ? a->dweight[j0 + c] + dw : dw;
        if (a->dbias) a->dbias[j0 + c] = a->add ? a->dbias[j0 + c] + db : db;
    }
}

static void column_sums(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t width = COLUMN_VECTORS * DX_VL;
    (void)worker;
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t j = block * width;
        if (a->d - j >= width) column_block(a, j, COLUMN_VECTORS);
        else for (; j < a->d; j += DX_VL) column_block(a, j, 1);
    }
}

int DX_FN(layer_norm_backward)(int degree, ptrdiff_t rows, ptrdiff_t d, const float *dy, const float *xhat,
                               const float *inv, const float *weight, float *dx, int add, float *dweight,
                               float *dbias)
{
    job a = {.rows = rows, .d = d, .dy = dy, .xhat_in = xhat, .inv_in = inv, .weight = weight, .dx = dx,
             .dweight = dweight, .dbias = dbias, .add = add};
    dx_mark mark = dx_scratch_mark();
    if (dx && !(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * d)))) return DX_NO_MEMORY;
    ptrdiff_t width = COLUMN_VECTORS * DX_VL, blocks = (d + width - 1) / width;
    if (dweight || dbias) /* before dx, which may be dy */
        dx_rt.parallel(column_sums, &a, blocks, dx_grain(blocks, 4.0 * (double)(width * rows), degree), degree);
    if (dx) dx_rt.parallel(backward_rows, &a, rows, dx_grain(rows, 8.0 * (double)d, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}
