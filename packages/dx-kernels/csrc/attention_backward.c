/* Adjoint of attention.c and of the pointer scores of pointer.c.
 *
 *   dP[i][j] = dot16(dout_i, v_j)      dS = P * (dP - dot16(P, dP))      D = dS / scale      dbias = dS
 *   dq[i][c] = dot16 over j of D[i][j], k[j][c]        dk[j][c] = dot16 over i of D[i][j], q[i][c]
 *   dv[j][c] = dot16 over i of P[i][j], dout[i][c]     (pointer scores: D = dscores / scale, no dv)
 *
 * As many heads at a time as there are threads: their D stay in the second-level cache between the two halves, over
 * blocks of queries (D, dq) and over blocks of keys (dk, dv). */
#include "attention_block.h"

typedef struct {
    const dx_attention *a;
    ptrdiff_t s_stride, columns, block, blocks, slice, slices, packed_v, packed_k, worker_floats, first;
    float scale, *ds, *scratch;
} job;

static float *ds_row(const job *c, ptrdiff_t h, ptrdiff_t i)
{
    return c->ds + ((h - c->first) * c->a->nq + i) * c->s_stride;
}

static void query_blocks(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    const dx_attention *a = c->a;
    const ptrdiff_t nk = a->nk, d = a->d;
    float *packed_v = c->scratch + worker * c->worker_floats, *packed_k = packed_v + c->packed_v;
    for (ptrdiff_t item = begin; item < end; item++) {
        const ptrdiff_t h = c->first + item / c->blocks, i = item % c->blocks * c->block;
        const ptrdiff_t rows = a->nq - i < c->block ? a->nq - i : c->block;
        if (item == begin || i == 0) {
            if (a->dout) DX_FN(gemm_pack_part)(1, d, nk, c->columns, a->v + h * d, a->v_stride, packed_v);
            DX_FN(gemm_pack_part)(0, nk, d, d, a->k + h * d, a->k_stride, packed_k);
        }
        float *ds = ds_row(c, h, i);
        if (a->dout)
            DX_FN(gemm_rows)(rows, c->columns, d, a->dout + i * a->out_stride + h * d, a->out_stride, packed_v, ds,
                             c->s_stride);
        for (ptrdiff_t r = 0; r < rows; r++) {
            const ptrdiff_t at = (h * a->nq + i + r) * nk;
            float *row = ds + r * c->s_stride;
            if (a->dout)
                dx_softmax_backward_row(nk, a->probs_in + at, row, c->scale, row, a->dbias ? a->dbias + at : NULL);
            else dx_scale_row(nk, a->dscores + at, c->scale, row);
        }
        DX_FN(gemm_rows)(rows, d, nk, ds, c->s_stride, packed_k, a->dq + i * a->dq_stride + h * d,
                         a->dq_stride);
    }
}

/* Items are slices of keys: all of dk, then all of dv. */
static void key_slices(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    const dx_attention *a = c->a;
    const int products = a->dout ? 2 : 1;
    float *work = c->scratch + worker * c->worker_floats;
    for (ptrdiff_t item = begin; item < end; item++) {
        const ptrdiff_t h = c->first + item / (products * c->slices), j = item % c->slices * c->slice;
        const ptrdiff_t keys = a->nk - j < c->slice ? a->nk - j : c->slice, at = h * a->d;
        if (item / c->slices % products == 0)
            DX_FN(gemm_serial)(1, 0, keys, a->d, a->nq, ds_row(c, h, 0) + j, c->s_stride, a->q + at, a->q_stride,
                               a->dk + j * a->dk_stride + at, a->dk_stride, work);
        else
            DX_FN(gemm_serial)(1, 0, keys, a->d, a->nq, a->probs_in + h * a->nq * a->nk + j, a->nk, a->dout + at,
                               a->out_stride, a->dv + j * a->dv_stride + at, a->dv_stride, work);
    }
}

static int adjoint(int degree, const dx_attention *a)
{
    const int products = a->dout ? 2 : 1;
    const double work = (double)(a->nq * a->nk) * (4.0 + 0.125 * (double)a->d);
    if (work * (double)a->heads < 65536.0) degree = 1;
    const ptrdiff_t wave = degree < a->heads ? degree : a->heads;
    job c = {.a = a, .scale = __builtin_sqrtf((float)a->d), .s_stride = dx_score_stride(a->nk)};
    c.columns = dx_score_columns(a->nk);
    c.block = dx_block_rows(a->nq, c.s_stride);
    c.blocks = (a->nq + c.block - 1) / c.block;
    c.slice = a->nk < DX_KEY_SLICE ? a->nk : DX_KEY_SLICE;
    c.slices = c.slice ? (a->nk + c.slice - 1) / c.slice : 0;
    c.packed_v = dx_up16(DX_FN(gemm_packed_floats)(a->d, c.columns));
    c.packed_k = dx_up16(DX_FN(gemm_packed_floats)(a->nk, a->d));
    c.worker_floats = DX_FN(gemm_work_floats)(1, c.slice, a->d, a->nq);
    if (c.worker_floats < c.packed_v + c.packed_k) c.worker_floats = c.packed_v + c.packed_k;
    dx_mark mark = dx_scratch_mark();
    c.ds = dx_scratch(sizeof(float) * (size_t)(wave * a->nq * c.s_stride));
    c.scratch = dx_scratch(sizeof(float) * (size_t)(degree * c.worker_floats));
    if (!c.ds || !c.scratch) {
        dx_scratch_release(mark);
        return DX_NO_MEMORY;
    }
    for (c.first = 0; c.first < a->heads; c.first += wave) {
        const ptrdiff_t heads = a->heads - c.first < wave ? a->heads - c.first : wave;
        const ptrdiff_t queries = heads * c.blocks, keys = heads * c.slices * products;
        dx_rt.parallel(query_blocks, &c, queries, dx_grain(queries, work / (double)c.blocks, degree), degree);
        dx_rt.parallel(key_slices, &c, keys, degree > 1 ? 1 : keys, degree);
    }
    dx_scratch_release(mark);
    return DX_OK;
}

int DX_FN(attention_backward)(int degree, const dx_attention *a) { return adjoint(degree, a); }

int DX_FN(pointer_backward)(int degree, const dx_attention *a) { return adjoint(degree, a); }
