/* Binary cross-entropy of independent labels, plain or focal, element by element in binary64 (docs/readout.md,
 * "Multilabel"). With u = z where the target is 1 and u = -z where it is 0, w the weight of that side, and q = 1 - p the
 * probability missed:
 *
 *   nll = softplus64(-u)       q = exp64(-softplus64(u))       f = gamma == 0 ? 1 : exp64(-(gamma * softplus64(u)))
 *   loss = (w * f) * nll
 *   d loss / d u = -((w * f) * (q + (gamma * (1 - q)) * nll)), 1 - q = exp64(-nll); d u / d z is 1 or -1
 *
 * dlogits = round((scale / denominator) * d loss / d z). Losses are added in row-major order, from +0. */
#include <dx_numerics/math64.h>
#include "table.h"

typedef struct {
    ptrdiff_t columns;
    const float *logits;
    const int32_t *targets;
    const double *positive, *negative;
    double gamma, factor, *losses;
    float *dlogits;
} job;

static void rows_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->columns;
    (void)worker;
    for (ptrdiff_t r = begin; r < end; r++)
        for (ptrdiff_t j = 0; j < n; j++) {
            const ptrdiff_t i = r * n + j;
            const int32_t target = a->targets[i];
            if (target < 0) {
                a->losses[i] = 0.0;
                if (a->dlogits) a->dlogits[i] = 0.0f;
                continue;
            }
            const double *weights = target ? a->positive : a->negative;
            double z = (double)a->logits[i], u = target ? z : -z, w = weights ? weights[j] : 1.0;
            double nll = dx_softplus64(-u), hit = dx_softplus64(u), slope = dx_exp64(-hit);
            if (a->gamma != 0.0) {
                double p = dx_exp64(-nll);
                w = w * dx_exp64(-(a->gamma * hit));
                slope = slope + (p == 0.0 ? 0.0 : (a->gamma * p) * nll);
            }
            a->losses[i] = w * nll;
            if (a->dlogits) {
                double du = -(w * slope);
                a->dlogits[i] = (float)(a->factor * (target ? du : -du));
            }
        }
}

int DX_FN(binary_cross_entropy)(int degree, ptrdiff_t rows, ptrdiff_t columns, const float *logits,
                                const int32_t *targets, const double *positive, const double *negative, double gamma,
                                double scale, double denominator, double *losses, double *numerator, float *dlogits)
{
    job a = {.columns = columns, .logits = logits, .targets = targets, .positive = positive, .negative = negative,
             .gamma = gamma, .factor = scale / denominator, .losses = losses, .dlogits = dlogits};
    dx_mark mark = dx_scratch_mark();
    if (!losses && !(a.losses = dx_scratch(sizeof(double) * (size_t)(rows * columns)))) return DX_NO_MEMORY;
    dx_rt.parallel(rows_task, &a, rows, dx_grain(rows, 30.0 * (double)columns, degree), degree);
    *numerator = 0.0;
    for (ptrdiff_t i = 0; i < rows * columns; i++)
        if (targets[i] >= 0) *numerator = *numerator + a.losses[i];
    dx_scratch_release(mark);
    return DX_OK;
}
