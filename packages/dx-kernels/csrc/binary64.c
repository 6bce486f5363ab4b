/* Binary64 softmax and sums of products, for fitting and applying calibrators (docs/readout.md, "Calibration").
 *
 *   m = largest z     e_j = exp64(z_j - m)     S = e_0 + e_1 + … from +0     p_j = e_j / S     log_sum = log64(S) + m
 *   s[i][j] = sum over r of a[r][i] * b[r][j], ascending from +0, product and sum rounded one by one */
#include <dx_numerics/math64.h>
#include "table.h"

typedef struct {
    ptrdiff_t rows, n, m;
    const double *a, *b;
    double *out, *log_sum;
} job;

static void softmax_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->n;
    (void)worker;
    for (ptrdiff_t r = begin; r < end; r++) {
        const double *z = a->a + r * n;
        double *p = a->out + r * n, m = -__builtin_inf(), sum = 0.0;
        for (ptrdiff_t j = 0; j < n; j++) m = z[j] > m ? z[j] : m;
        for (ptrdiff_t j = 0; j < n; j++) p[j] = dx_exp64(z[j] - m);
        for (ptrdiff_t j = 0; j < n; j++) sum = sum + p[j];
        for (ptrdiff_t j = 0; j < n; j++) p[j] = p[j] / sum;
        a->log_sum[r] = dx_log64(sum) + m;
    }
}

int DX_FN(softmax64)(int degree, ptrdiff_t rows, ptrdiff_t n, const double *z, double *p, double *log_sum)
{
    job a = {.n = n, .a = z, .out = p, .log_sum = log_sum};
    dx_rt.parallel(softmax_rows, &a, rows, dx_grain(rows, 8.0 * (double)n, degree), degree);
    return DX_OK;
}

static void product_columns(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t m = a->m;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        double *restrict out = a->out + i * m;
        for (ptrdiff_t j = 0; j < m; j++) out[j] = 0.0;
        for (ptrdiff_t r = 0; r < a->rows; r++) {
            const double by = a->a[r * a->n + i], *restrict b = a->b + r * m;
            for (ptrdiff_t j = 0; j < m; j++) out[j] = out[j] + by * b[j];
        }
    }
}

int DX_FN(products64)(int degree, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t m, const double *a, const double *b, double *s)
{
    job x = {.rows = rows, .n = n, .m = m, .a = a, .b = b, .out = s};
    dx_rt.parallel(product_columns, &x, n, dx_grain(n, (double)rows * (double)m, degree), degree);
    return DX_OK;
}
