/* Run loss (docs/backward-numerics.md, "Run loss"): for each term -log of the summed probability of its places under
 * the page model, and its gradient: expected tags minus expected tags given that the field stands at one of the places.
 *
 * Both expectations come from one smoothing of each chain. A place leaves a tagging of the words before it, whose
 * masses are F, and one of the words after it, whose masses are G. So each place puts its (negative) share on the
 * states at its two ends, the whole page puts its (positive) share on the end of the page, and the shares walk back
 * along F and forth along G: every state hands its share to the states it was summed from, in proportion. Shares are
 * probabilities, so nothing overflows, and all terms walk together. */
#include "table.h"
#include "page_model.h"

typedef struct {
    const pm_page *page;
    int joint, bits, gradient;
    ptrdiff_t fields[PM_MAX_BITS];
    ptrdiff_t *list;                /* chain x of this batch is for field list[x]; -1: for all repeated fields */
    const unsigned char *repeated;
    ptrdiff_t terms;
    const int32_t *term, *begin, *places;
    const double *weight;
    double *losses, *level;         /* level: (places) */
    char *memory;
    size_t slot_bytes;
} job;

typedef struct { double *f, *g, *carry, *b, *i; } shares; /* (n + 1, masks) twice; two rows; dB, dI (n, K) */

/* Nothing to hand on: then the mask is passed over, which adds the same zeros. */
static int idle(double share, const double *carry, ptrdiff_t stride)
{
    int zero = share == 0.0;
    for (ptrdiff_t k = 0; k < stride && zero; k++) zero = carry[k] == 0.0;
    return zero;
}

typedef long long pm_mask4 __attribute__((vector_size(32)));

/* share / whole where whole is not zero, else 0. */
DX_INLINE pm_v4 proportion(pm_v4 share, pm_v4 whole)
{
    return (pm_v4)((pm_mask4)(share / whole) & (pm_mask4)(whole != 0.0));
}

/* 2^200 where a divisor is so small that a share of it would overflow, else 1. */
DX_INLINE pm_v4 lift(pm_v4 whole)
{
    const pm_v4 one = {1, 1, 1, 1}, high = {0x1p200, 0x1p200, 0x1p200, 0x1p200};
    const pm_mask4 small = (pm_mask4)(whole < 0x1p-900);
    return (pm_v4)(((pm_mask4)high & small) | ((pm_mask4)one & ~small));
}

/* Splits what the states at boundary t have among those at t - 1, from the end of the page to its beginning. */
static void smooth_before(pm_chain *c, shares *s)
{
    const pm_page *p = c->page;
    const ptrdiff_t stride = p->stride, masks = (ptrdiff_t)1 << c->bits, row = masks * stride;
    for (ptrdiff_t k = 0; k < 2 * row; k++) s->carry[k] = 0.0;
    for (ptrdiff_t t = p->n; t > 0; t--) {
        const double *b = p->b + (t - 1) * stride, *i = p->i + (t - 1) * stride;
        double *db = s->b + (t - 1) * stride, *di = s->i + (t - 1) * stride, *to = s->f + (t - 1) * masks;
        pm_sources(c, c->f + (t - 1) * masks, c->ef + (t - 1) * masks);
        for (ptrdiff_t m = 0; m < masks; m++) {
            const double *before = c->a + (t - 1) * row + m * stride, *after = c->a + t * row + m * stride;
            const double *carry = s->carry + (t & 1) * row + m * stride;
            double *carried = s->carry + (~t & 1) * row + m * stride, *source = c->source + m * stride;
            double mass = c->f[t * masks + m], part = mass == 0.0 ? 0.0 : s->f[t * masks + m] / mass;
            if (idle(part, carry, stride)) {
                for (ptrdiff_t k = 0; k < stride; k++) carried[k] = 0.0;
                continue;
            }
            double outside = part * pm_power(c->base[m] - c->ef[t * masks + m]) * p->o[t - 1] * c->own[m];
            pm_v4 sum = {0, 0, 0, 0};
            for (ptrdiff_t k = 0; k < stride; k += 4) {
                pm_v4 begins = pm_load(b + k) * pm_load(source + k);
                pm_v4 goes_on = pm_load(i + k) * (pm_load(before + k) * c->scale[m]);
                pm_v4 up = lift(begins + goes_on);
                begins *= up;
                goes_on *= up;
                pm_v4 share = proportion(pm_load(carry + k) + part * pm_load(after + k), begins + goes_on);
                begins = share * begins;
                goes_on = share * goes_on;
                pm_save(db + k, pm_load(db + k) + begins);
                pm_save(di + k, pm_load(di + k) + goes_on);
                pm_save(carried + k, goes_on);
                pm_save(source + k, begins);
                sum += pm_load(c->open + k) * begins;
            }
            to[m] = to[m] + (outside + pm_sum(sum));
            for (int q = 0; q < c->bits; q++)
                if (m >> q & 1) to[m ^ (ptrdiff_t)1 << q] += source[c->field[q]];
        }
    }
}

/* The same from the beginning to the end, over the words after the places. */
static void smooth_after(pm_chain *c, shares *s)
{
    const pm_page *p = c->page;
    const ptrdiff_t stride = p->stride, masks = (ptrdiff_t)1 << c->bits, row = masks * stride;
    for (ptrdiff_t k = 0; k < 2 * row; k++) s->carry[k] = 0.0;
    for (ptrdiff_t t = 0; t < p->n; t++) {
        const double *b = p->b + t * stride;
        double *db = s->b + t * stride, *di = s->i + t * stride, *to = s->g + (t + 1) * masks;
        pm_sources(c, c->g + (t + 1) * masks, c->eg + (t + 1) * masks);
        for (ptrdiff_t m = 0; m < masks; m++) {
            const double *after = c->d + (t + 1) * row + m * stride, *carry = s->carry + (t & 1) * row + m * stride;
            double *carried = s->carry + (~t & 1) * row + m * stride, *source = c->source + m * stride;
            double mass = c->g[t * masks + m], part = mass == 0.0 ? 0.0 : s->g[t * masks + m] / mass;
            if (idle(part, carry, stride)) {
                for (ptrdiff_t k = 0; k < stride; k++) carried[k] = 0.0;
                continue;
            }
            part = part * pm_power(c->base[m] - c->eg[t * masks + m]);
            double outside = part * p->o[t] * c->own[m];
            pm_v4 sum = {0, 0, 0, 0};
            for (ptrdiff_t k = 0; k < stride; k += 4) {
                pm_v4 goes_on = pm_load(after + k) * c->scale[m], rest = pm_load(source + k) + goes_on;
                pm_v4 begins = part * (pm_load(b + k) * rest), carries = pm_load(carry + k);
                pm_save(db + k, pm_load(db + k) + begins);
                pm_save(di + k, pm_load(di + k) + carries);
                pm_v4 up = lift(rest), starts = pm_load(source + k) * up;
                goes_on *= up;
                pm_v4 share = proportion(begins + carries, starts + goes_on), ends = share * starts;
                pm_save(carried + k, share * goes_on);
                pm_save(source + k, ends);
                sum += pm_load(c->open + k) * ends;
            }
            to[m] = to[m] + (outside + pm_sum(sum));
            for (int q = 0; q < c->bits; q++)
                if (m >> q & 1) to[m ^ (ptrdiff_t)1 << q] += source[c->field[q]];
        }
    }
}

/* The term's loss, and its shares: w times minus the distribution over what the term allows. */
static void add_term(const job *a, const pm_chain *c, shares *s, ptrdiff_t x, int bit)
{
    const pm_page *p = c->page;
    const ptrdiff_t k = a->term[x], masks = (ptrdiff_t)1 << c->bits;
    const ptrdiff_t own = bit < 0 ? 0 : (ptrdiff_t)1 << bit, rest = masks - 1 - own;
    const double weight = a->weight ? a->weight[x] : 1.0;
    double *level = a->level, log_mass, largest = -__builtin_inf();
    int32_t e;
    if (a->begin[x] == a->begin[x + 1]) {
        double mass = pm_absent(c, bit, &e);
        log_mass = pm_log(mass, e);
        if (a->gradient)
            for (ptrdiff_t m = 0; m < masks; m++)
                if (!(m & own)) {
                    ptrdiff_t end = p->n * masks + m;
                    s->f[end] = s->f[end] - weight * (c->f[end] * pm_power(c->ef[end] - e) / mass);
                }
    } else {
        double sum = 0.0;
        for (ptrdiff_t y = a->begin[x]; y < a->begin[x + 1]; y++) {
            const ptrdiff_t first = a->places[2 * y], last = a->places[2 * y + 1];
            double run = pm_level(p, first, 1 + 2 * k), mass = pm_around(c, first, last, bit, &e);
            for (ptrdiff_t t = first + 1; t <= last; t++) run = run + pm_level(p, t, 2 + 2 * k);
            level[y] = pm_log(mass, e) + run;
            largest = level[y] > largest ? level[y] : largest;
        }
        for (ptrdiff_t y = a->begin[x]; y < a->begin[x + 1]; y++) sum = sum + dx_exp64(level[y] - largest);
        log_mass = dx_log64(sum) + largest;
        for (ptrdiff_t y = a->begin[x]; a->gradient && y < a->begin[x + 1]; y++) {
            const ptrdiff_t first = a->places[2 * y], last = a->places[2 * y + 1];
            const double mass = pm_around(c, first, last, bit, &e), part = weight * dx_exp64(level[y] - log_mass);
            for (ptrdiff_t m = 0; m < masks; m++)
                if (!(m & own)) {
                    ptrdiff_t left = first * masks + m, right = (last + 1) * masks + rest - m;
                    double share = part * ((c->f[left] * c->g[right]) * pm_power(c->ef[left] + c->eg[right] - e) / mass);
                    s->f[left] = s->f[left] - share;
                    s->g[right] = s->g[right] - share;
                }
            s->b[first * p->stride + k] -= part;
            for (ptrdiff_t t = first + 1; t <= last; t++) s->i[t * p->stride + k] -= part;
        }
    }
    double loss = pm_log(c->z, c->ez) - log_mass;
    a->losses[x] = loss > 0.0 ? loss : 0.0;
}

static void run_chains(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const pm_page *p = a->page;
    const ptrdiff_t n = p->n, stride = p->stride;
    (void)worker;
    for (ptrdiff_t slot = begin; slot < end; slot++) {
        double *memory = (double *)(a->memory + (size_t)slot * a->slot_bytes), total = 0.0;
        const ptrdiff_t *exclusive = a->joint ? a->fields : a->list + slot;
        const int bits = a->joint ? a->bits : a->list[slot] >= 0;
        const ptrdiff_t masks = (ptrdiff_t)1 << bits;
        shares s = {.b = memory, .i = memory + n * stride};
        pm_chain c;
        memory = s.i + n * stride;
        if (a->gradient) {
            s.f = memory; s.g = s.f + (n + 1) * masks; s.carry = s.g + (n + 1) * masks;
            memory = s.carry + 2 * masks * stride;
            for (double *x = s.b; x < s.carry; x++) *x = 0.0;
        }
        pm_chain_init(&c, memory, p, exclusive, bits, a->gradient);
        pm_forward(&c);
        pm_backward(&c, NULL, -1);
        for (ptrdiff_t x = 0; x < a->terms; x++) {
            const ptrdiff_t k = a->term[x];
            int bit = -1;
            if (!a->joint && a->list[slot] != (a->repeated[k] ? -1 : k)) continue;
            for (int q = 0; q < bits; q++) if (exclusive[q] == k) bit = q;
            add_term(a, &c, &s, x, bit);
            total = total + (a->weight ? a->weight[x] : 1.0);
        }
        if (!a->gradient) continue;
        for (ptrdiff_t m = 0; m < masks; m++) {
            ptrdiff_t last = n * masks + m;
            s.f[last] = s.f[last] + total * (c.f[last] * pm_power(c.ef[last] - c.ez) / c.z);
        }
        smooth_before(&c, &s);
        smooth_after(&c, &s);
    }
}

int DX_FN(run_loss)(int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits, const unsigned char *repeated,
                    ptrdiff_t terms, const int32_t *term, const int32_t *begin, const int32_t *places,
                    const double *weight, double scale, double *losses, float *dlogits)
{
    pm_page page;
    job a = {.page = &page, .gradient = dlogits != NULL, .repeated = repeated, .terms = terms, .term = term,
             .begin = begin, .places = places, .weight = weight, .losses = losses};
    ptrdiff_t chains = 1;
    dx_mark mark = dx_scratch_mark();
    void *memory = dx_scratch(pm_page_bytes(n, fields));
    ptrdiff_t *list = dx_scratch(sizeof(ptrdiff_t) * (size_t)(fields + 1));
    a.level = dx_scratch(sizeof(double) * (size_t)(begin[terms] + 1));
    if (!memory || !list || !a.level) goto no_memory;
    pm_page_init(&page, memory, n, fields, logits);
    a.joint = pm_joint(fields, repeated, a.fields, &a.bits);
    if (!a.joint) {
        ptrdiff_t all = pm_each(fields, repeated, list);
        chains = 0;
        for (ptrdiff_t x = 0; x < all; x++) { /* only those that have terms */
            int any = 0;
            for (ptrdiff_t y = 0; y < terms; y++) any |= list[x] == (repeated[term[y]] ? -1 : term[y]);
            if (any) list[chains++] = list[x];
        }
    }
    const ptrdiff_t stride = page.stride, slots = chains < degree ? chains : degree;
    const int bits = a.joint ? a.bits : 1;
    const size_t masks = (size_t)1 << bits;
    a.slot_bytes = (sizeof(double) * (2 * (size_t)(n * stride) + 2 * (size_t)(n + 1) * masks + 2 * masks * (size_t)stride)
                    + pm_chain_bytes(n, fields, bits, a.gradient) + 63) / 64 * 64;
    double *sum = dx_scratch(sizeof(double) * 2 * (size_t)(n * stride));
    if (!(a.memory = dx_scratch(a.slot_bytes * (size_t)slots)) || !sum) goto no_memory;
    for (ptrdiff_t x = 0; x < 2 * n * stride; x++) sum[x] = 0.0;
    /* as many chains at a time as threads; their gradients are added in the order of the chains whatever that is */
    for (ptrdiff_t first = 0; first < chains; first += slots) {
        ptrdiff_t count = chains - first < slots ? chains - first : slots;
        a.list = list + first;
        if (degree > 1 && count > 1) dx_rt.parallel(run_chains, &a, count, 1, degree);
        else run_chains(&a, 0, count, 0);
        for (ptrdiff_t slot = 0; dlogits && slot < count; slot++) {
            const double *part = (const double *)(a.memory + (size_t)slot * a.slot_bytes);
            for (ptrdiff_t x = 0; x < 2 * n * stride; x++) sum[x] = sum[x] + part[x];
        }
    }
    for (ptrdiff_t t = 0; dlogits && t < n; t++) {
        const double *db = sum + t * stride, *di = sum + (n + t) * stride;
        float *out = dlogits + t * (1 + 2 * fields);
        double outside = 0.0;
        for (ptrdiff_t k = 0; k < fields; k++) {
            outside = (outside - db[k]) - di[k];
            out[1 + 2 * k] = (float)(scale * db[k]);
            out[2 + 2 * k] = (float)(scale * di[k]);
        }
        out[0] = (float)(scale * outside);
    }
    dx_scratch_release(mark);
    return DX_OK;
no_memory:
    dx_scratch_release(mark);
    return DX_NO_MEMORY;
}
