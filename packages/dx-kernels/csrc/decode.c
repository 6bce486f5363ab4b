/* The best legal tagging of a page (docs/numerics.md, "Decoding"; design: at most one run of a field that is not
 * repeated, no word in two fields).
 *
 * "At most one run" over many fields at once is the job interval selection problem, NP-hard, but on a page few fields
 * compete with themselves. So the rule is enforced where it is broken:
 *   1. best tagging with no field exclusive, by max-plus over words; legal → it is the best;
 *   2. make the fields with several runs exclusive: a chain over the subsets of them that are used up; again until
 *      nothing is broken (each round's result is an upper bound, so the first legal one is the best);
 *   3. more than PM_MAX_BITS fields compete: Lagrange multipliers, a price per field on each of its runs, moved by
 *      Polyak steps. A legal tagging that uses every priced field once is the best. Where none is met, the fields that
 *      the best prices leave unsettled become exclusive as in 2; if those are too many as well, the best legal tagging
 *      met is returned with the smallest bound. */
#include "table.h"
#include "page_model.h"

#define ROUNDS 200
#define PATIENCE 5

typedef struct {
    ptrdiff_t n, fields;
    int bits;
    int *bit;                    /* (fields) bit of an exclusive field, -1 for the others */
    double *b, *i, *price, *best_price; /* (n, fields) l[B] - l[O] and l[I] - l[O]; (fields) */
    double *v, *open;            /* two boundaries of (masks) and (masks, fields) */
    int16_t *choice;             /* (n, masks): field whose run the word is in, -1 for O */
    unsigned char *inside;       /* (n, masks, fields): 1 if the best run over the word began before it */
} search;

/* Best tagging of the search's chain → tags; its value. */
static double best_tagging(search *s, int32_t *tags)
{
    const ptrdiff_t n = s->n, fields = s->fields, masks = (ptrdiff_t)1 << s->bits;
    const double lowest = -__builtin_inf();
    for (ptrdiff_t m = 0; m < masks; m++) s->v[m] = m ? lowest : 0.0;
    for (ptrdiff_t x = 0; x < masks * fields; x++) s->open[x] = lowest;
    for (ptrdiff_t t = 0; t < n; t++) {
        const double *v = s->v + (t & 1) * masks;
        double *next = s->v + (~t & 1) * masks;
        for (ptrdiff_t m = 0; m < masks; m++) {
            const double *open = s->open + ((t & 1) * masks + m) * fields, *b = s->b + t * fields,
                         *i = s->i + t * fields;
            double *open_next = s->open + ((~t & 1) * masks + m) * fields, best = v[m];
            unsigned char *inside = s->inside + (t * masks + m) * fields;
            ptrdiff_t choice = -1;
            for (ptrdiff_t k = 0; k < fields; k++) {
                int bit = s->bit[k];
                double from = bit < 0 ? v[m] : m >> bit & 1 ? v[m ^ (ptrdiff_t)1 << bit] : lowest;
                double begin = from + (b[k] - s->price[k]), on = open[k] + i[k];
                inside[k] = on > begin;
                open_next[k] = on > begin ? on : begin;
                if (open_next[k] > best) { best = open_next[k]; choice = k; }
            }
            next[m] = best;
            s->choice[t * masks + m] = (int16_t)choice;
        }
    }
    const double *v = s->v + (n & 1) * masks;
    ptrdiff_t m = 0;
    for (ptrdiff_t x = 1; x < masks; x++) if (v[x] > v[m]) m = x;
    double value = v[m];
    for (ptrdiff_t t = n - 1; t >= 0; t--) {
        ptrdiff_t k = s->choice[t * masks + m];
        if (k < 0) { tags[t] = 0; continue; }
        while (s->inside[(t * masks + m) * fields + k]) tags[t--] = (int32_t)(2 + 2 * k);
        tags[t] = (int32_t)(1 + 2 * k);
        if (s->bit[k] >= 0) m ^= (ptrdiff_t)1 << s->bit[k];
    }
    return value;
}

/* Runs per field. */
static void count_runs(ptrdiff_t n, ptrdiff_t fields, const int32_t *tags, int32_t *count)
{
    for (ptrdiff_t k = 0; k < fields; k++) count[k] = 0;
    for (ptrdiff_t t = 0; t < n; t++) if (tags[t] & 1) count[tags[t] / 2]++;
}

/* A price that the best tagging does not bear out: several runs, or none though the field is priced. */
static int unsettled(const search *s, const int32_t *count, ptrdiff_t k)
{
    return count[k] > 1 || (s->price[k] > 0.0 && count[k] == 0);
}

/* The sum of the tags' levels over O, without prices. */
static double tagging_score(const search *s, const int32_t *tags)
{
    double score = 0.0;
    for (ptrdiff_t t = 0; t < s->n; t++)
        if (tags[t]) score = score + (tags[t] & 1 ? s->b : s->i)[t * s->fields + (tags[t] - 1) / 2];
    return score;
}

/* Keeps the best run (the first of equal ones) of every field that has several and may not. */
static void keep_best_runs(const search *s, const unsigned char *repeated, const int32_t *count, int32_t *tags)
{
    for (ptrdiff_t k = 0; k < s->fields; k++) {
        if (repeated[k] || count[k] < 2) continue;
        const int32_t begin = (int32_t)(1 + 2 * k);
        ptrdiff_t kept = -1;
        double best = 0.0;
        for (ptrdiff_t t = 0; t < s->n; t++) {
            if (tags[t] != begin) continue;
            double score = s->b[t * s->fields + k];
            for (ptrdiff_t u = t + 1; u < s->n && tags[u] == begin + 1; u++) score = score + s->i[u * s->fields + k];
            if (kept < 0 || score > best) { kept = t; best = score; }
        }
        for (ptrdiff_t t = 0; t < s->n; t++) {
            if (tags[t] != begin) continue;
            ptrdiff_t u = t;
            do if (t != kept) tags[u] = 0; while (++u < s->n && tags[u] == begin + 1);
        }
    }
}

typedef struct { double value, squares, score, bound; int exact; } verdict;

/* Takes the best tagging at the present prices: value bounds all legal taggings, squares is the length of the move that
 * would mend it, and the legal tagging made from it is kept in best_tags if it is the best so far. count: its runs. */
static void judge(search *s, const unsigned char *repeated, int32_t *tags, int32_t *count, int32_t *best_tags,
                  verdict *r)
{
    double value = best_tagging(s, tags), squares = 0.0;
    count_runs(s->n, s->fields, tags, count);
    for (ptrdiff_t k = 0; k < s->fields; k++) {
        if (repeated[k]) continue;
        value = value + s->price[k];
        if (unsettled(s, count, k)) squares = squares + (double)((count[k] - 1) * (count[k] - 1));
    }
    keep_best_runs(s, repeated, count, tags);
    double score = tagging_score(s, tags);
    r->exact = squares == 0.0;
    if (r->exact || score > r->score) {
        r->score = score;
        for (ptrdiff_t t = 0; t < s->n; t++) best_tags[t] = tags[t];
    }
    r->value = value;
    r->squares = squares;
}

/* Step 3. tags: a scratch tagging; best_tags: assigned. */
static verdict priced_search(search *s, const unsigned char *repeated, int32_t *tags, int32_t *count,
                             int32_t *best_tags)
{
    const ptrdiff_t fields = s->fields;
    verdict r = {.score = -__builtin_inf(), .bound = __builtin_inf()};
    double factor = 1.0;
    int stale = 0;
    for (int round = 0; round < ROUNDS; round++) {
        judge(s, repeated, tags, count, best_tags, &r);
        if (r.exact) return r;
        if (r.value < r.bound) {
            r.bound = r.value;
            stale = 0;
            for (ptrdiff_t k = 0; k < fields; k++) s->best_price[k] = s->price[k];
        } else if (++stale == PATIENCE) {
            factor = 0.5 * factor;
            stale = 0;
        }
        if ((r.exact = r.score >= r.bound)) return r;
        double step = factor * (r.value - r.score) / r.squares;
        for (ptrdiff_t k = 0; k < fields; k++) {
            if (repeated[k] || (count[k] < 2 && !(s->price[k] > 0.0))) continue;
            double price = s->price[k] + step * (double)(count[k] - 1);
            s->price[k] = price > 0.0 ? price : 0.0;
        }
    }
    /* the fields that the best prices leave unsettled become exclusive */
    while (s->bits <= PM_MAX_BITS) {
        for (ptrdiff_t k = 0; k < fields; k++) s->price[k] = s->bit[k] < 0 ? s->best_price[k] : 0.0;
        judge(s, repeated, tags, count, best_tags, &r);
        if (r.exact) return r;
        r.bound = r.value < r.bound ? r.value : r.bound;
        if ((r.exact = r.score >= r.bound)) return r;
        s->bits = 0;
        for (ptrdiff_t k = 0; k < fields; k++)
            if (s->bit[k] >= 0 || (!repeated[k] && unsettled(s, count, k))) s->bit[k] = s->bits++;
    }
    return r;
}

int DX_FN(decode_tags)(int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits, const unsigned char *repeated,
                       int32_t *tags, double *score, double *bound, int *exact)
{
    search s = {.n = n, .fields = fields};
    const ptrdiff_t width = 1 + 2 * fields;
    dx_mark mark = dx_scratch_mark();
    double *memory = dx_scratch(sizeof(double) * (size_t)((2 * n + 2) * fields));
    s.bit = dx_scratch(sizeof(int) * (size_t)(fields + 1));
    int32_t *count = dx_scratch(sizeof(int32_t) * (size_t)(fields + 1));
    int32_t *other = dx_scratch(sizeof(int32_t) * (size_t)n);
    (void)degree;
    if (!memory || !s.bit || !count || !other) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    s.b = memory; s.i = memory + n * fields; s.price = memory + 2 * n * fields;
    s.best_price = s.price + fields;
    for (ptrdiff_t t = 0; t < n; t++) {
        double top = logits[t * width];
        for (ptrdiff_t j = 1; j < width; j++)
            top = logits[t * width + j] > top ? (double)logits[t * width + j] : top;
        pm_page page = {.fields = fields, .logits = logits + t * width, .top = &top};
        double outside = pm_level(&page, 0, 0);
        for (ptrdiff_t k = 0; k < fields; k++) {
            s.b[t * fields + k] = pm_level(&page, 0, 1 + 2 * k) - outside;
            s.i[t * fields + k] = pm_level(&page, 0, 2 + 2 * k) - outside;
        }
    }
    for (ptrdiff_t k = 0; k < fields; k++) { s.bit[k] = -1; s.price[k] = 0.0; }
    for (int most = 0;;) { /* memory for 2^most masks */
        const size_t masks = (size_t)1 << (most > s.bits ? most : s.bits);
        dx_mark round = dx_scratch_mark();
        s.v = dx_scratch(sizeof(double) * 2 * masks * (size_t)(fields + 1));
        s.choice = dx_scratch(sizeof(int16_t) * masks * (size_t)n);
        s.inside = dx_scratch(masks * (size_t)(n * fields));
        if (!s.v || !s.choice || !s.inside) { dx_scratch_release(mark); return DX_NO_MEMORY; }
        s.open = s.v + 2 * masks;
        if (most) {
            verdict r = priced_search(&s, repeated, other, count, tags);
            *score = r.score;
            *bound = r.exact ? r.score : r.bound;
            *exact = r.exact;
            break;
        }
        best_tagging(&s, tags);
        count_runs(n, fields, tags, count);
        int broken = 0;
        for (ptrdiff_t k = 0; k < fields; k++) broken += !repeated[k] && count[k] > 1;
        if (!broken) {
            *score = *bound = tagging_score(&s, tags);
            *exact = 1;
            break;
        }
        if (s.bits + broken > PM_MAX_BITS) most = PM_MAX_BITS;
        s.bits = 0; /* bits ascend with the field, whichever round added it */
        for (ptrdiff_t k = 0; k < fields; k++)
            s.bit[k] = !most && (s.bit[k] >= 0 || (!repeated[k] && count[k] > 1)) ? s.bits++ : -1;
        dx_scratch_release(round);
    }
    dx_scratch_release(mark);
    return DX_OK;
}
