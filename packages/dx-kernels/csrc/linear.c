/* Linear layers: a matrix product with what follows it done on every block of the output while it is in cache.
 *
 *   u = dot16(x[r], weight[o]) + bias[o]       y = activation(u) + residual       each step rounded by itself
 *   dx[r][i] = dot16 over o of dy * weight     dweight[o][i] = dot16 over rows of dy * x     dbias[o] = sum16 over rows */
#include "gemm_kernel.h"
#include "table.h"
#include "tanh_vectors.h"

typedef struct {
    const float *bias, *residual;
    float *pre, *saved;
    ptrdiff_t out; /* row stride of residual, pre and saved */
    int activation;
} after_job;

/* Rows of a block from tile to c; n is a constant where it can be (a whole panel), so that the loops unroll. */
DX_INLINE void finish_rows(const after_job *a, const float *tile, ptrdiff_t width, float *c, ptrdiff_t ldc,
                           ptrdiff_t at, ptrdiff_t m, const ptrdiff_t n)
{
    for (ptrdiff_t r = 0; r < m; r++, at += a->out) {
        if (a->residual) for (ptrdiff_t j = 0; j < n; j++) c[r * ldc + j] = tile[r * width + j] + a->residual[at + j];
        else memcpy(c + r * ldc, tile + r * width, sizeof(float) * (size_t)n);
    }
}

DX_INLINE void bias_rows(const after_job *a, float *tile, ptrdiff_t width, ptrdiff_t at, ptrdiff_t col, ptrdiff_t m,
                         const ptrdiff_t n)
{
    for (ptrdiff_t r = 0; r < m; r++, at += a->out) {
        float *t = tile + r * width;
        if (a->bias) for (ptrdiff_t j = 0; j < n; j++) t[j] = t[j] + a->bias[col + j];
        if (a->pre) memcpy(a->pre + at, t, sizeof(float) * (size_t)n);
    }
}

static void after(void *context, float *tile, ptrdiff_t width, float *c, ptrdiff_t ldc, ptrdiff_t row, ptrdiff_t col,
                  ptrdiff_t m, ptrdiff_t n)
{
    const after_job *a = context;
    const ptrdiff_t at = row * a->out + col, all = m * width;
    if (n == DX_GEMM_NR) bias_rows(a, tile, width, at, col, m, DX_GEMM_NR);
    else bias_rows(a, tile, width, at, col, m, n);
    switch (a->activation) {
    case DX_LINEAR_RELU:
        for (ptrdiff_t q = 0; q < all; q++) tile[q] = dx_relu(tile[q]);
        break;
    case DX_LINEAR_GELU_ERF:
        for (ptrdiff_t q = 0; q < all; q++) tile[q] = dx_gelu_erf(tile[q]);
        break;
    case DX_LINEAR_GELU_TANH:
        if (a->saved) {
            float terms[DX_GEMM_MR * DX_GEMM_NR];
            dx_gelu_tanh_all(all, tile, tile, terms);
            for (ptrdiff_t r = 0; r < m; r++)
                memcpy(a->saved + at + r * a->out, terms + r * width, sizeof(float) * (size_t)n);
        } else
            dx_gelu_tanh_all(all, tile, tile, NULL);
        break;
    default:
        break;
    }
    if (n == DX_GEMM_NR) finish_rows(a, tile, width, c, ldc, at, m, DX_GEMM_NR);
    else finish_rows(a, tile, width, c, ldc, at, m, n);
}

int DX_FN(linear_forward)(int degree, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, const float *x, ptrdiff_t ldx,
                          const float *weight, const float *packed, const float *bias, int activation,
                          const float *residual, float *pre, float *saved, float *y, ptrdiff_t ldy)
{
    after_job a = {bias, residual, pre, saved, out, activation};
    int something = bias || residual || pre || activation != DX_LINEAR_PLAIN;
    return DX_FN(gemm)(degree, 0, 1, rows, out, in, x, ldx, weight, in, packed, y, ldy,
                       something ? after : NULL, &a);
}

typedef struct { ptrdiff_t rows, out, lddy; const float *dy; float *dbias; } bias_job;

/* Blocks begin..end-1 of DX_VL columns: 16 row lanes, each a vector of columns. */
static void bias_sums(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const bias_job *a = context;
    (void)worker;
    for (ptrdiff_t j = begin * DX_VL; j < a->out && j < end * DX_VL; j += DX_VL) {
        const ptrdiff_t width = a->out - j < DX_VL ? a->out - j : DX_VL, padded = (a->rows + 15) / 16 * 16;
        dx_vf lane[16];
        for (int l = 0; l < 16; l++) lane[l] = (dx_vf){0};
        for (ptrdiff_t r = 0; r < padded; r++) {
            dx_vf v = {0};
            if (r < a->rows) {
                const float *row = a->dy + r * a->lddy + j;
                if (width == DX_VL) v = dx_vload(row);
                else for (ptrdiff_t c = 0; c < width; c++) v[c] = row[c];
            }
            lane[r & 15] = v + lane[r & 15];
        }
        for (int h = 8; h; h >>= 1)
            for (int l = 0; l < h; l++) lane[l] = lane[l] + lane[l + h];
        for (ptrdiff_t c = 0; c < width; c++) a->dbias[j + c] = lane[0][c];
    }
}

int DX_FN(linear_backward)(int degree, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, const float *dy, ptrdiff_t lddy,
                           const float *x, ptrdiff_t ldx, const float *weight, const float *packed, float *dx,
                           ptrdiff_t lddx, float *dweight, float *dbias)
{
    int status = DX_OK;
    if (dbias) {
        bias_job b = {rows, out, lddy, dy, dbias};
        const ptrdiff_t count = (out + DX_VL - 1) / DX_VL;
        dx_rt.parallel(bias_sums, &b, count, dx_grain(count, (double)(rows * DX_VL) / 4, degree), degree);
    }
    if (dweight)
        status = DX_FN(gemm)(degree, 1, 0, out, in, rows, dy, lddy, x, ldx, NULL, dweight, in, NULL, NULL);
    if (dx && status == DX_OK)
        status = DX_FN(gemm)(degree, 0, 0, rows, in, out, dy, lddy, weight, in, packed, dx, lddx, NULL, NULL);
    return status;
}
