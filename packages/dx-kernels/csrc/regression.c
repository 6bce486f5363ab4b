/* Losses of real targets, element by element in binary64 (docs/readout.md, "Regression"); e = prediction - target.
 *
 *   squared   e * e                                                          gradient 2 * e
 *   absolute  |e|                                                            gradient sign of e, 0 at 0
 *   Huber     0.5 * (e * e) where |e| <= delta, else delta * (|e| - 0.5 * delta)   gradient e, or delta * sign
 *   Gaussian  0.5 * ((s + (e * e) * exp64(-s)) + log(2 pi)), s the log variance
 *             gradients e * exp64(-s) and 0.5 * (1 - (e * e) * exp64(-s))
 *
 * A gradient is (scale / denominator) * that, rounded to binary32 once. The losses are added in order, from +0. */
#include <dx_numerics/math64.h>
#include "table.h"

#define LOG_TWO_PI 0x1.d67f1c864beb5p+0

typedef struct {
    int kind;
    double delta, factor, *losses;
    const float *prediction, *log_variance;
    const double *target;
    const unsigned char *counted;
    float *out, *out_variance;
} job;

static void elements(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const double delta = a->delta;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        if (a->counted && !a->counted[i]) {
            a->losses[i] = 0.0;
            if (a->out) a->out[i] = 0.0f;
            continue;
        }
        double e = (double)a->prediction[i] - a->target[i], size = e < 0.0 ? -e : e, slope;
        double sign = e > 0.0 ? 1.0 : e < 0.0 ? -1.0 : e; /* 0 at 0, NaN at NaN */
        if (a->kind == 0) {
            a->losses[i] = e * e;
            slope = 2.0 * e;
        } else if (a->kind == 1) {
            a->losses[i] = size;
            slope = sign;
        } else {
            int inside = size <= delta;
            a->losses[i] = inside ? 0.5 * (e * e) : delta * (size - 0.5 * delta);
            slope = inside ? e : delta * sign;
        }
        if (a->out) a->out[i] = (float)(a->factor * slope);
    }
}

static void gaussian_elements(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        if (a->counted && !a->counted[i]) {
            a->losses[i] = 0.0;
            if (a->out) a->out[i] = a->out_variance[i] = 0.0f;
            continue;
        }
        double e = (double)a->prediction[i] - a->target[i], s = (double)a->log_variance[i];
        double precision = dx_exp64(-s), share = (e * e) * precision;
        a->losses[i] = 0.5 * ((s + share) + LOG_TWO_PI);
        if (a->out) {
            a->out[i] = (float)(a->factor * (e * precision));
            a->out_variance[i] = (float)(a->factor * (0.5 * (1.0 - share)));
        }
    }
}

static int run(job *a, void (*task)(void *, ptrdiff_t, ptrdiff_t, int), double work, int degree, ptrdiff_t count,
               double *numerator)
{
    dx_mark mark = dx_scratch_mark();
    if (!a->losses && !(a->losses = dx_scratch(sizeof(double) * (size_t)count))) return DX_NO_MEMORY;
    dx_rt.parallel(task, a, count, dx_grain(count, work, degree), degree);
    *numerator = 0.0;
    for (ptrdiff_t i = 0; i < count; i++)
        if (!a->counted || a->counted[i]) *numerator = *numerator + a->losses[i];
    dx_scratch_release(mark);
    return DX_OK;
}

int DX_FN(regression)(int degree, ptrdiff_t count, int kind, double delta, const float *prediction,
                      const double *target, const unsigned char *counted, double scale, double denominator,
                      double *losses, double *numerator, float *dprediction)
{
    job a = {.kind = kind, .delta = delta, .factor = scale / denominator, .losses = losses, .prediction = prediction,
             .target = target, .counted = counted, .out = dprediction};
    return run(&a, elements, 4.0, degree, count, numerator);
}

int DX_FN(gaussian_nll)(int degree, ptrdiff_t count, const float *mean, const float *log_variance, const double *target,
                        const unsigned char *counted, double scale, double denominator, double *losses,
                        double *numerator, float *dmean, float *dlog_variance)
{
    job a = {.factor = scale / denominator, .losses = losses, .prediction = mean, .log_variance = log_variance,
             .target = target, .counted = counted, .out = dmean, .out_variance = dlog_variance};
    return run(&a, gaussian_elements, 16.0, degree, count, numerator);
}
