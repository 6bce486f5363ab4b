/* Linear layers: a matrix product with what follows it done on every block of the output while it is in cache.
 *
 *   u = dot16(x[r], weight[o]) + bias[o]       y = activation(u) + residual       each step rounded by itself
 *   dx[r][i] = dot16 over o of dy * weight     dweight[o][i] = dot16 over rows of dy * x     dbias[o] = sum16 over rows
 *
 * A gradient that is added to one that is there is finished first, then added: one more rounding, as if by itself. */
#include "gemm_kernel.h"
#include "table.h"
#include "tanh_vectors.h"

typedef struct {
    const float *bias, *residual;
    float *pre, *saved;
    ptrdiff_t out; /* row stride of residual, pre and saved */
    int activation;
} after_job;

/* A block of whole panels in one pass: tile to c, and to pre and saved. */
DX_INLINE void finish_panel(const after_job *a, const float *tile, float *c, ptrdiff_t ldc, ptrdiff_t at,
                            ptrdiff_t col, ptrdiff_t m)
{
    dx_vf bias[DX_GEMM_NV];
    for (int j = 0; j < DX_GEMM_NV; j++) bias[j] = a->bias ? dx_vload(a->bias + col + j * DX_VL) : (dx_vf){0};
    for (ptrdiff_t r = 0; r < m; r++, tile += DX_GEMM_NR, c += ldc, at += a->out) {
        DX_UNROLL(4)
        for (int j = 0; j < DX_GEMM_NV; j++) {
            dx_vf v = dx_vload(tile + j * DX_VL);
            if (a->bias) v = v + bias[j];
            if (a->pre) dx_vstore(a->pre + at + j * DX_VL, v);
            if (a->activation == DX_LINEAR_RELU) v = dx_vselect(v < (dx_vf){0}, (dx_vf){0}, v + (dx_vf){0});
            if (a->residual) v = v + dx_vload(a->residual + at + j * DX_VL);
            dx_vstore(c + j * DX_VL, v);
        }
    }
}

#if DX_VL >= 8
/* The same with the tanh form of GELU: rows rows at a time, as many vectors as the tanh takes. */
DX_INLINE void gelu_panel(const int rows, const after_job *a, const float *tile, float *c, ptrdiff_t ldc, ptrdiff_t at,
                          ptrdiff_t col)
{
    dx_vf v[DX_TANH_VECTORS], terms[DX_TANH_VECTORS];
    DX_UNROLL(4)
    for (int i = 0; i < rows * DX_GEMM_NV; i++) {
        const ptrdiff_t j = i % DX_GEMM_NV * DX_VL;
        v[i] = dx_vload(tile + i * DX_VL);
        if (a->bias) v[i] = v[i] + dx_vload(a->bias + col + j);
        if (a->pre) dx_vstore(a->pre + at + i / DX_GEMM_NV * a->out + j, v[i]);
    }
    dx_gelu_tanh_of(rows * DX_GEMM_NV, v, v, terms);
    DX_UNROLL(4)
    for (int i = 0; i < rows * DX_GEMM_NV; i++) {
        const ptrdiff_t r = i / DX_GEMM_NV, j = i % DX_GEMM_NV * DX_VL;
        if (a->saved) dx_vstore(a->saved + at + r * a->out + j, terms[i]);
        if (a->residual) v[i] = v[i] + dx_vload(a->residual + at + r * a->out + j);
        dx_vstore(c + r * ldc + j, v[i]);
    }
}

static void gelu_panels(const after_job *a, const float *tile, float *c, ptrdiff_t ldc, ptrdiff_t at, ptrdiff_t col,
                        ptrdiff_t m)
{
    enum { ROWS = DX_TANH_VECTORS / DX_GEMM_NV };
    ptrdiff_t r = 0;
    for (; r + ROWS <= m; r += ROWS)
        gelu_panel(ROWS, a, tile + r * DX_GEMM_NR, c + r * ldc, ldc, at + r * a->out, col);
    for (; r < m; r++) gelu_panel(1, a, tile + r * DX_GEMM_NR, c + r * ldc, ldc, at + r * a->out, col);
}
#endif

/* Rows of a ragged block, or of one with a slower activation, step by step. */
static void finish_rows(const after_job *a, const float *tile, ptrdiff_t width, float *c, ptrdiff_t ldc, ptrdiff_t at,
                        ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t r = 0; r < m; r++, at += a->out) {
        if (a->residual) for (ptrdiff_t j = 0; j < n; j++) c[r * ldc + j] = tile[r * width + j] + a->residual[at + j];
        else memcpy(c + r * ldc, tile + r * width, sizeof(float) * (size_t)n);
    }
}

static void bias_rows(const after_job *a, float *tile, ptrdiff_t width, ptrdiff_t at, ptrdiff_t col, ptrdiff_t m,
                      ptrdiff_t n)
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
    if (n == DX_GEMM_NR) {
        if (a->activation == DX_LINEAR_PLAIN || a->activation == DX_LINEAR_RELU) {
            finish_panel(a, tile, c, ldc, at, col, m);
            return;
        }
#if DX_VL >= 8
        if (a->activation == DX_LINEAR_GELU_TANH) {
            gelu_panels(a, tile, c, ldc, at, col, m);
            return;
        }
#endif
    }
    bias_rows(a, tile, width, at, col, m, n);
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
    finish_rows(a, tile, width, c, ldc, at, m, n);
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

typedef struct { ptrdiff_t rows, out, lddy; int add; const float *dy; float *dbias; } bias_job;

#define SUM_VECTORS 4 /* vectors of columns summed at once: whole cache lines, next to each other */

/* Columns j.. of vectors vectors (the last may be cut at the end): 16 row lanes, each some vectors of columns. */
DX_INLINE void bias_columns(const bias_job *a, ptrdiff_t j, const int vectors)
{
    dx_vf lane[16][SUM_VECTORS];
    const ptrdiff_t left = a->out - j, padded = (a->rows + 15) / 16 * 16;
    for (int l = 0; l < 16; l++)
        for (int v = 0; v < vectors; v++) lane[l][v] = (dx_vf){0};
    for (ptrdiff_t r = 0; r < padded; r++) {
        const float *row = a->dy + r * a->lddy + j;
        dx_vf *to = lane[r & 15];
        if (r < a->rows && left >= vectors * DX_VL) {
            DX_UNROLL(4)
            for (int v = 0; v < vectors; v++) to[v] = dx_vload(row + v * DX_VL) + to[v];
        } else { /* a cut vector, or the padding of the last chunk */
            dx_vf x = {0};
            for (ptrdiff_t c = 0; r < a->rows && c < left; c++) x[c] = row[c];
            for (int v = 0; v < vectors; v++) to[v] = x + to[v];
        }
    }
    for (int h = 8; h; h >>= 1)
        for (int l = 0; l < h; l++)
            for (int v = 0; v < vectors; v++) lane[l][v] = lane[l][v] + lane[l + h][v];
    for (ptrdiff_t c = 0; c < vectors * DX_VL && c < left; c++) {
        const float sum = lane[0][c / DX_VL][c % DX_VL];
        a->dbias[j + c] = a->add ? a->dbias[j + c] + sum : sum;
    }
}

/* Blocks begin..end-1 of SUM_VECTORS vectors of columns. */
static void bias_sums(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const bias_job *a = context;
    const ptrdiff_t width = SUM_VECTORS * DX_VL, stop = end * width < a->out ? end * width : a->out;
    ptrdiff_t j = begin * width;
    (void)worker;
    for (; j + width <= stop; j += width) bias_columns(a, j, SUM_VECTORS);
    for (; j < stop; j += DX_VL) bias_columns(a, j, 1);
}

/* Epilogue: the block is added to what C holds. */
static void add_block(void *context, float *tile, ptrdiff_t width, float *c, ptrdiff_t ldc, ptrdiff_t row, ptrdiff_t col,
                      ptrdiff_t m, ptrdiff_t n)
{
    (void)context; (void)row; (void)col;
    for (ptrdiff_t r = 0; r < m; r++, tile += width, c += ldc)
        if (n == DX_GEMM_NR)
            for (int j = 0; j < DX_GEMM_NR; j += DX_VL) dx_vstore(c + j, dx_vload(c + j) + dx_vload(tile + j));
        else for (ptrdiff_t j = 0; j < n; j++) c[j] = c[j] + tile[j];
}

int DX_FN(linear_backward)(int degree, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, const float *dy, ptrdiff_t lddy,
                           const float *x, ptrdiff_t ldx, const float *weight, const float *packed, float *dx,
                           ptrdiff_t lddx, int add, float *dweight, float *dbias)
{
    int status = DX_OK;
    if (dbias) {
        bias_job b = {rows, out, lddy, add, dy, dbias};
        const ptrdiff_t width = SUM_VECTORS * DX_VL, count = (out + width - 1) / width;
        dx_rt.parallel(bias_sums, &b, count, dx_grain(count, (double)(rows * width) / 4, degree), degree);
    }
    if (dweight)
        status = DX_FN(gemm)(degree, 1, 0, out, in, rows, dy, lddy, x, ldx, NULL, dweight, in,
                             add ? add_block : NULL, NULL);
    if (dx && status == DX_OK)
        status = DX_FN(gemm)(degree, 0, 0, rows, in, out, dy, lddy, weight, in, packed, dx, lddx, NULL, NULL);
    return status;
}
