/* The gradient nodes of bfloat16.h: operands rounded, products and sums as everywhere else. */
#include <dx_numerics/half.h>
#include "table.h"

typedef struct { const float *x; float *y; } job;

static void round_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *j = context;
    const float *x = j->x;
    float *y = j->y;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) y[i] = dx_widen_bfloat16(dx_narrow_bfloat16(x[i]));
}

static void add_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *j = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) j->y[i] = j->y[i] + j->x[i];
}

static void run(dx_task task, int degree, ptrdiff_t n, const float *x, float *y)
{
    job j = {x, y};
    dx_rt.parallel(task, &j, n, dx_grain(n, 0.5, degree), degree);
}

int DX_FN(round_bfloat16)(int degree, ptrdiff_t n, const float *x, float *y)
{
    run(round_task, degree, n, x, y);
    return DX_OK;
}

int DX_FN(linear_weight_gradient_bfloat16)(int degree, ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out,
                                           const float *dy, const float *x, float *dweight)
{
    const ptrdiff_t size = in * out;
    const size_t f = sizeof(float);
    dx_mark mark = dx_scratch_mark();
    float *dy_rounded = dx_scratch(f * (size_t)(rows * out)), *x_rounded = dx_scratch(f * (size_t)(rows * in));
    float *one = batch > 1 ? dx_scratch(f * (size_t)size) : NULL;
    int status = dy_rounded && x_rounded && (batch <= 1 || one) ? DX_OK : DX_NO_MEMORY;
    if (batch == 0) memset(dweight, 0, f * (size_t)size);
    for (ptrdiff_t b = 0; b < batch && status == DX_OK; b++) {
        run(round_task, degree, rows * out, dy + b * rows * out, dy_rounded);
        run(round_task, degree, rows * in, x + b * rows * in, x_rounded);
        status = DX_FN(linear_backward)(degree, rows, in, out, dy_rounded, out, x_rounded, in, NULL, NULL, NULL, 0, 0,
                                        b ? one : dweight, NULL);
        if (b && status == DX_OK) run(add_task, degree, size, one, dweight);
    }
    dx_scratch_release(mark);
    return status;
}

int DX_FN(patch_weight_gradient_bfloat16)(int degree, ptrdiff_t batch, const dx_patch_grid *g, const float *dy,
                                          const float *images, float *dweight)
{
    const ptrdiff_t in = g->channels * g->patch * g->patch, size = in * g->d;
    const ptrdiff_t pixels = g->channels * g->height * g->width, rows = (g->patches + 1) * g->d;
    const size_t f = sizeof(float);
    dx_mark mark = dx_scratch_mark();
    float *dy_rounded = dx_scratch(f * (size_t)rows), *image = dx_scratch(f * (size_t)pixels);
    float *one = batch > 1 ? dx_scratch(f * (size_t)size) : NULL;
    int status = dy_rounded && image && (batch <= 1 || one) ? DX_OK : DX_NO_MEMORY;
    if (batch == 0) memset(dweight, 0, f * (size_t)size);
    for (ptrdiff_t b = 0; b < batch && status == DX_OK; b++) {
        run(round_task, degree, rows, dy + b * rows, dy_rounded);
        run(round_task, degree, pixels, images + b * pixels, image);
        status = DX_FN(patch_embed_backward)(degree, g, dy_rounded, image, NULL, NULL, b ? one : dweight, NULL, NULL,
                                             NULL);
        if (b && status == DX_OK) run(add_task, degree, size, one, dweight);
    }
    if (batch && status == DX_OK) run(round_task, degree, size, dweight, dweight);
    dx_scratch_release(mark);
    return status;
}
