/* Row softmax with scale, bias, mask and limits, forward and backward; the arithmetic is in softmax_row.h. */
#include "softmax_row.h"
#include "table.h"

typedef struct {
    ptrdiff_t rows, n, mask_stride;
    const float *raw, *bias, *p_in, *dp;
    const unsigned char *mask;
    const int32_t *limits;
    float scale, *p, *draw, *dbias, *scratch;
} job;

static void forward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->n, stride = dx_round16(n);
    for (ptrdiff_t r = begin; r < end; r += DX_SOFTMAX_ROWS) {
        const dx_softmax_block block = {
            .n = n, .raw_stride = n, .bias_stride = n, .mask_stride = a->mask_stride, .s_stride = stride, .p_stride = n,
            .raw = a->raw + r * n, .bias = a->bias ? a->bias + r * n : NULL,
            .mask = a->mask ? a->mask + r * a->mask_stride : NULL, .limits = a->limits ? a->limits + r : NULL,
            .scale = a->scale, .s = a->scratch + worker * DX_SOFTMAX_ROWS * stride, .p = a->p + r * n};
        dx_softmax_rows(&block, end - r < DX_SOFTMAX_ROWS ? end - r : DX_SOFTMAX_ROWS);
    }
}

int DX_FN(softmax_forward)(int degree, ptrdiff_t rows, ptrdiff_t n, const float *raw, float scale, const float *bias,
                           const unsigned char *mask, ptrdiff_t mask_stride, const int32_t *limits, float *p)
{
    job a = {.rows = rows, .n = n, .mask_stride = mask_stride, .raw = raw, .bias = bias, .mask = mask,
             .limits = limits, .scale = scale, .p = p};
    dx_mark mark = dx_scratch_mark();
    a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * DX_SOFTMAX_ROWS * dx_round16(n)));
    if (!a.scratch) return DX_NO_MEMORY;
    dx_rt.parallel(forward_rows, &a, rows, dx_grain(rows, 16.0 * (double)n, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

static void backward_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t n = a->n;
    (void)worker;
    for (ptrdiff_t r = begin; r < end; r++)
        dx_softmax_backward_row(n, a->p_in + r * n, a->dp + r * n, a->scale, a->draw ? a->draw + r * n : NULL,
                                a->dbias ? a->dbias + r * n : NULL);
}

int DX_FN(softmax_backward)(int degree, ptrdiff_t rows, ptrdiff_t n, const float *p, const float *dp, float scale,
                            float *draw, float *dbias)
{
    job a = {.rows = rows, .n = n, .p_in = p, .dp = dp, .scale = scale, .draw = draw, .dbias = dbias};
    dx_rt.parallel(backward_rows, &a, rows, dx_grain(rows, 4.0 * (double)n, degree), degree);
    return DX_OK;
}
