/* Pointer scores: dot16(q_i, k_j) / sqrt(d) + bias, -inf where not admitted. The adjoint is in attention_backward.c. */
#include "attention_block.h"

typedef struct {
    const dx_attention *a;
    ptrdiff_t block, blocks, packed_k;
    float scale, *scratch;
} job;

static void score_row(const job *c, ptrdiff_t h, ptrdiff_t i, float *row)
{
    const dx_attention *a = c->a;
    const float minus_infinity = -__builtin_inff(), scale = c->scale;
    dx_scale_row(a->nk, row, scale, row);
    if (a->bias) {
        const float *bias = a->bias + (h * a->nq + i) * a->nk;
        for (ptrdiff_t j = 0; j < a->nk; j++) row[j] = row[j] + bias[j];
    }
    if (a->mask) {
        const unsigned char *mask = a->mask + i * a->mask_stride;
        for (ptrdiff_t j = 0; j < a->nk; j++) row[j] = mask[j] ? row[j] : minus_infinity;
    }
    if (a->causal)
        for (ptrdiff_t j = i + 1; j < a->nk; j++) row[j] = minus_infinity;
}

static void forward_blocks(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    const dx_attention *a = c->a;
    float *packed_k = c->scratch + worker * c->packed_k;
    for (ptrdiff_t item = begin; item < end; item++) {
        const ptrdiff_t h = item / c->blocks, i = item % c->blocks * c->block;
        const ptrdiff_t rows = a->nq - i < c->block ? a->nq - i : c->block;
        float *scores = a->scores + (h * a->nq + i) * a->nk;
        if (item == begin || i == 0)
            DX_FN(gemm_pack_part)(1, a->d, a->nk, a->nk, a->k + h * a->d, a->k_stride, packed_k);
        DX_FN(gemm_rows)(rows, a->nk, a->d, a->q + i * a->q_stride + h * a->d, a->q_stride, packed_k, scores, a->nk);
        for (ptrdiff_t r = 0; r < rows; r++) score_row(c, h, i + r, scores + r * a->nk);
    }
}

int DX_FN(pointer_forward)(int degree, const dx_attention *a)
{
    job c = {.a = a, .scale = __builtin_sqrtf((float)a->d), .block = dx_block_rows(a->nq, a->nk)};
    c.blocks = (a->nq + c.block - 1) / c.block;
    c.packed_k = dx_up16(DX_FN(gemm_packed_floats)(a->d, a->nk));
    dx_mark mark = dx_scratch_mark();
    c.scratch = dx_scratch(sizeof(float) * (size_t)(degree * c.packed_k));
    if (!c.scratch) return DX_NO_MEMORY;
    const ptrdiff_t items = a->heads * c.blocks;
    const double work = (double)(c.block * a->nk) * (2.0 + 0.0625 * (double)a->d);
    dx_rt.parallel(forward_blocks, &c, items, dx_grain(items, work, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}
