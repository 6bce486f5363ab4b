/* The page model shared by decoding, posteriors and the run loss (docs/numerics.md, "Decoding").
 *
 * A page of n words is tagged with legal BIO tags over C fields; field k has the tags B = 1 + 2k and I = 2 + 2k.
 * The probability of a legal tagging is proportional to exp(sum of l[t][tag of t]),
 *
 *   l[t][tag] = max(logit[t][tag] - max over tags of logit[t], -300)
 *
 * over the taggings that have at most one run of every exclusive field. A chain runs over the boundaries 0..n between
 * words; its states are the set M of exclusive fields used so far and the field of the run the last word is in:
 *
 *   F[t][M]     mass of the taggings of the first t words that use exactly M
 *   A[t][M][k]  the part of it whose last word is in a run of k
 *   G[t][N]     mass of the taggings of the words t..n-1 that use a subset of N and begin with no I
 *   D[t][N][k]  the same, beginning with an I of k
 *
 * Each M (each N) can have its own power of two: true mass = F * 2^eF. So a long run that is surer than binary64 can
 * say does not push the taggings without it to zero. Rows have K = C rounded up to 4 elements, padded with zeros. */
#ifndef DX_PAGE_MODEL_H
#define DX_PAGE_MODEL_H

#include <dx_numerics/math64.h>
#include "kernels.h"

#define PM_LN2 0x1.62e42fefa39efp-1
#define PM_MAX_BITS 8

typedef double pm_v4 __attribute__((vector_size(32), aligned(8), may_alias)); /* four fields */
DX_INLINE pm_v4 pm_load(const double *x) { return *(const pm_v4 *)x; }
DX_INLINE void pm_save(double *x, pm_v4 v) { *(pm_v4 *)x = v; }
DX_INLINE double pm_sum(pm_v4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }

typedef struct {
    ptrdiff_t n, fields, stride;          /* stride: K */
    const float *logits;
    double *top, *o, *b, *i;              /* (n) largest logit; weights exp(l): (n), (n, K), (n, K) */
} pm_page;

typedef struct {
    const pm_page *page;
    int bits, keep;                       /* number of exclusive fields; keep: A and D of all boundaries, else of two */
    ptrdiff_t field[PM_MAX_BITS];         /* the exclusive fields, ascending */
    double *open;                         /* (K) 1 for a field that is not exclusive, else 0 */
    double *f, *g, *a, *d;
    int32_t *ef, *eg;
    double *source, *own, *scale;         /* pm_sources: (masks, K), (masks), (masks) */
    int32_t *base;                        /* (masks) */
    double z; int32_t ez;                 /* total mass of the page */
} pm_chain;

DX_INLINE double pm_power(int32_t e) /* 2^e, 0 below the normal numbers */
{
    e = e > 1023 ? 1023 : e;
    return e < -1022 ? 0.0 : dx_double_of_bits((uint64_t)(e + 1023) << 52);
}

DX_INLINE int32_t pm_exponent(double x) { return (int32_t)((dx_bits_of_double(x) >> 52) & 2047) - 1023; }

DX_INLINE double pm_level(const pm_page *p, ptrdiff_t t, ptrdiff_t tag) /* l[t][tag] */
{
    double l = (double)p->logits[t * (1 + 2 * p->fields) + tag] - p->top[t];
    return l < -300.0 ? -300.0 : l;
}

/* Bytes of scratch that pm_page_init and pm_chain_init cut up. */
static inline size_t pm_page_bytes(ptrdiff_t n, ptrdiff_t fields)
{
    return sizeof(double) * (size_t)(n * (2 + 2 * ((fields + 3) / 4 * 4)));
}

static inline size_t pm_chain_bytes(ptrdiff_t n, ptrdiff_t fields, int bits, int keep)
{
    size_t masks = (size_t)1 << bits, stride = (size_t)((fields + 3) / 4 * 4), rows = (size_t)(n + 1);
    return sizeof(double) * (stride + masks * (stride + 2) + 2 * rows * masks + 2 * (keep ? rows : 2) * masks * stride)
        + sizeof(int32_t) * (2 * rows + 1) * masks;
}

static inline void pm_page_init(pm_page *p, void *memory, ptrdiff_t n, ptrdiff_t fields, const float *logits)
{
    const ptrdiff_t stride = (fields + 3) / 4 * 4, tags = 1 + 2 * fields;
    double *m = memory;
    *p = (pm_page){.n = n, .fields = fields, .stride = stride, .logits = logits};
    p->top = m; p->o = m + n; p->b = m + 2 * n; p->i = p->b + n * stride;
    for (ptrdiff_t t = 0; t < n; t++) {
        double top = logits[t * tags];
        for (ptrdiff_t j = 1; j < tags; j++) top = logits[t * tags + j] > top ? (double)logits[t * tags + j] : top;
        p->top[t] = top;
        p->o[t] = dx_exp64(pm_level(p, t, 0));
        double *b = p->b + t * stride, *i = p->i + t * stride;
        for (ptrdiff_t k = 0; k < fields; k++) { b[k] = pm_level(p, t, 1 + 2 * k); i[k] = pm_level(p, t, 2 + 2 * k); }
        for (ptrdiff_t k = fields; k < stride; k++) b[k] = i[k] = 0.0;
        for (ptrdiff_t k = 0; k < stride; k++) b[k] = dx_exp64(b[k]);
        for (ptrdiff_t k = 0; k < stride; k++) i[k] = dx_exp64(i[k]);
        for (ptrdiff_t k = fields; k < stride; k++) b[k] = i[k] = 0.0;
    }
}

static inline void pm_chain_init(pm_chain *c, void *memory, const pm_page *p, const ptrdiff_t *exclusive, int bits,
                                 int keep)
{
    const ptrdiff_t stride = p->stride, masks = (ptrdiff_t)1 << bits, rows = p->n + 1;
    double *m = memory;
    *c = (pm_chain){.page = p, .bits = bits, .keep = keep};
    c->open = m; m += stride;
    c->source = m; m += masks * stride;
    c->own = m; m += masks;
    c->scale = m; m += masks;
    c->f = m; m += rows * masks;
    c->g = m; m += rows * masks;
    c->a = m; m += (keep ? rows : 2) * masks * stride;
    c->d = m; m += (keep ? rows : 2) * masks * stride;
    c->ef = (int32_t *)m; c->eg = c->ef + rows * masks; c->base = c->eg + rows * masks;
    for (ptrdiff_t k = 0; k < stride; k++) c->open[k] = k < p->fields ? 1.0 : 0.0;
    for (int x = 0; x < bits; x++) { c->field[x] = exclusive[x]; c->open[exclusive[x]] = 0.0; }
}

DX_INLINE double *pm_row(const pm_chain *c, double *rows, ptrdiff_t t)
{
    return rows + (c->keep ? t : t & 1) * ((ptrdiff_t)c->page->stride << c->bits);
}

/* What every mask m takes over from a boundary with masses x (exponents e), at one exponent per mask, base[m]:
 * own[m] = x[m], source[m][k] = x[m without k] for an exclusive k in m, x[m] for an open k, 0 for the others;
 * scale[m]: what brings x[m] to base[m]. */
static inline void pm_sources(pm_chain *c, const double *x, const int32_t *e)
{
    const ptrdiff_t stride = c->page->stride, masks = (ptrdiff_t)1 << c->bits;
    int even = 1;
    for (ptrdiff_t m = 0; m < masks; m++) { c->base[m] = e[m]; even &= e[m] == e[0]; }
    for (int q = 0; q < c->bits && !even; q++)
        for (ptrdiff_t m = 0; m < masks; m++)
            if (m >> q & 1 && e[m ^ (ptrdiff_t)1 << q] > c->base[m]) c->base[m] = e[m ^ (ptrdiff_t)1 << q];
    for (ptrdiff_t m = 0; m < masks; m++) {
        double *source = c->source + m * stride;
        double scale = c->scale[m] = even ? 1.0 : pm_power(e[m] - c->base[m]);
        double own = c->own[m] = x[m] * scale;
        for (ptrdiff_t k = 0; k < stride; k += 4) pm_save(source + k, pm_load(c->open + k) * own);
        for (int q = 0; q < c->bits; q++) {
            if (!(m >> q & 1)) continue;
            ptrdiff_t from = m ^ (ptrdiff_t)1 << q;
            source[c->field[q]] = even ? x[from] : x[from] * pm_power(e[from] - c->base[m]);
        }
    }
}

/* Totals x at the exponents base → x and its exponents e, rows rescaled alike. before: the largest exponent's place in
 * the boundary before, *common. Masks within 2^-256 of the largest share one exponent; one far below has its own. */
static inline void pm_rescale(const pm_chain *c, int32_t *common, double *x, int32_t *e, double *rows)
{
    const ptrdiff_t stride = c->page->stride, masks = (ptrdiff_t)1 << c->bits;
    int32_t top = INT32_MIN;
    for (ptrdiff_t m = 0; m < masks; m++)
        if (x[m] != 0.0 && c->base[m] + pm_exponent(x[m]) > top) top = c->base[m] + pm_exponent(x[m]);
    if (top - *common > 64 || top - *common < -64) *common = top;
    for (ptrdiff_t m = 0; m < masks; m++) {
        int32_t exponent = pm_exponent(x[m]), base = c->base[m];
        if (x[m] == 0.0 || base + exponent >= *common - 256) e[m] = *common;
        else e[m] = exponent < -64 || exponent > 64 ? base + exponent : base;
        if (x[m] == 0.0 || e[m] == base) continue;
        double power = pm_power(base - e[m]);
        x[m] = x[m] * power;
        for (ptrdiff_t k = 0; k < stride; k += 4)
            pm_save(rows + m * stride + k, pm_load(rows + m * stride + k) * power);
    }
}

static inline void pm_forward(pm_chain *c)
{
    const pm_page *p = c->page;
    const ptrdiff_t stride = p->stride, masks = (ptrdiff_t)1 << c->bits, n = p->n;
    int32_t common = 0;
    for (ptrdiff_t m = 0; m < masks; m++) { c->f[m] = m ? 0.0 : 1.0; c->ef[m] = 0; }
    double *first = pm_row(c, c->a, 0);
    for (ptrdiff_t k = 0; k < masks * stride; k++) first[k] = 0.0;
    for (ptrdiff_t t = 0; t < n; t++) {
        const double *b = p->b + t * stride, *i = p->i + t * stride;
        double *f = c->f + (t + 1) * masks, *rows = pm_row(c, c->a, t + 1);
        pm_sources(c, c->f + t * masks, c->ef + t * masks);
        for (ptrdiff_t m = 0; m < masks; m++) {
            const double *before = pm_row(c, c->a, t) + m * stride, *source = c->source + m * stride;
            double *after = rows + m * stride, scale = c->scale[m];
            pm_v4 sum = {0, 0, 0, 0};
            for (ptrdiff_t k = 0; k < stride; k += 4) {
                pm_v4 run = pm_load(b + k) * pm_load(source + k) + pm_load(i + k) * (pm_load(before + k) * scale);
                pm_save(after + k, run);
                sum += run;
            }
            f[m] = p->o[t] * c->own[m] + pm_sum(sum);
        }
        pm_rescale(c, &common, f, c->ef + (t + 1) * masks, rows);
    }
    /* z: over the masks, ascending, at the largest exponent */
    const double *f = c->f + n * masks;
    const int32_t *e = c->ef + n * masks;
    c->ez = e[0];
    c->z = 0.0;
    for (ptrdiff_t m = 0; m < masks; m++) c->ez = e[m] > c->ez ? e[m] : c->ez;
    for (ptrdiff_t m = 0; m < masks; m++) c->z = c->z + f[m] * pm_power(e[m] - c->ez);
}

/* After pm_forward. start: NULL, or (n, K), assigned: the probability that word t is a B of field k; of field only
 * alone (the others zeros) if only >= 0. */
static inline void pm_backward(pm_chain *c, double *start, ptrdiff_t only)
{
    const pm_page *p = c->page;
    const ptrdiff_t stride = p->stride, masks = (ptrdiff_t)1 << c->bits, n = p->n;
    int32_t common = 0;
    for (ptrdiff_t m = 0; m < masks; m++) { c->g[n * masks + m] = 1.0; c->eg[n * masks + m] = 0; }
    double *last = pm_row(c, c->d, n);
    for (ptrdiff_t k = 0; k < masks * stride; k++) last[k] = 0.0;
    for (ptrdiff_t k = 0; start && k < n * stride; k++) start[k] = 0.0;
    for (ptrdiff_t t = n - 1; t >= 0; t--) {
        const double *b = p->b + t * stride, *i = p->i + t * stride;
        double *begins = start ? start + t * stride : NULL, *g = c->g + t * masks, *rows = pm_row(c, c->d, t);
        pm_sources(c, c->g + (t + 1) * masks, c->eg + (t + 1) * masks);
        for (ptrdiff_t m = 0; m < masks; m++) {
            const double *after = pm_row(c, c->d, t + 1) + m * stride;
            double *before = rows + m * stride, *source = c->source + m * stride, scale = c->scale[m];
            pm_v4 sum = {0, 0, 0, 0};
            for (ptrdiff_t k = 0; k < stride; k += 4) {
                pm_v4 rest = pm_load(source + k) + pm_load(after + k) * scale, begin = pm_load(b + k) * rest;
                pm_save(before + k, pm_load(i + k) * rest);
                pm_save(source + k, begin);
                sum += begin;
            }
            g[m] = p->o[t] * c->own[m] + pm_sum(sum);
            if (!begins) continue;
            ptrdiff_t other = t * masks + (masks - 1 - m);
            double factor = c->f[other] * pm_power(c->ef[other] + c->base[m] - c->ez);
            if (only >= 0) begins[only] += factor * source[only];
            else for (ptrdiff_t k = 0; k < stride; k += 4)
                pm_save(begins + k, pm_load(begins + k) + factor * pm_load(source + k));
        }
        if (begins) for (ptrdiff_t k = 0; k < stride; k++) begins[k] = begins[k] / c->z;
        pm_rescale(c, &common, g, c->eg + t * masks, rows);
    }
}

/* The mass of everything outside a run of field k over the words first..last, all others summed out: mantissa,
 * exponent in *e. bit: k's bit, or -1. */
static inline double pm_around(const pm_chain *c, ptrdiff_t first, ptrdiff_t last, int bit, int32_t *e)
{
    const ptrdiff_t masks = (ptrdiff_t)1 << c->bits, own = bit < 0 ? 0 : (ptrdiff_t)1 << bit, all = masks - 1 - own;
    const double *f = c->f + first * masks, *g = c->g + (last + 1) * masks;
    const int32_t *ef = c->ef + first * masks, *eg = c->eg + (last + 1) * masks;
    int32_t base = INT32_MIN;
    double total = 0.0;
    for (ptrdiff_t m = 0; m < masks; m++)
        if (!(m & own) && ef[m] + eg[all - m] > base) base = ef[m] + eg[all - m];
    for (ptrdiff_t m = 0; m < masks; m++)
        if (!(m & own)) total = total + (f[m] * g[all - m]) * pm_power(ef[m] + eg[all - m] - base);
    *e = base;
    return total;
}

/* log of a mass. */
DX_INLINE double pm_log(double x, int32_t e) { return dx_log64(x) + (double)e * PM_LN2; }

/* The mass of the taggings without the exclusive field of this bit: mantissa, exponent in *e. */
static inline double pm_absent(const pm_chain *c, int bit, int32_t *e)
{
    const ptrdiff_t masks = (ptrdiff_t)1 << c->bits;
    const double *f = c->f + c->page->n * masks;
    const int32_t *ef = c->ef + c->page->n * masks;
    int32_t base = INT32_MIN;
    double total = 0.0;
    for (ptrdiff_t m = 0; m < masks; m++) if (!(m >> bit & 1) && ef[m] > base) base = ef[m];
    for (ptrdiff_t m = 0; m < masks; m++)
        if (!(m >> bit & 1)) total = total + f[m] * pm_power(ef[m] - base);
    *e = base;
    return total;
}

/* 1 if one chain with all exclusive fields is small enough to be the page's model: 2^bits * (fields + 1) <= 4096.
 * exclusive, *bits: those fields; only then assigned in full. Depends on the schema alone, never on a page. */
static inline int pm_joint(ptrdiff_t fields, const unsigned char *repeated, ptrdiff_t *exclusive, int *bits)
{
    int count = 0;
    for (ptrdiff_t k = 0; k < fields; k++)
        if (!repeated[k]) {
            if (count == PM_MAX_BITS) return 0;
            exclusive[count++] = k;
        }
    *bits = count;
    return (fields + 1) << count <= 4096 || count == 0;
}

/* Else: one chain per exclusive field, and last one (-1) for all repeated fields if there are any. */
static inline ptrdiff_t pm_each(ptrdiff_t fields, const unsigned char *repeated, ptrdiff_t *list)
{
    ptrdiff_t count = 0;
    int any = 0;
    for (ptrdiff_t k = 0; k < fields; k++) { if (repeated[k]) any = 1; else list[count++] = k; }
    if (any) list[count++] = -1;
    return count;
}

#endif
