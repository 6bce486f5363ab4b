/* docs/docextract-v0.md section 4, with docs/backward-numerics.md sections 1 to 8. Assigns every tensor's `g`. */
#include "model.h"
#include "arithmetic.h"
#include <stdlib.h>

static void linear(const float *dy, long rows, const float *x, Tensor *w, Tensor *b, float *dx)
{
    long out = w->shape[0], in = w->shape[1];
    for (long o = 0; o < out; o++) {
        for (long i = 0; i < in; i++)
            w->g[o * in + i] = dot16(dy + o, out, x + i, in, rows);
        b->g[o] = sum16(dy + o, out, rows);
    }
    for (long r = 0; dx && r < rows; r++)
        for (long i = 0; i < in; i++)
            dx[r * in + i] = dot16(dy + r * out, 1, w->w + i, in, out);
}

static void layer_norm(const float *dy, long rows, long d, const float *xhat, const float *inv, Tensor *w, Tensor *b,
                       float *dx)
{
    float *g = floats(d), *product = floats(rows * d);
    for (long r = 0; r < rows; r++) {
        const float *row = dy + r * d, *hat = xhat + r * d;
        for (long j = 0; j < d; j++) {
            g[j] = row[j] * w->w[j];
            product[r * d + j] = row[j] * hat[j];
        }
        float mean = sum16(g, 1, d) / (float)d, inner = dot16(g, 1, hat, 1, d) / (float)d;
        for (long j = 0; j < d; j++)
            dx[r * d + j] = inv[r] * ((g[j] - mean) - hat[j] * inner);
    }
    for (long j = 0; j < d; j++) {
        w->g[j] = sum16(product + j, d, rows);
        b->g[j] = sum16(dy + j, d, rows);
    }
}

/* Sections 1 and 4. ds is added to dbias where `add`, else assigned. */
static void attention(const Config *c, long n, const float *dout, const float *qkv, const float *p, float *dqkv,
                      float *dbias, int add)
{
    long d = c->d, size = d / c->heads, wide = 3 * d;
    float scale = sqrtf((float)size), *dp = floats(n), *e = floats(n * n);
    for (long h = 0; h < c->heads; h++) {
        const float *q = qkv + h * size, *k = q + d, *v = k + d, *da = dout + h * size, *ph = p + h * n * n;
        float *dq = dqkv + h * size, *dk = dq + d, *dv = dk + d, *db = dbias + h * n * n;
        for (long i = 0; i < n; i++) {
            for (long j = 0; j < n; j++)
                dp[j] = dot16(da + i * d, 1, v + j * wide, 1, size);
            float inner = dot16(ph + i * n, 1, dp, 1, n);
            for (long j = 0; j < n; j++) {
                float ds = ph[i * n + j] * (dp[j] - inner);
                e[i * n + j] = ds / scale;
                db[i * n + j] = add ? db[i * n + j] + ds : ds;
            }
        }
        for (long i = 0; i < n; i++)
            for (long k2 = 0; k2 < size; k2++) {
                dq[i * wide + k2] = dot16(e + i * n, 1, k + k2, wide, n);
                dk[i * wide + k2] = dot16(e + i, n, q + k2, wide, n);
                dv[i * wide + k2] = dot16(ph + i, n, da + k2, d, n);
            }
    }
}

static void gelu_tanh(const float *dy, const float *x, const float *t, long count, float *dx)
{
    const float c0 = 0x1.988454p-1f, c1 = 0x1.6e4e26p-5f, c3 = 3.0f * c1;
    for (long i = 0; i < count; i++) {
        float s = 1.0f - t[i] * t[i], q = ((0.5f * x[i]) * s) * (c0 * (1.0f + c3 * (x[i] * x[i])));
        dx[i] = dy[i] * (0.5f * (1.0f + t[i]) + (s == 0.0f ? 0.0f : q));
    }
}

static void pair_mlp(Model *model, const Pass *pass, const float *dy, long pairs)
{
    const Config *c = &model->c;
    Tensor *w1 = tensor(model, "pair1.weight"), *b1 = tensor(model, "pair1.bias");
    Tensor *w2 = tensor(model, "pair2.weight"), *b2 = tensor(model, "pair2.bias");
    float *dh = floats(pairs);
    for (long u = 0; u < c->units; u++) {
        const float *hidden = pass->hidden + u * pairs;
        for (long p = 0; p < pairs; p++)
            dh[p] = hidden[p] <= 0.0f ? 0.0f : dot16(w2->w + u, c->units, dy + p, pairs, c->heads);
        for (long i = 0; i < c->P; i++)
            w1->g[u * c->P + i] = dot16(dh, 1, pass->pairs + i * pairs, 1, pairs);
        b1->g[u] = sum16(dh, 1, pairs);
    }
    for (long h = 0; h < c->heads; h++) {
        for (long u = 0; u < c->units; u++)
            w2->g[h * c->units + u] = dot16(dy + h * pairs, 1, pass->hidden + u * pairs, 1, pairs);
        b2->g[h] = sum16(dy + h * pairs, 1, pairs);
    }
}

/* Section 7: rows of dy added, in order, to the rows of the table that they came from. */
static void scatter(const float *dy, const int32_t *ids, long rows, long d, float *dtable, long size)
{
    memset(dtable, 0, (size_t)(size * d) * sizeof *dtable);
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < d; j++)
            dtable[ids[i] * d + j] = dtable[ids[i] * d + j] + dy[i * d + j];
}

/* Section 8, three taps: left = right = 1. */
static void characters(Model *model, const Pass *pass, const float *dpooled)
{
    const Config *c = &model->c;
    const Page *page = pass->page;
    Tensor *table = tensor(model, "char_emb.weight"), *w = tensor(model, "char_conv.weight");
    Tensor *b = tensor(model, "char_conv.bias");
    long O = c->channels, D = c->char_dim, U = page->distinct, L = c->max_chars;
    float *dz = floats(U * O), *row = floats(U), *column = floats(U), *z = floats(3 * O), *turned = floats(3 * O);
    for (long i = 0; i < U * O; i++)
        dz[i] = pass->argmax[i] < 0 || pass->pooled[i] <= 0.0f ? 0.0f : dpooled[i];
    for (long o = 0; o < O; o++) {
        for (long tap = 0; tap < 3; tap++)
            for (long k = 0; k < D; k++) {
                for (long u = 0; u < U; u++) {
                    long q = pass->argmax[u * O + o] - 1 + tap;
                    int inside = pass->argmax[u * O + o] >= 0 && q >= 0 && q < L && page->chars[u * L + q] != 0;
                    row[u] = inside ? table->w[page->chars[u * L + q] * D + k] : 0.0f;
                    column[u] = dz[u * O + o];
                }
                w->g[(o * 3 + tap) * D + k] = dot16(column, 1, row, 1, U);
            }
        b->g[o] = sum16(dz + o, O, U);
    }
    memset(table->g, 0, (size_t)table->count * sizeof *table->g);
    for (long u = 0; u < U; u++)
        for (long q = 0; q < L; q++) {
            int32_t id = page->chars[u * L + q];
            if (id == 0)
                continue;
            for (long j = 0; j < 3; j++)
                for (long o = 0; o < O; o++) {
                    long place = q - 1 + j;
                    z[j * O + o] = place >= 0 && place == pass->argmax[u * O + o] ? dz[u * O + o] : 0.0f;
                }
            for (long k = 0; k < D; k++) {
                for (long j = 0; j < 3; j++)
                    for (long o = 0; o < O; o++)
                        turned[j * O + o] = w->w[(o * 3 + 2 - j) * D + k];
                table->g[id * D + k] = table->g[id * D + k] + dot16(z, 1, turned, 1, 3 * O);
            }
        }
}

static void add(float *into, const float *x, long count)
{
    for (long i = 0; i < count; i++)
        into[i] = into[i] + x[i];
}

#define T(...) tensor(model, __VA_ARGS__)

/* One head: its gradients from dy over `rows` rows of x, and its part of df, which the first head that takes part begins.
   A head that takes no part is frozen, with zeros for gradients. x of one row is the mean of the words. */
static void head(Model *model, const char *name, int on, const float *dy, long rows, const float *x, long words,
                 int *begun, float *df)
{
    Tensor *w = T("%s.weight", name), *b = T("%s.bias", name);
    long d = w->shape[1];
    float *part = floats(rows * d);
    w->frozen = b->frozen = !on;
    if (!on) {
        memset(w->g, 0, (size_t)w->count * sizeof *w->g);
        memset(b->g, 0, (size_t)b->count * sizeof *b->g);
        return;
    }
    linear(dy, rows, x, w, b, part);
    for (long i = 0; i < words * d; i++) {
        float one = rows == 1 ? part[i % d] / (float)words : part[i];
        df[i] = *begun ? df[i] + one : one;
    }
    *begun = 1;
}

/* The gradient of f: tag, role, document type, rel_q, rel_k in this order. */
static void heads(Model *model, Pass *pass, float *df)
{
    const int *on = pass->on;
    int begun = 0, pointers = on[ITEM] || on[KEY_VALUE];
    long n = pass->page->n, r = model->c.r;
    float *dq = floats(n * 2 * r), *dk = floats(n * 2 * r), *e = floats(n * n);
    for (long p = 0; p < 2; p++) {
        for (long i = 0; i < n * n; i++)
            e[i] = pass->dpointer[p * n * n + i] / sqrtf((float)r);
        for (long i = 0; i < n; i++)
            for (long k = 0; k < r; k++) {
                dq[i * 2 * r + p * r + k] = dot16(e + i * n, 1, pass->k + p * r + k, 2 * r, n);
                dk[i * 2 * r + p * r + k] = dot16(e + i, n, pass->q + p * r + k, 2 * r, n);
            }
    }
    head(model, "tag_head", on[TAG] || on[RUN], pass->dtag, n, pass->f, n, &begun, df);
    head(model, "role_head", on[ROLE], pass->drole, n, pass->f, n, &begun, df);
    head(model, "doc_head", on[DOC], pass->ddoc, 1, pass->mean, n, &begun, df);
    head(model, "rel_q", pointers, dq, n, pass->f, n, &begun, df);
    head(model, "rel_k", pointers, dk, n, pass->f, n, &begun, df);
}

void backward(Model *model, Pass *pass)
{
    static const char *const table[4] = {"pos_x0.weight", "pos_y0.weight", "pos_x1.weight", "pos_y1.weight"};
    const Config *c = &model->c;
    const Page *page = pass->page;
    long n = page->n, d = c->d, m = c->m;
    float *dx = floats(n * d), *part = floats(n * d), *da = floats(n * d), *dbias = floats(c->heads * n * n);
    float *wide = floats(n * m), *dpre = floats(n * m), *dqkv = floats(n * 3 * d);
    heads(model, pass, da);
    layer_norm(da, n, d, pass->xhat_final, pass->inv_final, T("final_ln.weight"), T("final_ln.bias"), dx);
    for (int i = (int)c->layers - 1; i >= 0; i--) {
        const Saved *s = &pass->block[i];
        linear(dx, n, s->gelu, T("blocks.%d.fc2.weight", i), T("blocks.%d.fc2.bias", i), wide);
        gelu_tanh(wide, s->pre, s->t, n * m, dpre);
        linear(dpre, n, s->b, T("blocks.%d.fc1.weight", i), T("blocks.%d.fc1.bias", i), da);
        layer_norm(da, n, d, s->xhat2, s->inv2, T("blocks.%d.ln2.weight", i), T("blocks.%d.ln2.bias", i), part);
        add(dx, part, n * d);
        linear(dx, n, s->attended, T("blocks.%d.proj.weight", i), T("blocks.%d.proj.bias", i), da);
        attention(c, n, da, s->qkv, s->p, dqkv, dbias, i < c->layers - 1);
        linear(dqkv, n, s->a, T("blocks.%d.qkv.weight", i), T("blocks.%d.qkv.bias", i), da);
        layer_norm(da, n, d, s->xhat1, s->inv1, T("blocks.%d.ln1.weight", i), T("blocks.%d.ln1.bias", i), part);
        add(dx, part, n * d);
    }
    pair_mlp(model, pass, dbias, n * n);
    layer_norm(dx, n, d, pass->xhat0, pass->inv0, T("emb_ln.weight"), T("emb_ln.bias"), da);
    for (int k = 0; k < 4; k++)
        scatter(da, pass->position[k], n, d, T(table[k])->g, c->buckets);
    linear(da, n, page->features, T("feat_proj.weight"), T("feat_proj.bias"), NULL);
    float *dword = floats(page->distinct * d), *dpooled = floats(page->distinct * c->channels);
    scatter(da, page->inverse, n, d, dword, page->distinct);
    linear(dword, page->distinct, pass->pooled, T("char_proj.weight"), T("char_proj.bias"), dpooled);
    characters(model, pass, dpooled);
}
