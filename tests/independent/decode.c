/* The best legal tagging: docs/numerics.md section 18, "The best tagging". */
#include "decode.h"
#include "chain.h"
#include "arithmetic.h"
#include <stdlib.h>

#define MOST_EXCLUSIVE 8

typedef struct {
    long n, fields, masks;
    const int32_t *repeated;
    double *d;                               /* (n, 1 + 2 fields) */
    int exclusive[64], bit[64], bits;
    double price[64];
    int32_t *tags;                           /* of the last `best` */
    long runs[64];
    double value;                            /* V at the end */
} Problem;

/* best(X, price). */
static void best(Problem *p)
{
    long n = p->n, K = p->fields, M, tags = 1 + 2 * K;
    p->bits = 0;
    for (long k = 0; k < K; k++)
        p->bit[k] = p->exclusive[k] ? p->bits++ : -1;
    M = 1L << p->bits;
    double *V = doubles((n + 1) * M), *R = doubles((n + 1) * M * K);
    signed char *choice = calloc((size_t)((n + 1) * M), 1);
    unsigned char *goes_on = calloc((size_t)((n + 1) * M * K), 1);
    for (long m = 1; m < M; m++)
        V[m] = -INFINITY;
    for (long x = 0; x < M * K; x++)
        R[x] = -INFINITY;
    for (long t = 0; t < n; t++)
        for (long m = 0; m < M; m++) {
            long to = (t + 1) * M + m;
            V[to] = V[t * M + m];
            choice[to] = -1;
            for (long k = 0; k < K; k++) {
                double from = V[t * M + m];
                if (p->bit[k] >= 0)
                    from = m >> p->bit[k] & 1 ? V[t * M + (m ^ 1L << p->bit[k])] : -INFINITY;
                double begin = from + (p->d[t * tags + 1 + 2 * k] - p->price[k]);
                double on = R[(t * M + m) * K + k] + p->d[t * tags + 2 + 2 * k];
                goes_on[to * K + k] = on > begin;
                R[to * K + k] = on > begin ? on : begin;
                if (R[to * K + k] > V[to]) {
                    V[to] = R[to * K + k];
                    choice[to] = (signed char)k;
                }
            }
        }
    long m = 0, k = -1;
    for (long x = 1; x < M; x++)
        m = V[n * M + x] > V[n * M + m] ? x : m;
    p->value = V[n * M + m];
    for (long x = 0; x < K; x++)
        p->runs[x] = 0;
    for (long t = n; t > 0; t--) {          /* k: the field whose run the word after continues, else -1 */
        k = k < 0 ? choice[t * M + m] : k;
        p->tags[t - 1] = 0;
        if (k < 0)
            continue;
        if (goes_on[(t * M + m) * K + k]) {
            p->tags[t - 1] = (int32_t)(2 + 2 * k);
            continue;
        }
        p->tags[t - 1] = (int32_t)(1 + 2 * k);
        p->runs[k]++;
        m = p->bit[k] >= 0 ? m ^ 1L << p->bit[k] : m;
        k = -1;
    }
    free(V), free(R), free(choice), free(goes_on);
}

static double score(const Problem *p, const int32_t *tags, long from, long to)
{
    double sum = 0.0;
    for (long t = from; t < to; t++)
        if (tags[t])
            sum = sum + p->d[t * (1 + 2 * p->fields) + tags[t]];
    return sum;
}

/* Of each field that may have one run and has several only the best one stays, the first of equals. */
static void make_legal(const Problem *p, int32_t *tags)
{
    for (long k = 0; k < p->fields; k++) {
        double most = 0.0;
        long place = -1;
        if (p->repeated[k] || p->runs[k] < 2)
            continue;
        for (int pass = 0; pass < 2; pass++)
            for (long t = 0, end; t < p->n; t = end) {
                end = t + 1;
                if (p->tags[t] != 1 + 2 * k)
                    continue;
                while (end < p->n && p->tags[end] == 2 + 2 * k)
                    end++;
                if (pass == 0 && (place < 0 || score(p, p->tags, t, end) > most)) {
                    most = score(p, p->tags, t, end);
                    place = t;
                }
                for (long x = t; pass == 1 && t != place && x < end; x++)
                    tags[x] = 0;
            }
    }
}

typedef struct { double score; int any; int32_t *tags; } Kept;

/* Returns 1 where no field is unsettled: p->tags is the result. */
static int judge(Problem *p, Kept *kept, double *value, int *unsettled)
{
    int open = 0;
    int32_t *legal = calloc((size_t)p->n + 1, sizeof *legal);
    best(p);
    *value = p->value;
    for (long k = 0; k < p->fields; k++) {
        unsettled[k] = !p->repeated[k] && (p->runs[k] > 1 || (p->runs[k] == 0 && p->price[k] > 0.0));
        open |= unsettled[k];
        if (!p->repeated[k])
            *value = *value + p->price[k];
    }
    memcpy(legal, p->tags, (size_t)p->n * sizeof *legal);
    make_legal(p, legal);
    if (open && (!kept->any || score(p, legal, 0, p->n) > kept->score)) {
        kept->any = 1;
        kept->score = score(p, legal, 0, p->n);
        memcpy(kept->tags, legal, (size_t)p->n * sizeof *legal);
    }
    free(legal);
    return !open;
}

static Best done(const Problem *p, const int32_t *from, int32_t *tags, double bound, int exact)
{
    memmove(tags, from, (size_t)p->n * sizeof *tags);
    Best b = {score(p, tags, 0, p->n), bound, exact};
    if (exact)
        b.bound = b.score;
    return b;
}

static Best by_prices(Problem *p, int32_t *tags)
{
    long K = p->fields;
    Kept kept = {0.0, 0, calloc((size_t)p->n + 1, sizeof *kept.tags)};
    double bound = INFINITY, factor = 1.0, value, remembered[64] = {0};
    int unsettled[64], without_gain = 0;
    Best result;
    for (long k = 0; k < K; k++)
        p->exclusive[k] = 0, p->price[k] = 0.0;
    for (int round = 0; round < 200; round++) {
        if (judge(p, &kept, &value, unsettled)) {
            result = done(p, p->tags, tags, 0.0, 1);
            goto end;
        }
        if (value < bound) {
            bound = value;
            memcpy(remembered, p->price, sizeof remembered);
            without_gain = 0;
        } else if (++without_gain == 5) {
            factor = factor / 2.0;
            without_gain = 0;
        }
        if (kept.score >= bound) {
            result = done(p, kept.tags, tags, 0.0, 1);
            goto end;
        }
        double squares = 0.0;
        for (long k = 0; k < K; k++)
            if (unsettled[k])
                squares = squares + (double)(p->runs[k] - 1) * (double)(p->runs[k] - 1);
        double step = factor * (value - kept.score) / squares;
        for (long k = 0; k < K; k++)
            if (!p->repeated[k] && (p->runs[k] > 1 || p->price[k] > 0.0)) {
                double price = p->price[k] + step * (double)(p->runs[k] - 1);
                p->price[k] = price > 0.0 ? price : 0.0;
            }
    }
    for (long size = 0; size <= MOST_EXCLUSIVE;) {
        for (long k = 0; k < K; k++)
            p->price[k] = p->exclusive[k] ? 0.0 : remembered[k];
        if (judge(p, &kept, &value, unsettled)) {
            result = done(p, p->tags, tags, 0.0, 1);
            goto end;
        }
        bound = value < bound ? value : bound;
        if (kept.score >= bound) {
            result = done(p, kept.tags, tags, 0.0, 1);
            goto end;
        }
        size = 0;
        for (long k = 0; k < K; k++) {
            p->exclusive[k] |= unsettled[k];
            size += p->exclusive[k];
        }
    }
    result = done(p, kept.tags, tags, bound, 0);
end:
    free(kept.tags);
    return result;
}

Best best_tagging(const float *logits, long n, long K, const int32_t *repeated, int32_t *tags)
{
    Chain c = page_model(logits, n, K);
    Problem p = {.n = n, .fields = K, .repeated = repeated, .d = doubles(n * (1 + 2 * K)),
                 .tags = calloc((size_t)n + 1, sizeof *p.tags)};
    Best result;
    for (long t = 0; t < n; t++)
        for (long tag = 0; tag < 1 + 2 * K; tag++)
            p.d[t * (1 + 2 * K) + tag] = c.l[t * (1 + 2 * K) + tag] - c.l[t * (1 + 2 * K)];
    for (;;) {
        int several = 0, size = 0;
        best(&p);
        for (long k = 0; k < K; k++) {
            if (!repeated[k] && p.runs[k] > 1)
                several = p.exclusive[k] = 1;
            size += p.exclusive[k];
        }
        if (!several)
            result = done(&p, p.tags, tags, 0.0, 1);
        else if (size <= MOST_EXCLUSIVE)
            continue;
        else
            result = by_prices(&p, tags);
        break;
    }
    end_model(&c);
    free(p.d), free(p.tags);
    return result;
}
