/* Optimizer steps, elementwise:
 *
 *   rate = round(rate64 * scale)    keep = round(1 - (rate64 * scale) * decay) or 1    mix = round(1 - beta)
 *   correction = round(1 - beta^step)
 *   m = beta1 * m + mix1 * g              +0 where |m| < 2^-126
 *   v = beta2 * v + mix2 * (g * g)        +0 where v < 2^-126
 *   w = w * keep - rate * ((m / correction1) / (sqrt(v / correction2) + eps))
 *
 * The state of a row that gets no gradient for a long time would otherwise stay subnormal, where arithmetic is slow. */
#include "table.h"

typedef struct {
    float *restrict w, *restrict m, *restrict v;
    const float *restrict g;
    dx_adamw s;
    float rate, keep;
} job;

static void adamw(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job a = *(const job *)context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        float g = a.g[i];
        float m = a.s.beta1 * a.m[i] + a.s.mix1 * g;
        float v = a.s.beta2 * a.v[i] + a.s.mix2 * (g * g);
        m = __builtin_fabsf(m) < 0x1p-126f ? 0.0f : m;
        v = v < 0x1p-126f ? 0.0f : v;
        a.m[i] = m;
        a.v[i] = v;
        float step = (m / a.s.correction1) / (__builtin_sqrtf(v / a.s.correction2) + a.s.eps);
        a.w[i] = a.w[i] * a.keep - a.rate * step;
    }
}

static void sgd(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job a = *(const job *)context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) a.w[i] = a.w[i] - a.rate * a.g[i];
}

/* 1 - beta^step, the power by repeated multiplication; ended once the power no longer counts against 1. last: where an
 * earlier call ended; the same multiplications go on from there when they are the beginning of these. */
static float correction(double beta, ptrdiff_t step, dx_power *last)
{
    if (last->beta != beta || last->step > step) *last = (dx_power){beta, 0, 1.0};
    for (; last->step < step && last->power >= 0x1p-54; last->step++) last->power = last->power * beta;
    return (float)(1.0 - last->power);
}

int DX_FN(adamw_prepare)(ptrdiff_t step, double rate, double beta1, double beta2, double eps, double decay,
                         dx_power *last, dx_adamw *settings)
{
    *settings = (dx_adamw){
        .rate = rate, .decay = decay, .eps = (float)eps,
        .beta1 = (float)beta1, .mix1 = (float)(1.0 - beta1), .correction1 = correction(beta1, step, &last[0]),
        .beta2 = (float)beta2, .mix2 = (float)(1.0 - beta2), .correction2 = correction(beta2, step, &last[1])};
    return DX_OK;
}

int DX_FN(adamw_step)(int degree, ptrdiff_t n, const dx_adamw *settings, double scale, int decay_on, float *w,
                      const float *g, float *m, float *v)
{
    double rate = settings->rate * scale;
    job a = {.w = w, .m = m, .v = v, .g = g, .s = *settings, .rate = (float)rate,
             .keep = decay_on ? (float)(1.0 - rate * settings->decay) : 1.0f};
    dx_rt.parallel(adamw, &a, n, dx_grain(n, 4.0, degree), degree);
    return DX_OK;
}

int DX_FN(sgd_step)(int degree, ptrdiff_t n, double rate, double scale, float *w, const float *g)
{
    job a = {.w = w, .g = g, .rate = (float)(rate * scale)};
    dx_rt.parallel(sgd, &a, n, dx_grain(n, 0.5, degree), degree);
    return DX_OK;
}
