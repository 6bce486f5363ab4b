/* The encoder stack of encoder.h: composition only, every operation is another family's kernel. */
#include "block_parts.h"

/* Where one block's saved activations lie. xhat1, xhat2 (n, d) and inv1, inv2 (n) of the layer norms; qkv (n, 3d);
 * probs (heads, n, n); att (n, d), the attention's output; pre (n, inner), fc1's output before the activation, and
 * t (n, inner), its tanh term (gelu_tanh only). What two operations give back from these (the layer norms' outputs,
 * the activation's) is computed again in backward instead of kept: the same operations, the same bits. */
typedef struct { float *xhat1, *inv1, *qkv, *probs, *att, *xhat2, *inv2, *pre, *t; } kept;

static ptrdiff_t even(ptrdiff_t floats) { return (floats + 15) / 16 * 16; }

static ptrdiff_t lay_out(const dx_encoder *e, float *base, kept *k)
{
    const ptrdiff_t nd = e->n * e->d, ni = e->n * e->inner;
    const ptrdiff_t sizes[9] = {nd, e->n, 3 * nd, e->heads * e->n * e->n, nd, nd, e->n, ni,
                                e->activation == DX_LINEAR_GELU_TANH ? ni : 0};
    float **const places[9] = {&k->xhat1, &k->inv1, &k->qkv, &k->probs, &k->att, &k->xhat2, &k->inv2, &k->pre, &k->t};
    ptrdiff_t at = 0;
    for (int i = 0; i < 9; i++) {
        *places[i] = base && sizes[i] ? base + at : NULL;
        at += even(sizes[i]);
    }
    return at;
}

ptrdiff_t DX_FN(encoder_saved_floats)(const dx_encoder *e)
{
    kept k;
    return e->blocks * lay_out(e, NULL, &k);
}

static dx_attention attention_of(const dx_encoder *e, const float *qkv)
{
    const ptrdiff_t d = e->d;
    return (dx_attention){.heads = e->heads, .nq = e->n, .nk = e->n, .d = d / e->heads, .q_stride = 3 * d,
                          .k_stride = 3 * d, .v_stride = 3 * d, .out_stride = d, .q = qkv, .k = qkv + d,
                          .v = qkv + 2 * d, .bias = e->bias, .mask = e->mask, .causal = e->causal};
}

int DX_FN(encoder_forward)(int degree, const dx_encoder *e, float *x, float *saved)
{
    const ptrdiff_t n = e->n, d = e->d, inner = e->inner;
    dx_mark mark = dx_scratch_mark();
    float *norm = dx_scratch(sizeof(float) * (size_t)(n * d));
    float *hidden = dx_scratch(sizeof(float) * (size_t)(n * inner));
    float *own_qkv = saved ? NULL : dx_scratch(sizeof(float) * (size_t)(3 * n * d));
    float *own_att = saved ? NULL : dx_scratch(sizeof(float) * (size_t)(n * d));
    int status = norm && hidden && (saved || (own_qkv && own_att)) ? DX_OK : DX_NO_MEMORY;
    for (ptrdiff_t i = 0; i < e->blocks && status == DX_OK; i++) {
        const float *const *w = e->weights + i * DX_BLOCK_TENSORS, *const *p = e->packed + i * 4;
        kept k = {0};
        if (saved) saved += lay_out(e, saved, &k);
        float *qkv = saved ? k.qkv : own_qkv, *att = saved ? k.att : own_att;
        status |= DX_FN(layer_norm_forward)(degree, n, d, x, w[DX_BLOCK_LN1_W], w[DX_BLOCK_LN1_B], e->eps, norm,
                                            k.xhat1, k.inv1);
        status |= DX_FN(linear_forward)(degree, n, d, 3 * d, norm, d, w[DX_BLOCK_QKV_W], p[0], w[DX_BLOCK_QKV_B],
                                        DX_LINEAR_PLAIN, NULL, NULL, NULL, qkv, 3 * d);
        dx_attention a = attention_of(e, qkv);
        a.out = att;
        a.probs = k.probs;
        status |= DX_FN(attention_forward)(degree, &a);
        status |= DX_FN(linear_forward)(degree, n, d, d, att, d, w[DX_BLOCK_PROJ_W], p[1], w[DX_BLOCK_PROJ_B],
                                        DX_LINEAR_PLAIN, x, NULL, NULL, x, d);
        status |= DX_FN(layer_norm_forward)(degree, n, d, x, w[DX_BLOCK_LN2_W], w[DX_BLOCK_LN2_B], e->eps, norm,
                                            k.xhat2, k.inv2);
        status |= DX_FN(linear_forward)(degree, n, d, inner, norm, d, w[DX_BLOCK_FC1_W], p[2], w[DX_BLOCK_FC1_B],
                                        e->activation, NULL, k.pre, k.t, hidden, inner);
        status |= DX_FN(linear_forward)(degree, n, inner, d, hidden, inner, w[DX_BLOCK_FC2_W], p[3], w[DX_BLOCK_FC2_B],
                                        DX_LINEAR_PLAIN, x, NULL, NULL, x, d);
    }
    dx_scratch_release(mark);
    return status;
}

int DX_FN(encoder_backward)(int degree, const dx_encoder *e, const float *saved, float *dx, int add,
                            float *const *grads, float *dbias)
{
    const ptrdiff_t n = e->n, d = e->d, inner = e->inner, pairs = e->heads * n * n;
    const size_t f = sizeof(float);
    kept k;
    const ptrdiff_t step = lay_out(e, NULL, &k);
    dx_mark mark = dx_scratch_mark();
    float *rows = dx_scratch(f * (size_t)(n * d)), *norm = dx_scratch(f * (size_t)(n * d));
    float *hidden = dx_scratch(f * (size_t)(n * inner)), *dhidden = dx_scratch(f * (size_t)(n * inner));
    float *dqkv = dx_scratch(f * (size_t)(3 * n * d));
    float *dbias_block = dbias && e->blocks > 1 ? dx_scratch(f * (size_t)pairs) : NULL;
    int status = rows && norm && hidden && dhidden && dqkv && (!dbias || e->blocks <= 1 || dbias_block)
                     ? DX_OK : DX_NO_MEMORY;
    if (dbias && e->blocks == 0) memset(dbias, 0, f * (size_t)pairs);
    for (ptrdiff_t i = e->blocks - 1; i >= 0 && status == DX_OK; i--) {
        const float *const *w = e->weights + i * DX_BLOCK_TENSORS, *const *p = e->packed + i * 4;
        float *const *g = grads + i * DX_BLOCK_TENSORS;
        lay_out(e, (float *)saved + i * step, &k); /* read only from here on */

        dx_activated_again(degree, n * inner, e->activation, k.pre, k.t, hidden);
        status |= DX_FN(linear_backward)(degree, n, inner, d, dx, d, hidden, inner, w[DX_BLOCK_FC2_W], p[3], dhidden,
                                         inner, add, g[DX_BLOCK_FC2_W], g[DX_BLOCK_FC2_B]);
        status |= e->activation == DX_LINEAR_GELU_TANH
                      ? DX_FN(gelu_tanh_backward)(degree, n * inner, dhidden, k.pre, k.t, dhidden)
                      : DX_FN(gelu_erf_backward)(degree, n * inner, dhidden, k.pre, dhidden);
        dx_normed_again(degree, n, d, k.xhat2, w[DX_BLOCK_LN2_W], w[DX_BLOCK_LN2_B], norm);
        status |= DX_FN(linear_backward)(degree, n, d, inner, dhidden, inner, norm, d, w[DX_BLOCK_FC1_W], p[2], rows, d,
                                         add, g[DX_BLOCK_FC1_W], g[DX_BLOCK_FC1_B]);
        status |= DX_FN(layer_norm_backward)(degree, n, d, rows, k.xhat2, k.inv2, w[DX_BLOCK_LN2_W], norm,
                                             add, g[DX_BLOCK_LN2_W], g[DX_BLOCK_LN2_B]);
        dx_add_in_place(degree, n * d, norm, dx);

        status |= DX_FN(linear_backward)(degree, n, d, d, dx, d, k.att, d, w[DX_BLOCK_PROJ_W], p[1], rows, d,
                                         add, g[DX_BLOCK_PROJ_W], g[DX_BLOCK_PROJ_B]);
        dx_attention a = attention_of(e, k.qkv);
        float *dbias_here = !dbias ? NULL : i == e->blocks - 1 ? dbias : dbias_block;
        a.probs_in = k.probs;
        a.dout = rows;
        a.dq = dqkv;
        a.dk = dqkv + d;
        a.dv = dqkv + 2 * d;
        a.dq_stride = a.dk_stride = a.dv_stride = 3 * d;
        a.dbias = dbias_here;
        status |= DX_FN(attention_backward)(degree, &a);
        if (dbias_here && dbias_here != dbias) dx_add_in_place(degree, pairs, dbias_here, dbias);
        dx_normed_again(degree, n, d, k.xhat1, w[DX_BLOCK_LN1_W], w[DX_BLOCK_LN1_B], norm);
        status |= DX_FN(linear_backward)(degree, n, d, 3 * d, dqkv, 3 * d, norm, d, w[DX_BLOCK_QKV_W], p[0], rows, d,
                                         add, g[DX_BLOCK_QKV_W], g[DX_BLOCK_QKV_B]);
        status |= DX_FN(layer_norm_backward)(degree, n, d, rows, k.xhat1, k.inv1, w[DX_BLOCK_LN1_W], norm,
                                             add, g[DX_BLOCK_LN1_W], g[DX_BLOCK_LN1_B]);
        dx_add_in_place(degree, n * d, norm, dx);
    }
    dx_scratch_release(mark);
    return status;
}
