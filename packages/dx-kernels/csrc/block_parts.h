/* Elementwise pieces that the stacks of transformer blocks share (encoder.c, post_encoder.c). */
#ifndef DX_BLOCK_PARTS_H
#define DX_BLOCK_PARTS_H

#include "activations_inline.h"
#include "table.h"

typedef struct {
    ptrdiff_t n, d;
    const float *a, *b, *weight, *bias;
    float *out;
    int activation;
} dx_pass;

static void dx_add_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const dx_pass *s = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) s->out[i] = s->out[i] + s->a[i];
}

/* out[i] += a[i] */
static void dx_add_in_place(int degree, ptrdiff_t n, const float *a, float *out)
{
    dx_pass s = {.a = a, .out = out};
    dx_rt.parallel(dx_add_task, &s, n, dx_grain(n, 1.0, degree), degree);
}

static void dx_affine_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const dx_pass *s = context;
    (void)worker;
    for (ptrdiff_t r = begin; r < end; r++)
        for (ptrdiff_t j = 0; j < s->d; j++)
            s->out[r * s->d + j] = s->a[r * s->d + j] * s->weight[j] + s->bias[j];
}

/* A layer norm's output again, from its xhat (n, d). */
static void dx_normed_again(int degree, ptrdiff_t n, ptrdiff_t d, const float *xhat, const float *weight,
                            const float *bias, float *out)
{
    dx_pass s = {.d = d, .a = xhat, .weight = weight, .bias = bias, .out = out};
    dx_rt.parallel(dx_affine_task, &s, n, dx_grain(n, 2.0 * (double)d, degree), degree);
}

static void dx_activate_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const dx_pass *s = context;
    (void)worker;
    if (s->activation == DX_LINEAR_GELU_TANH)
        for (ptrdiff_t i = begin; i < end; i++) s->out[i] = dx_gelu_tanh(s->a[i], s->b[i]);
    else
        for (ptrdiff_t i = begin; i < end; i++) s->out[i] = dx_gelu_erf(s->a[i]);
}

/* The activation's output again, from the n values it was applied to and their tanh terms (NULL for the erf form). */
static void dx_activated_again(int degree, ptrdiff_t n, int activation, const float *pre, const float *t, float *out)
{
    dx_pass s = {.a = pre, .b = t, .out = out, .activation = activation};
    dx_rt.parallel(dx_activate_task, &s, n, dx_grain(n, activation == DX_LINEAR_GELU_TANH ? 2.0 : 20.0, degree), degree);
}

#endif
