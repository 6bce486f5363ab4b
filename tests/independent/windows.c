/* Pages of more rows than the model takes: docs/docextract-v0.md section 5. */
#include "model.h"
#include "arithmetic.h"
#include "io.h"
#include <stdlib.h>

static long begin_of(long k, long windows, long rows, long most)
{
    return windows == 1 ? 0 : k * (rows - most) / (windows - 1);
}

static long distance(long r, long begin, long end, long rows)
{
    long left = begin == 0 ? rows : r - begin, right = end == rows ? rows : end - 1 - r;
    return left < right ? left : right;
}

static Page window_of(const Page *page, const Config *c, long begin, long size)
{
    Page w = *page;
    w.n = size;
    w.inverse += begin, w.row += begin, w.line += begin, w.key += begin;
    w.box += 4 * begin;
    w.features += c->F * begin;
    return w;
}

/* The softmax of a row of scores and its first largest. */
static long largest(const float *score, long n, float *probability)
{
    long best = 0;
    float *e = floats(n);
    for (long j = 1; j < n; j++)
        best = score[j] > score[best] ? j : best;
    for (long j = 0; j < n; j++) {
        e[j] = exp32(score[j] - score[best]);
        e[j] = e[j] < 0x1p-126f ? 0.0f : e[j];
    }
    float p = e[best] / sum16(e, 1, n);
    *probability = p < 0x1p-126f ? 0.0f : p;
    return best;
}

void show_merged(Model *model, const Page *page, long most, const char *group)
{
    const Config *c = &model->c;
    long rows = page->n, overlap = most / 4, tags = 1 + 2 * c->fields, roles = 1 + 2 * c->roles;
    long windows = rows <= most ? 1 : (rows - overlap + most - overlap - 1) / (most - overlap);
    float *tag = floats(rows * tags), *role = floats(rows * roles), *doc = floats(c->types), *p = floats(rows), unused;
    int32_t *item = calloc((size_t)rows + 1, sizeof *item), *key_value = calloc((size_t)rows + 1, sizeof *key_value);
    long *far = malloc((size_t)(rows + 1) * sizeof *far);
    for (long r = 0; r < rows; r++)
        far[r] = -1;
    for (long k = 0; k < windows; k++) {
        long begin = begin_of(k, windows, rows, most), size = rows < most ? rows : most;
        Page w = window_of(page, c, begin, size);
        Pass pass = {0};
        forward(model, &w, &pass);
        for (long i = 0; i < size; i++) {
            long r = begin + i, d = distance(r, begin, begin + size, rows);
            if (d <= far[r])
                continue;
            far[r] = d;
            memcpy(tag + r * tags, pass.tag + i * tags, (size_t)tags * sizeof *tag);
            memcpy(role + r * roles, pass.role + i * roles, (size_t)roles * sizeof *role);
            item[r] = (int32_t)(begin + largest(pass.pointer + i * size, size, &unused));
            key_value[r] = (int32_t)(begin + largest(pass.pointer + (size + i) * size, size, &p[r]));
        }
        if (k == 0)
            memcpy(doc, pass.doc, (size_t)c->types * sizeof *doc);
        for (int table = 0; table < 4; table++)
            free(pass.position[table]);
        free(pass.argmax);
    }
    show_number(group, "windows", (double)windows);
    show_as(group, "tag", "float32", tag, rows, tags);
    show_as(group, "role", "float32", role, rows, roles);
    show_as(group, "doc", "float32", doc, c->types, 0);
    show_as(group, "item", "int32", item, rows, 0);
    show_as(group, "key_value", "int32", key_value, rows, 0);
    show_as(group, "key_value_p", "float32", p, rows, 0);
    show_decoding(group, tag, rows, c->fields, model->repeated, 0.01);
    free(item), free(key_value), free(far);
}
