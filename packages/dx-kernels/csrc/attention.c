/* Attention of the heads of one page: scores, softmax and weighted sum for a block of rows while the block is in the
 * cache; every product's element is one dot16, so the bits are those of gemm, softmax, gemm one after the other.
 *
 *   S[i][j] = dot16(q_i, k_j) / sqrt(d) + bias    P = softmax of the rows of S    out[i][c] = dot16 over j of P, V
 *
 * A key that is not admitted has P = +0 and takes part in the weighted sum as that. */
#include "attention_block.h"

typedef struct {
    const dx_attention *a;
    ptrdiff_t s_stride, columns, block, blocks, packed_k, packed_v, worker_floats;
    float scale, *scratch;
} job;

/* Softmax of the block of score rows s (queries i0.. of head h), in place, and into probs. */
static void softmax_block(const job *c, ptrdiff_t h, ptrdiff_t i0, ptrdiff_t rows, float *s)
{
    const dx_attention *a = c->a;
    for (ptrdiff_t r = 0; r < rows; r += DX_SOFTMAX_ROWS) {
        const ptrdiff_t count = rows - r < DX_SOFTMAX_ROWS ? rows - r : DX_SOFTMAX_ROWS, i = i0 + r;
        float *block = s + r * c->s_stride;
        int32_t limits[DX_SOFTMAX_ROWS];
        for (ptrdiff_t e = 0; e < count; e++) limits[e] = (int32_t)(i + e + 1 < a->nk ? i + e + 1 : a->nk);
        const dx_softmax_block softmax = {
            .n = a->nk, .raw_stride = c->s_stride, .bias_stride = a->nk, .mask_stride = a->mask_stride,
            .s_stride = c->s_stride, .p_stride = c->s_stride, .raw = block,
            .bias = a->bias ? a->bias + (h * a->nq + i) * a->nk : NULL,
            .mask = a->mask ? a->mask + i * a->mask_stride : NULL, .limits = a->causal ? limits : NULL,
            .scale = c->scale, .s = block, .p = block};
        dx_softmax_rows(&softmax, count);
        if (a->probs)
            for (ptrdiff_t e = 0; e < count; e++)
                memcpy(a->probs + (h * a->nq + i + e) * a->nk, block + e * c->s_stride, sizeof(float) * (size_t)a->nk);
    }
}

/* Asks for memory that is read soon, while the product before it computes. */
static inline void prefetch(const float *p, ptrdiff_t floats)
{
    for (ptrdiff_t i = 0; i < floats; i += 16) __builtin_prefetch(p + i, 0, 2);
}

/* Items are blocks of rows, head by head; a head's keys and values are packed where it is first met. */
static void forward_blocks(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    const dx_attention *a = c->a;
    const ptrdiff_t columns = c->columns;
    float *packed_k = c->scratch + worker * c->worker_floats, *packed_v = packed_k + c->packed_k;
    float *s = packed_v + c->packed_v;
    for (ptrdiff_t item = begin; item < end; item++) {
        const ptrdiff_t h = item / c->blocks, i = item % c->blocks * c->block;
        const ptrdiff_t rows = a->nq - i < c->block ? a->nq - i : c->block;
        if (item == begin || i == 0) {
            DX_FN(gemm_pack_part)(1, a->d, a->nk, columns, a->k + h * a->d, a->k_stride, packed_k);
            DX_FN(gemm_pack_part)(0, a->nk, a->d, a->d, a->v + h * a->d, a->v_stride, packed_v);
        }
        ptrdiff_t wanted = columns; /* later keys are not admitted: whole panels of them need no score */
        if (a->causal && i + rows < a->nk) wanted = (i + rows + DX_GEMM_NR - 1) / DX_GEMM_NR * DX_GEMM_NR;
        if (wanted > columns) wanted = columns;
        if (a->bias) prefetch(a->bias + (h * a->nq + i) * a->nk, rows * a->nk);
        DX_FN(gemm_rows)(rows, wanted, a->d, a->q + i * a->q_stride + h * a->d, a->q_stride, packed_k, s, c->s_stride);
        softmax_block(c, h, i, rows, s);
        DX_FN(gemm_rows)(rows, a->d, a->nk, s, c->s_stride, packed_v,
                         a->out + i * a->out_stride + h * a->d, a->out_stride);
    }
}

int DX_FN(attention_forward)(int degree, const dx_attention *a)
{
    job c = {.a = a, .scale = __builtin_sqrtf((float)a->d), .s_stride = dx_score_stride(a->nk)};
    c.columns = dx_score_columns(a->nk);
    c.block = dx_block_rows(a->nq, c.s_stride);
    c.blocks = (a->nq + c.block - 1) / c.block;
    c.packed_k = dx_up16(DX_FN(gemm_packed_floats)(a->d, c.columns));
    c.packed_v = dx_up16(DX_FN(gemm_packed_floats)(a->nk, a->d));
    c.worker_floats = c.packed_k + c.packed_v + c.block * c.s_stride;
    dx_mark mark = dx_scratch_mark();
    c.scratch = dx_scratch(sizeof(float) * (size_t)(degree * c.worker_floats));
    if (!c.scratch) return DX_NO_MEMORY;
    const ptrdiff_t items = a->heads * c.blocks;
    const double work = (double)(c.block * a->nk) * (16.0 + 0.125 * (double)a->d);
    dx_rt.parallel(forward_blocks, &c, items, dx_grain(items, work, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}
