/* Layer normalisation, forward and backward (seed 000 "Backward kernels").
 *
 *   mean = sum16(x) / d      c = x - mean      var = dot16(c, c) / d      inv = 1 / sqrt(var + eps)
 *   xhat = c * inv           y = xhat * weight + bias
 *   g = dy * weight          dx = inv * ((g - sum16(g) / d) - xhat * (dot16(g, xhat) / d))
 *   dweight[j] = sum16 over rows of round(dy * xhat)            dbias[j] = sum16 over rows of dy
 *
 * Two passes over the centred row: no cancellation for rows with a large mean. */
#include <dx_numerics/dot.h>
#include "table.h"

typedef struct {
    ptrdiff_t rows, d;
    const float *x, *weight, *bias, *dy, *xhat_in, *inv_in;
    float eps, *y, *xhat, *inv, *dx, *dweight, *dbias, *scratch;
} job;

static void forward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    const float *weight = a->weight, *bias = a->bias;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = a->x + r * d;
        float *y = a->y + r * d;
        float *xhat = a->xhat ? a->xhat + r * d : a->scratch + worker * d;
        float mean = dx_sum16(x, d) / (float)d;
        for (ptrdiff_t j = 0; j < d; j++) xhat[j] = x[j] - mean;
        float variance = dx_dot16(xhat, xhat, d) / (float)d;
        float inv = 1.0f / __builtin_sqrtf(variance + a->eps);
        if (a->inv) a->inv[r] = inv;
        for (ptrdiff_t j = 0; j < d; j++) xhat[j] = xhat[j] * inv;
        if (weight && bias) for (ptrdiff_t j = 0; j < d; j++) y[j] = xhat[j] * weight[j] + bias[j];
        else if (weight) for (ptrdiff_t j = 0; j < d; j++) y[j] = xhat[j] * weight[j];
        else if (bias) for (ptrdiff_t j = 0; j < d; j++) y[j] = xhat[j] + bias[j];
        else for (ptrdiff_t j = 0; j < d; j++) y[j] = xhat[j];
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

static void backward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    float *g = a->scratch + worker * d;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *dy = a->dy + r * d, *xhat = a->xhat_in + r * d;
        float *dx = a->dx + r * d, inv = a->inv_in[r];
        for (ptrdiff_t j = 0; j < d; j++) g[j] = a->weight ? dy[j] * a->weight[j] : dy[j];
        float mean_g = dx_sum16(g, d) / (float)d;
        float mean_gx = dx_dot16(g, xhat, d) / (float)d;
        for (ptrdiff_t j = 0; j < d; j++) dx[j] = inv * ((g[j] - mean_g) - xhat[j] * mean_gx);
    }
}

/* Columns begin..end-1 (blocks of DX_VL columns) of the two column sums: 16 row lanes, each a vector of columns. */
static void column_sums(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t block = begin; block < end; block++) {
        ptrdiff_t j0 = block * DX_VL, width = a->d - j0 < DX_VL ? a->d - j0 : DX_VL;
        dx_vf w[16], b[16];
        for (int l = 0; l < 16; l++) w[l] = b[l] = (dx_vf){0};
        ptrdiff_t padded = (a->rows + 15) / 16 * 16;
        for (ptrdiff_t r = 0; r < padded; r++) {
            dx_vf dy = {0}, xhat = {0};
            if (r < a->rows) {
                const float *pd = a->dy + r * a->d + j0, *px = a->xhat_in + r * a->d + j0;
                if (width == DX_VL) { dy = dx_vload(pd); xhat = dx_vload(px); }
                else for (ptrdiff_t c = 0; c < width; c++) { dy[c] = pd[c]; xhat[c] = px[c]; }
            }
            w[r & 15] += dy * xhat;
            b[r & 15] += dy;
        }
        for (int h = 8; h; h >>= 1)
            for (int l = 0; l < h; l++) { w[l] += w[l + h]; b[l] += b[l + h]; }
        for (ptrdiff_t c = 0; c < width; c++) {
            if (a->dweight) a->dweight[j0 + c] = w[0][c];
            if (a->dbias) a->dbias[j0 + c] = b[0][c];
        }
    }
}

int DX_FN(layer_norm_backward)(int degree, ptrdiff_t rows, ptrdiff_t d, const float *dy, const float *xhat,
                               const float *inv, const float *weight, float *dx, float *dweight, float *dbias)
{
    job a = {.rows = rows, .d = d, .dy = dy, .xhat_in = xhat, .inv_in = inv, .weight = weight, .dx = dx,
             .dweight = dweight, .dbias = dbias};
    dx_mark mark = dx_scratch_mark();
    if (dx) {
        if (!(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * d)))) return DX_NO_MEMORY;
        dx_rt.parallel(backward_rows, &a, rows, dx_grain(rows, 8.0 * (double)d, degree), degree);
    }
    ptrdiff_t blocks = (d + DX_VL - 1) / DX_VL;
    if (dweight || dbias)
        dx_rt.parallel(column_sums, &a, blocks, dx_grain(blocks, 4.0 * DX_VL * (double)rows, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}
