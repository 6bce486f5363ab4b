/* docs/backward-numerics.md sections 11 to 13 over all tensors, in the parameter order. */
#include "model.h"
#include "arithmetic.h"
#include <stdlib.h>

double clip(Model *model, double max_norm)
{
    double squares = 0.0;
    for (int i = 0; i < model->count; i++) {
        const Tensor *t = &model->tensor[i];
        double square = dot16(t->sum, 1, t->sum, 1, t->count);
        if (!(square <= 0x1.fffffep+127)) {
            float *s = floats(t->count);
            for (long j = 0; j < t->count; j++)
                s[j] = t->sum[j] * 0x1p-80f;
            square = (double)dot16(s, 1, s, 1, t->count) * 0x1p160;
        }
        squares = squares + square;
    }
    double norm = sqrt(squares), factor = max_norm / (norm + 1e-6);
    if (max_norm > 0.0 && factor < 1.0)
        for (int i = 0; i < model->count; i++)
            for (long j = 0; j < model->tensor[i].count; j++)
                model->tensor[i].sum[j] = (float)((double)model->tensor[i].sum[j] * factor);
    return norm;
}

static double power(double beta, long step)
{
    double p = 1.0;
    for (long i = 0; i < step && p >= 0x1p-54; i++)
        p = p * beta;
    return p;
}

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? 0.0f : x; }

void adamw(Model *model, const Settings *s, long step, double rate)
{
    const double beta1 = s->beta1, beta2 = s->beta2;
    const float B1 = (float)beta1, M1 = (float)(1.0 - beta1), C1 = (float)(1.0 - power(beta1, step));
    const float B2 = (float)beta2, M2 = (float)(1.0 - beta2), C2 = (float)(1.0 - power(beta2, step));
    const float E = (float)s->epsilon;
    for (int i = 0; i < model->count; i++) {
        Tensor *t = &model->tensor[i];
        if (t->frozen)
            continue;
        double scaled = rate * (t->head ? 1.0 : s->backbone_scale);
        float R = (float)scaled, K = t->decay ? (float)(1.0 - scaled * s->weight_decay) : 1.0f;
        for (long j = 0; j < t->count; j++) {
            float g = t->sum[j];
            float m = flushed(B1 * t->m1[j] + M1 * g), v = flushed(B2 * t->m2[j] + M2 * (g * g));
            t->m1[j] = m;
            t->m2[j] = v;
            t->w[j] = t->w[j] * K - R * ((m / C1) / (sqrtf(v / C2) + E));
        }
    }
}

/* step counts from 0. */
double learning_rate(const Settings *s, long step)
{
    if (step < s->warmup)
        return s->peak * (double)(step + 1) / (double)s->warmup;
    return s->peak * (1.0 - (1.0 - s->final_rate) * ((double)(step - s->warmup + 1) / (double)(s->steps - s->warmup)));
}

/* The example at a position of the stream of epochs. */
long example_at(const Settings *s, long count, long position)
{
    long *order = calloc((size_t)count, sizeof *order), found;
    permutation((uint64_t)s->order_seed << 32 ^ (uint64_t)(position / count), count, order);
    found = order[position % count];
    free(order);
    return found;
}
