/* docs/docextract-v0.md section 3, with the kernels of docs/numerics.md sections 8 to 17. */
#include "model.h"
#include "arithmetic.h"
#include <stdlib.h>

static void linear(const float *x, long rows, long in, const Tensor *w, const Tensor *b, const float *residual, float *y)
{
    long out = w->shape[0];
    for (long r = 0; r < rows; r++)
        for (long o = 0; o < out; o++) {
            float u = dot16(x + r * in, 1, w->w + o * in, 1, in) + b->w[o];
            y[r * out + o] = residual ? u + residual[r * out + o] : u;
        }
}

static void layer_norm(const float *x, long rows, long d, float eps, const Tensor *w, const Tensor *b, float *xhat,
                       float *inv, float *y)
{
    float *c = floats(d);
    for (long r = 0; r < rows; r++, x += d, xhat += d, y += d) {
        float mean = sum16(x, 1, d) / (float)d;
        for (long j = 0; j < d; j++)
            c[j] = x[j] - mean;
        mean = sum16(c, 1, d) / (float)d;
        for (long j = 0; j < d; j++)
            c[j] = c[j] - mean;
        float variance = dot16(c, 1, c, 1, d) / (float)d;
        inv[r] = 1.0f / sqrtf(variance + eps);
        for (long j = 0; j < d; j++) {
            xhat[j] = c[j] * inv[r];
            y[j] = xhat[j] * w->w[j] + b->w[j];
        }
    }
}

/* Section 16: the row at position q of a word, +0 outside it and for padding. */
static const float *char_row(const Model *model, const float *table, const int32_t *word, long q, const float *zeros)
{
    return q < 0 || q >= model->c.max_chars || word[q] == 0 ? zeros : table + word[q] * model->c.char_dim;
}

static void characters(Model *model, const Page *page, Pass *pass)
{
    const Config *c = &model->c;
    const Tensor *table = tensor(model, "char_emb.weight"), *w = tensor(model, "char_conv.weight");
    const Tensor *b = tensor(model, "char_conv.bias");
    float *window = floats(3 * c->char_dim), *zeros = floats(c->char_dim);
    pass->pooled = floats(page->distinct * c->channels);
    pass->argmax = calloc((size_t)(page->distinct * c->channels), sizeof *pass->argmax);
    for (long u = 0; u < page->distinct; u++) {
        const int32_t *word = page->chars + u * c->max_chars;
        for (long o = 0; o < c->channels; o++) {
            float best = 0.0f;
            int32_t place = -1;
            for (long p = 0; p < c->max_chars; p++) {
                if (word[p] == 0)
                    continue;
                for (long tap = 0; tap < 3; tap++)
                    memcpy(window + tap * c->char_dim, char_row(model, table->w, word, p - 1 + tap, zeros),
                           (size_t)c->char_dim * sizeof *window);
                float z = dot16(window, 1, w->w + o * 3 * c->char_dim, 1, 3 * c->char_dim) + b->w[o];
                z = z < 0.0f ? 0.0f : z + 0.0f;
                if (place < 0 || z > best || (z != z && best == best)) {
                    best = z;
                    place = (int32_t)p;
                }
            }
            pass->pooled[u * c->channels + o] = best;
            pass->argmax[u * c->channels + o] = place;
        }
    }
}

static double clamp(double x, double limit) { return x > limit ? limit : x < -limit ? -limit : x; }

/* Section 17: positions in the tables and the 20 pair features, from boxes, visual rows, lines and keys. */
static void places(Model *model, const Page *page, Pass *pass)
{
    long n = page->n;
    const Content c = page->content;
    double (*real)[6] = calloc((size_t)n + 1, sizeof *real);
    for (int k = 0; k < 4; k++)
        pass->position[k] = calloc((size_t)n + 1, sizeof(int32_t));
    for (long i = 0; i < n; i++) {
        const double *b = page->box + 4 * i;
        double relative[4], size = (double)model->c.buckets, tall = (b[3] - b[1]) / c.h;
        for (int k = 0; k < 4; k++) {
            double extent = k % 2 ? c.H : c.W;
            relative[k] = extent == 0.0 ? 0.0 : (b[k] - (k % 2 ? c.Y : c.X)) / extent;
            double e = relative[k] * size;
            e = e > 0.0 ? e : 0.0;
            pass->position[k][i] = (int32_t)(e > size - 1.0 ? size - 1.0 : e);
        }
        real[i][0] = (relative[0] + relative[2]) * 0.5;
        real[i][1] = (relative[1] + relative[3]) * 0.5;
        real[i][2] = (b[0] - c.X) / c.h;
        real[i][3] = (b[2] - c.X) / c.h;
        real[i][4] = ((b[1] - c.Y) + (b[3] - c.Y)) * 0.5 / c.h;
        real[i][5] = log64(tall > 0x1p-10 ? tall : 0x1p-10);
    }
    pass->pairs = floats(20 * n * n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            const double *a = real[i], *b = real[j];
            double rho = (double)page->row[j] - page->row[i], sigma = (double)(j - i);
            double right = b[3] < a[3] ? b[3] : a[3], left = b[2] > a[2] ? b[2] : a[2];
            int over = right - left > 0.0;
            float value[20] = {
                (float)(b[0] - a[0]), (float)(b[1] - a[1]), (float)fabs(b[0] - a[0]), (float)fabs(b[1] - a[1]),
                tanh32((float)((b[2] - a[3]) * 0.25)), tanh32((float)((b[4] - a[4]) * 0.5)),
                rho == 0.0, (float)(clamp(rho, 3.0) / 3.0), (float)(clamp(sigma, 8.0) / 8.0),
                sigma == 1.0, sigma == -1.0, sigma == 0.0, over,
                fabs(b[2] - a[2]) < 0.5, fabs(b[3] - a[3]) < 0.5, rho == 1.0 && over,
                page->key[i] == page->key[j] && sigma != 0.0, page->line[i] == page->line[j],
                (float)clamp(b[5] - a[5], 1.0), rho == -1.0 && over};
            for (long f = 0; f < 20; f++)
                pass->pairs[(f * n + i) * n + j] = value[f];
        }
    free(real);
}

static void pair_mlp(Model *model, Pass *pass, long pairs)
{
    const Config *c = &model->c;
    const Tensor *w1 = tensor(model, "pair1.weight"), *b1 = tensor(model, "pair1.bias");
    const Tensor *w2 = tensor(model, "pair2.weight"), *b2 = tensor(model, "pair2.bias");
    pass->hidden = floats(c->units * pairs);
    pass->pair_bias = floats(c->heads * pairs);
    for (long p = 0; p < pairs; p++) {
        for (long u = 0; u < c->units; u++) {
            float z = dot16(w1->w + u * c->P, 1, pass->pairs + p, pairs, c->P) + b1->w[u];
            pass->hidden[u * pairs + p] = z < 0.0f ? 0.0f : z + 0.0f;
        }
        for (long h = 0; h < c->heads; h++)
            pass->pair_bias[h * pairs + p] = dot16(w2->w + h * c->units, 1, pass->hidden + p, pairs, c->units)
                                           + b2->w[h];
    }
}

/* Sections 11 and 12; every key is admitted, and no score of a finite model is NaN. */
static void attention(const Config *c, long n, const float *qkv, const float *bias, float *p, float *out)
{
    long d = c->d, size = d / c->heads;
    float scale = sqrtf((float)size);
    for (long h = 0; h < c->heads; h++)
        for (long i = 0; i < n; i++) {
            float *row = p + (h * n + i) * n, most = -INFINITY;
            for (long j = 0; j < n; j++) {
                row[j] = dot16(qkv + i * 3 * d + h * size, 1, qkv + j * 3 * d + d + h * size, 1, size) / scale;
                row[j] = row[j] + bias[(h * n + i) * n + j];
                most = row[j] > most ? row[j] : most;
            }
            for (long j = 0; j < n; j++) {
                row[j] = exp32(row[j] - most);
                row[j] = row[j] < 0x1p-126f ? 0.0f : row[j];
            }
            float total = sum16(row, 1, n);
            for (long j = 0; j < n; j++) {
                row[j] = row[j] / total;
                row[j] = row[j] < 0x1p-126f ? 0.0f : row[j];
            }
            for (long k = 0; k < size; k++)
                out[i * d + h * size + k] = dot16(row, 1, qkv + 2 * d + h * size + k, 3 * d, n);
        }
}

static void gelu_tanh(const float *x, long count, float *t, float *y)
{
    const float c0 = 0x1.988454p-1f, c1 = 0x1.6e4e26p-5f;
    for (long i = 0; i < count; i++) {
        t[i] = tanh32(c0 * (x[i] + c1 * (x[i] * (x[i] * x[i]))));
        y[i] = (0.5f * x[i]) * (1.0f + t[i]);
    }
}

#define T(...) tensor(model, __VA_ARGS__)

void forward(Model *model, const Page *page, Pass *pass)
{
    static const char *const table[4] = {"pos_x0.weight", "pos_y0.weight", "pos_x1.weight", "pos_y1.weight"};
    const Config *c = &model->c;
    const float eps = (float)model->eps;
    long n = page->n, d = c->d, r = c->r;
    pass->page = page;
    places(model, page, pass);
    characters(model, page, pass);
    float *word = floats(page->distinct * d), *sum = floats(n * d), *x = floats(n * d);
    linear(pass->pooled, page->distinct, c->channels, T("char_proj.weight"), T("char_proj.bias"), NULL, word);
    linear(page->features, n, c->F, T("feat_proj.weight"), T("feat_proj.bias"), NULL, sum);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < d; j++) {
            sum[i * d + j] = word[page->inverse[i] * d + j] + sum[i * d + j];
            for (int k = 0; k < 4; k++)
                sum[i * d + j] = sum[i * d + j] + T(table[k])->w[pass->position[k][i] * d + j];
        }
    pass->xhat0 = floats(n * d), pass->inv0 = floats(n);
    layer_norm(sum, n, d, eps, T("emb_ln.weight"), T("emb_ln.bias"), pass->xhat0, pass->inv0, x);
    pair_mlp(model, pass, n * n);
    for (int i = 0; i < c->layers; i++) {
        Saved s = {.xhat1 = floats(n * d), .inv1 = floats(n), .a = floats(n * d), .qkv = floats(n * 3 * d),
                   .p = floats(c->heads * n * n), .attended = floats(n * d), .x1 = floats(n * d),
                   .xhat2 = floats(n * d), .inv2 = floats(n), .b = floats(n * d), .pre = floats(n * c->m),
                   .t = floats(n * c->m), .gelu = floats(n * c->m)};
        float *y = floats(n * d);
        layer_norm(x, n, d, eps, T("blocks.%d.ln1.weight", i), T("blocks.%d.ln1.bias", i), s.xhat1, s.inv1, s.a);
        linear(s.a, n, d, T("blocks.%d.qkv.weight", i), T("blocks.%d.qkv.bias", i), NULL, s.qkv);
        attention(c, n, s.qkv, pass->pair_bias, s.p, s.attended);
        linear(s.attended, n, d, T("blocks.%d.proj.weight", i), T("blocks.%d.proj.bias", i), x, s.x1);
        layer_norm(s.x1, n, d, eps, T("blocks.%d.ln2.weight", i), T("blocks.%d.ln2.bias", i), s.xhat2, s.inv2, s.b);
        linear(s.b, n, d, T("blocks.%d.fc1.weight", i), T("blocks.%d.fc1.bias", i), NULL, s.pre);
        gelu_tanh(s.pre, n * c->m, s.t, s.gelu);
        linear(s.gelu, n, c->m, T("blocks.%d.fc2.weight", i), T("blocks.%d.fc2.bias", i), s.x1, y);
        pass->block[i] = s;
        x = y;
    }
    pass->xhat_final = floats(n * d), pass->inv_final = floats(n), pass->f = floats(n * d), pass->mean = floats(d);
    layer_norm(x, n, d, eps, T("final_ln.weight"), T("final_ln.bias"), pass->xhat_final, pass->inv_final, pass->f);
    for (long j = 0; j < d; j++)
        pass->mean[j] = sum16(pass->f + j, d, n) / (float)n;
    pass->tag = floats(n * (1 + 2 * c->fields)), pass->role = floats(n * (1 + 2 * c->roles));
    pass->doc = floats(c->types), pass->q = floats(n * 2 * r), pass->k = floats(n * 2 * r);
    linear(pass->f, n, d, T("tag_head.weight"), T("tag_head.bias"), NULL, pass->tag);
    linear(pass->f, n, d, T("role_head.weight"), T("role_head.bias"), NULL, pass->role);
    linear(pass->mean, 1, d, T("doc_head.weight"), T("doc_head.bias"), NULL, pass->doc);
    linear(pass->f, n, d, T("rel_q.weight"), T("rel_q.bias"), NULL, pass->q);
    linear(pass->f, n, d, T("rel_k.weight"), T("rel_k.bias"), NULL, pass->k);
    pass->pointer = floats(2 * n * n);
    for (long part = 0; part < 2; part++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++)
                pass->pointer[(part * n + i) * n + j] = dot16(pass->q + i * 2 * r + part * r, 1,
                                                              pass->k + j * 2 * r + part * r, 1, r)
                                                      / sqrtf((float)r);
}
