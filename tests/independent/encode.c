/* From a page's words to the arrays of the model: docs/numerics.md section 17, rows of the model in reading order. */
#include "model.h"
#include "page.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

Content content(const double *box, long n)
{
    Content c = {INFINITY, INFINITY, -INFINITY, -INFINITY, 1.0};
    double *height = calloc((size_t)n + 1, sizeof *height);
    long count = 0;
    for (long i = 0; i < n; i++) {
        const double *b = box + 4 * i;
        c.X = b[0] < c.X ? b[0] : c.X;
        c.Y = b[1] < c.Y ? b[1] : c.Y;
        c.W = b[2] > c.W ? b[2] : c.W;
        c.H = b[3] > c.H ? b[3] : c.H;
        if (b[3] - b[1] > 0.0)
            height[count++] = b[3] - b[1];
    }
    c.W = c.W - c.X;
    c.H = c.H - c.Y;
    qsort(height, (size_t)count, sizeof *height, ascending);
    if (count)
        c.h = height[(count - 1) / 2];
    double least = 0x1p-20 * (c.W > c.H ? c.W : c.H);
    c.h = c.h < least ? least : c.h;
    free(height);
    return c;
}

/* The piece of code points a to b of a word with n of them. */
static void piece_box(const double *word, long a, long b, long n, double *box)
{
    double x0 = word[0], x1 = word[2], size = n ? (double)n : 1.0;
    double left = x0 + ((x1 - x0) * (double)a) / size, right = x0 + ((x1 - x0) * (double)b) / size;
    box[0] = left < x1 ? left : x1;
    box[1] = word[1];
    box[2] = b == n ? x1 : right < x1 ? right : x1;
    box[3] = word[3];
}

Page encode(const Config *c, Source *s)
{
    Page p = {0};
    size_t most = (size_t)(s->n + s->offset[s->n] + 1);
    int32_t *order = calloc(most, 4), *word_row = calloc(most, 4), *ids = calloc(most * (size_t)c->max_chars, 4);
    long *at = calloc(most, sizeof *at);
    Text *text = calloc(most, sizeof *text);
    unsigned char *later = calloc(most, 1);
    p.box = calloc(most * 4, 8);
    p.row = calloc(most, 4), p.line = calloc(most, 4), p.key = calloc(most, 4), p.inverse = calloc(most, 4);
    p.chars = calloc(most * (size_t)c->max_chars, 4);
    p.features = calloc(most * 56, 4);
    reading_order(s, order, word_row);
    for (long k = 0; k < s->n; k++) {
        long w = order[k], begin = 0;
        Text whole = {s->code + s->offset[w], s->offset[w + 1] - s->offset[w]};
        long count = s->cut ? cuts(whole, at) : 0;
        for (long i = 0; i <= count; i++, p.n++) {
            long end = i < count ? at[i] : whole.n;
            text[p.n] = (Text){whole.code + begin, end - begin};
            piece_box(s->box + 4 * w, begin, end, whole.n, p.box + 4 * p.n);
            p.row[p.n] = word_row[k];
            p.line[p.n] = s->line[w] < 0 ? -2 - word_row[k] : s->line[w];
            later[p.n] = i > 0;
            begin = end;
        }
    }
    keys(text, p.n, p.key);
    for (long i = 0; i < p.n; i++) {
        character_ids(text[i], c->max_chars, ids);
        long u = 0;
        while (u < p.distinct && memcmp(p.chars + u * c->max_chars, ids, (size_t)c->max_chars * 4))
            u++;
        if (u == p.distinct)
            memcpy(p.chars + p.distinct++ * c->max_chars, ids, (size_t)c->max_chars * 4);
        p.inverse[i] = (int32_t)u;
    }
    p.content = content(p.box, p.n);
    word_features(text, p.n, p.box, p.row, p.line, p.key, later, p.content.h, p.features);
    free(order), free(word_row), free(ids), free(at), free(text), free(later);
    return p;
}
