/* Weighted cross-entropy in binary64 (seed 000 "Losses"), row by row:
 *
 *   m = largest admitted logit      e_j = exp64(z_j - m)      S = e_0 + e_1 + … (ascending, from +0)
 *   nll = log64(S) - (z_t - m)      loss = w[t] * nll
 *   dlogits_j = round(((scale * w[t]) / denominator) * (e_j / S - (j == t)))
 *
 * A column that is not admitted has e = +0 and dlogits = +0. Rows are independent; their losses are added in row
 * order, from +0. */
#include <dx_numerics/math64.h>
#include "table.h"

typedef struct {
    ptrdiff_t columns;
    const float *logits;
    const int32_t *targets;
    const double *weight;
    const unsigned char *admit;
    double scale, denominator, *losses, *scratch;
    float *dlogits;
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

static void rows_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->columns;
    double *restrict e = a->scratch + worker * n;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *restrict z = a->logits + r * n;
        const unsigned char *restrict admit = a->admit ? a->admit + r * n : NULL;
        float *restrict out = a->dlogits ? a->dlogits + r * n : NULL;
        int32_t target = a->targets[r];
        if (target < 0) {
            a->losses[r] = 0.0;
            if (out) memset(out, 0, sizeof(float) * (size_t)n);
            continue;
        }
        double w = a->weight ? a->weight[target] : 1.0, sum = 0.0;
        if (admit) for (ptrdiff_t j = 0; j < n; j++) e[j] = admit[j] ? (double)z[j] : -__builtin_inf();
        else for (ptrdiff_t j = 0; j < n; j++) e[j] = (double)z[j];
        double m = largest(e, n);
        for (ptrdiff_t j = 0; j < n; j++) e[j] = dx_exp64(e[j] - m);
        if (admit) for (ptrdiff_t j = 0; j < n; j++) e[j] = admit[j] ? e[j] : 0.0;
        for (ptrdiff_t j = 0; j < n; j++) sum = sum + e[j];
        a->losses[r] = w * (dx_log64(sum) - ((double)z[target] - m));
        if (out) {
            double factor = (a->scale * w) / a->denominator;
            for (ptrdiff_t j = 0; j < n; j++) out[j] = (float)(factor * (e[j] / sum));
            out[target] = (float)(factor * (e[target] / sum - 1.0));
            if (admit) for (ptrdiff_t j = 0; j < n; j++) out[j] = admit[j] ? out[j] : 0.0f;
        }
    }
}

double DX_FN(counted_weight)(ptrdiff_t rows, const int32_t *targets, const double *weight)
{
    double total = 0.0;
    for (ptrdiff_t r = 0; r < rows; r++)
        if (targets[r] >= 0) total = total + (weight ? weight[targets[r]] : 1.0);
    return total;
}

int DX_FN(cross_entropy)(int degree, ptrdiff_t rows, ptrdiff_t columns, const float *logits, const int32_t *targets,
                         const double *weight, const unsigned char *admit, double scale, double denominator,
                         double *losses, double *numerator, float *dlogits)
{
    dx_mark mark = dx_scratch_mark();
    double *scratch = dx_scratch(sizeof(double) * (size_t)(degree * columns + rows));
    if (!scratch) return DX_NO_MEMORY;
    job a = {.columns = columns, .logits = logits, .targets = targets, .weight = weight, .admit = admit,
             .scale = scale, .denominator = denominator, .losses = losses ? losses : scratch + degree * columns,
             .scratch = scratch, .dlogits = dlogits};
    dx_rt.parallel(rows_task, &a, rows, dx_grain(rows, 8.0 * (double)columns, degree), degree);
    *numerator = 0.0;
    for (ptrdiff_t r = 0; r < rows; r++)
        if (targets[r] >= 0) *numerator = *numerator + a.losses[r];
    dx_scratch_release(mark);
    return DX_OK;
}
