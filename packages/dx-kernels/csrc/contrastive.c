/* Multi-positive contrastive loss in binary64, row by row:
 *
 *   z_j = s_j / temperature      m = largest admitted z     e_j = w_j * exp64(z_j - m)     A = sum of e_j, admitted j
 *   the same over the positives: m', e'_j, P                loss = (log64(A) - log64(P)) + (m - m')
 *   dscores_j = round((scale / denominator / temperature) * (e_j / A - e'_j / P))
 *
 * Sums run over ascending j from +0; where j is not positive e'_j / P is not subtracted, where it is not admitted
 * dscores is +0. Rows are independent; their losses are added in row order, from +0. */
#include <dx_numerics/math64.h>
#include "table.h"

typedef struct {
    ptrdiff_t columns;
    const float *scores;
    const unsigned char *positive, *admit;
    const double *weight;
    double temperature, factor, *losses, *scratch;
    float *dscores;
} job;

/* NaN elements may be passed over: they come back through the exponentials. */
static double largest(const double *z, ptrdiff_t n)
{
    double lane[8];
    ptrdiff_t j = 0;
    for (int l = 0; l < 8; l++) lane[l] = -__builtin_inf();
    for (; j + 8 <= n; j += 8)
        for (int l = 0; l < 8; l++) lane[l] = z[j + l] > lane[l] ? z[j + l] : lane[l];
    for (; j < n; j++) lane[0] = z[j] > lane[0] ? z[j] : lane[0];
    for (int l = 1; l < 8; l++) lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
}

/* e[j] := w_j * exp64(z_j - m) in place, 0 where not admitted; returns m and the sum of e. */
static double weigh(ptrdiff_t n, double *restrict e, const double *restrict weight, const unsigned char *restrict admit,
                    double *sum)
{
    const double m = largest(e, n);
    double total = 0.0;
    for (ptrdiff_t j = 0; j < n; j++) e[j] = dx_exp64(e[j] - m);
    if (weight) for (ptrdiff_t j = 0; j < n; j++) e[j] = weight[j] * e[j];
    if (admit) for (ptrdiff_t j = 0; j < n; j++) e[j] = admit[j] ? e[j] : 0.0;
    for (ptrdiff_t j = 0; j < n; j++) total = total + e[j];
    *sum = total;
    return m;
}

/* The positives of a row, gathered in order: their columns to at, their z to e, their weights to w. */
static ptrdiff_t gather(const job *a, ptrdiff_t r, const double *z, int32_t *at, double *e, double *w)
{
    const unsigned char *positive = a->positive + r * a->columns;
    ptrdiff_t count = 0;
    for (ptrdiff_t j = 0; j < a->columns; j++)
        if (positive[j]) at[count++] = (int32_t)j;
    for (ptrdiff_t i = 0; i < count; i++) {
        e[i] = z[at[i]];
        if (a->weight) w[i] = a->weight[r * a->columns + at[i]];
    }
    return count;
}

static void rows_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->columns;
    double *restrict e = a->scratch + worker * 4 * n, *restrict p = e + n, *restrict w = p + n;
    int32_t *at = (int32_t *)(w + n);
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *restrict s = a->scores + r * n;
        const unsigned char *restrict admit = a->admit ? a->admit + r * n : NULL;
        double all, of_positives;
        for (ptrdiff_t j = 0; j < n; j++) e[j] = (double)s[j] / a->temperature;
        const ptrdiff_t count = gather(a, r, e, at, p, w);
        if (admit) for (ptrdiff_t j = 0; j < n; j++) e[j] = admit[j] ? e[j] : -__builtin_inf();
        const double m = weigh(n, e, a->weight ? a->weight + r * n : NULL, admit, &all);
        const double mp = weigh(count, p, a->weight ? w : NULL, NULL, &of_positives);
        a->losses[r] = (dx_log64(all) - dx_log64(of_positives)) + (m - mp);
        if (a->dscores) {
            float *restrict out = a->dscores + r * n;
            for (ptrdiff_t j = 0; j < n; j++) e[j] = e[j] / all;
            for (ptrdiff_t i = 0; i < count; i++) e[at[i]] = e[at[i]] - p[i] / of_positives;
            for (ptrdiff_t j = 0; j < n; j++) out[j] = (float)(a->factor * e[j]);
            if (admit) for (ptrdiff_t j = 0; j < n; j++) out[j] = admit[j] ? out[j] : 0.0f;
        }
    }
}

int DX_FN(contrastive)(int degree, ptrdiff_t rows, ptrdiff_t columns, const float *scores, const unsigned char *positive,
                       const unsigned char *admit, const double *weight, double temperature, double scale,
                       double denominator, double *losses, double *numerator, float *dscores)
{
    dx_mark mark = dx_scratch_mark();
    double *scratch = dx_scratch(sizeof(double) * (size_t)(4 * degree * columns + rows));
    if (!scratch) return DX_NO_MEMORY;
    job a = {.columns = columns, .scores = scores, .positive = positive, .admit = admit, .weight = weight,
             .temperature = temperature, .factor = scale / denominator / temperature,
             .losses = losses ? losses : scratch + 4 * degree * columns, .scratch = scratch, .dscores = dscores};
    dx_rt.parallel(rows_task, &a, rows, dx_grain(rows, 12.0 * (double)columns, degree), degree);
    *numerator = 0.0;
    for (ptrdiff_t r = 0; r < rows; r++) *numerator = *numerator + a.losses[r];
    dx_scratch_release(mark);
    return DX_OK;
}
