/* The post-norm stack of post_encoder.h: composition only, every operation is another family's kernel. */
#include "block_parts.h"

/* Where one block's saved activations lie: its input x (n, d), qkv (n, 3d), probs (heads, n, n), att (n, d), xhat and
 * inv of both layer norms, pre (n, inner), fc1's output before the activation, and t (n, inner), its tanh term (gelu_tanh
 * only). Backward computes again what single operations give back from these. */
typedef struct { float *x, *qkv, *probs, *att, *xhat1, *inv1, *pre, *t, *xhat2, *inv2; } post_kept;

static ptrdiff_t post_even(ptrdiff_t floats) { return (floats + 15) / 16 * 16; }

static ptrdiff_t post_lay_out(const dx_post_encoder *e, float *base, post_kept *k)
{
    const ptrdiff_t nd = e->n * e->d, ni = e->n * e->inner;
    const ptrdiff_t sizes[10] = {nd, 3 * nd, e->heads * e->n * e->n, nd, nd, e->n, ni,
                                 e->activation == DX_LINEAR_GELU_TANH ? ni : 0, nd, e->n};
    float **const places[10] = {&k->x, &k->qkv, &k->probs, &k->att, &k->xhat1, &k->inv1, &k->pre, &k->t, &k->xhat2,
                                &k->inv2};
    ptrdiff_t at = 0;
    for (int i = 0; i < 10; i++) {
        *places[i] = base && sizes[i] ? base + at : NULL;
        at += post_even(sizes[i]);
    }
    return at;
}

ptrdiff_t DX_FN(post_encoder_saved_floats)(const dx_post_encoder *e)
{
    post_kept k;
    return e->blocks * post_lay_out(e, NULL, &k);
}

/* Attention of one sequence of `rows` rows. */
static dx_attention post_attention_of(const dx_post_encoder *e, ptrdiff_t rows, const float *qkv)
{
    const ptrdiff_t d = e->d;
    return (dx_attention){.heads = e->heads, .nq = rows, .nk = rows, .d = d / e->heads, .q_stride = 3 * d,
                          .k_stride = 3 * d, .v_stride = 3 * d, .out_stride = d, .q = qkv, .k = qkv + d,
                          .v = qkv + 2 * d};
}

typedef struct {
    const dx_post_encoder *e;
    const float *qkv;
    float *att;
    int *status; /* one for each sequence: no two threads write one place */
} sequence_pass;

static void sequence_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const sequence_pass *s = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t first = (ptrdiff_t)s->e->starts[i], rows = (ptrdiff_t)s->e->starts[i + 1] - first;
        dx_attention a = post_attention_of(s->e, rows, s->qkv + first * 3 * s->e->d);
        a.out = s->att + first * s->e->d;
        s->status[i] = DX_FN(attention_forward)(1, &a);
    }
}

/* Attention of every sequence: of several in parallel, of one with all threads in it. */
static int attend(int degree, const dx_post_encoder *e, const float *qkv, float *att, float *probs, int *statuses)
{
    int status = DX_OK;
    if (e->sequences == 1) {
        dx_attention a = post_attention_of(e, e->n, qkv);
        a.out = att;
        a.probs = probs;
        return DX_FN(attention_forward)(degree, &a);
    }
    sequence_pass s = {.e = e, .qkv = qkv, .att = att, .status = statuses};
    const double mean = (double)e->n / (double)e->sequences;
    dx_rt.parallel(sequence_task, &s, e->sequences,
                   dx_grain(e->sequences, 4.0 * mean * mean * (double)e->d, degree), degree);
    for (ptrdiff_t i = 0; i < e->sequences; i++) status |= statuses[i];
    return status;
}

int DX_FN(post_encoder_forward)(int degree, const dx_post_encoder *e, float *x, float *saved)
{
    const ptrdiff_t n = e->n, d = e->d, inner = e->inner;
    const size_t f = sizeof(float);
    dx_mark mark = dx_scratch_mark();
    float *sum = dx_scratch(f * (size_t)(n * d)), *norm = dx_scratch(f * (size_t)(n * d));
    float *hidden = dx_scratch(f * (size_t)(n * inner));
    float *own_qkv = saved ? NULL : dx_scratch(f * (size_t)(3 * n * d));
    float *own_att = saved ? NULL : dx_scratch(f * (size_t)(n * d));
    int *statuses = dx_scratch(sizeof(int) * (size_t)e->sequences);
    int status = sum && norm && hidden && statuses && (saved || (own_qkv && own_att)) ? DX_OK : DX_NO_MEMORY;
    for (ptrdiff_t i = 0; i < e->blocks && status == DX_OK; i++) {
        const float *const *w = e->weights + i * DX_BLOCK_TENSORS, *const *p = e->packed + i * 4;
        post_kept k = {0};
        if (saved) {
            saved += post_lay_out(e, saved, &k);
            memcpy(k.x, x, f * (size_t)(n * d));
        }
        float *qkv = saved ? k.qkv : own_qkv, *att = saved ? k.att : own_att;
        status |= DX_FN(linear_forward)(degree, n, d, 3 * d, x, d, w[DX_BLOCK_QKV_W], p[0], w[DX_BLOCK_QKV_B],
                                        DX_LINEAR_PLAIN, NULL, NULL, NULL, qkv, 3 * d);
        status |= attend(degree, e, qkv, att, k.probs, statuses);
        status |= DX_FN(linear_forward)(degree, n, d, d, att, d, w[DX_BLOCK_PROJ_W], p[1], w[DX_BLOCK_PROJ_B],
                                        DX_LINEAR_PLAIN, x, NULL, NULL, sum, d);
        status |= DX_FN(layer_norm_forward)(degree, n, d, sum, w[DX_BLOCK_LN1_W], w[DX_BLOCK_LN1_B], e->eps, norm,
                                            k.xhat1, k.inv1);
        status |= DX_FN(linear_forward)(degree, n, d, inner, norm, d, w[DX_BLOCK_FC1_W], p[2], w[DX_BLOCK_FC1_B],
                                        e->activation, NULL, k.pre, k.t, hidden, inner);
        status |= DX_FN(linear_forward)(degree, n, inner, d, hidden, inner, w[DX_BLOCK_FC2_W], p[3], w[DX_BLOCK_FC2_B],
                                        DX_LINEAR_PLAIN, norm, NULL, NULL, sum, d);
        status |= DX_FN(layer_norm_forward)(degree, n, d, sum, w[DX_BLOCK_LN2_W], w[DX_BLOCK_LN2_B], e->eps, x,
                                            k.xhat2, k.inv2);
    }
    dx_scratch_release(mark);
    return status;
}

int DX_FN(post_encoder_backward)(int degree, const dx_post_encoder *e, const float *saved, float *dx, int add,
                                 float *const *grads)
{
    const ptrdiff_t n = e->n, d = e->d, inner = e->inner;
    const size_t f = sizeof(float);
    post_kept k;
    const ptrdiff_t step = post_lay_out(e, NULL, &k);
    dx_mark mark = dx_scratch_mark();
    float *rows = dx_scratch(f * (size_t)(n * d)), *norm = dx_scratch(f * (size_t)(n * d));
    float *sum = dx_scratch(f * (size_t)(n * d)), *dqkv = dx_scratch(f * (size_t)(3 * n * d));
    float *hidden = dx_scratch(f * (size_t)(n * inner)), *dhidden = dx_scratch(f * (size_t)(n * inner));
    int status = rows && norm && sum && dqkv && hidden && dhidden ? DX_OK : DX_NO_MEMORY;
    for (ptrdiff_t i = e->blocks - 1; i >= 0 && status == DX_OK; i--) {
        const float *const *w = e->weights + i * DX_BLOCK_TENSORS, *const *p = e->packed + i * 4;
        float *const *g = grads + i * DX_BLOCK_TENSORS;
        post_lay_out(e, (float *)saved + i * step, &k); /* read only from here on */

        status |= DX_FN(layer_norm_backward)(degree, n, d, dx, k.xhat2, k.inv2, w[DX_BLOCK_LN2_W], sum,
                                             add, g[DX_BLOCK_LN2_W], g[DX_BLOCK_LN2_B]);
        dx_activated_again(degree, n * inner, e->activation, k.pre, k.t, hidden);
        status |= DX_FN(linear_backward)(degree, n, inner, d, sum, d, hidden, inner, w[DX_BLOCK_FC2_W], p[3], dhidden,
                                         inner, add, g[DX_BLOCK_FC2_W], g[DX_BLOCK_FC2_B]);
        status |= e->activation == DX_LINEAR_GELU_TANH
                      ? DX_FN(gelu_tanh_backward)(degree, n * inner, dhidden, k.pre, k.t, dhidden)
                      : DX_FN(gelu_erf_backward)(degree, n * inner, dhidden, k.pre, dhidden);
        dx_normed_again(degree, n, d, k.xhat1, w[DX_BLOCK_LN1_W], w[DX_BLOCK_LN1_B], norm);
        status |= DX_FN(linear_backward)(degree, n, d, inner, dhidden, inner, norm, d, w[DX_BLOCK_FC1_W], p[2], rows, d,
                                         add, g[DX_BLOCK_FC1_W], g[DX_BLOCK_FC1_B]);
        dx_add_in_place(degree, n * d, rows, sum);
        status |= DX_FN(layer_norm_backward)(degree, n, d, sum, k.xhat1, k.inv1, w[DX_BLOCK_LN1_W], dx,
                                             add, g[DX_BLOCK_LN1_W], g[DX_BLOCK_LN1_B]);
        status |= DX_FN(linear_backward)(degree, n, d, d, dx, d, k.att, d, w[DX_BLOCK_PROJ_W], p[1], rows, d,
                                         add, g[DX_BLOCK_PROJ_W], g[DX_BLOCK_PROJ_B]);
        dx_attention a = post_attention_of(e, n, k.qkv);
        a.probs_in = k.probs;
        a.dout = rows;
        a.dq = dqkv;
        a.dk = dqkv + d;
        a.dv = dqkv + 2 * d;
        a.dq_stride = a.dk_stride = a.dv_stride = 3 * d;
        status |= DX_FN(attention_backward)(degree, &a);
        status |= DX_FN(linear_backward)(degree, n, d, 3 * d, dqkv, 3 * d, k.x, d, w[DX_BLOCK_QKV_W], p[0], rows, d,
                                         add, g[DX_BLOCK_QKV_W], g[DX_BLOCK_QKV_B]);
        dx_add_in_place(degree, n * d, rows, dx);
    }
    dx_scratch_release(mark);
    return status;
}
