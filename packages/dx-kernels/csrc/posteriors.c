/* Posteriors of runs (docs/numerics.md, "Decoding"): exact sums over all legal taggings of the page model.
 *
 * One chain with all exclusive fields if its states are few (pm_joint), else one chain per exclusive field in which
 * that field alone is exclusive, and one chain without exclusive fields for the repeated ones. */
#include "table.h"
#include "page_model.h"

typedef struct {
    const pm_page *page;
    int bits;                       /* of every chain */
    ptrdiff_t fields[PM_MAX_BITS];  /* exclusive fields of the joint chain */
    int joint;
    ptrdiff_t *list;                /* chain x answers for field list[x]; -1: for all repeated fields */
    const unsigned char *repeated;
    double *absent, *given_p, floor;
    ptrdiff_t q, capacity;          /* capacity: per chain */
    const int32_t *given;
    char *memory;
    size_t chain_bytes;
    int32_t *found;                 /* (chains, capacity, 3) */
    double *found_p;
    ptrdiff_t *count;               /* (chains) */
} job;

/* Probability of the run of field k over first..last whose levels add up to level. */
static double run_probability(const pm_chain *c, ptrdiff_t first, ptrdiff_t last, int bit, double level)
{
    int32_t e;
    double mass = pm_around(c, first, last, bit, &e);
    double p = dx_exp64((pm_log(mass, e) + level) - pm_log(c->z, c->ez));
    return p > 1.0 ? 1.0 : p;
}

static void answer(const job *a, const pm_chain *c, const double *start, ptrdiff_t chain, ptrdiff_t k, int bit)
{
    const pm_page *p = c->page;
    if (bit >= 0) {
        int32_t e;
        double absent = pm_absent(c, bit, &e);
        absent = absent * pm_power(e - c->ez) / c->z;
        a->absent[k] = absent > 1.0 ? 1.0 : absent;
    }
    for (ptrdiff_t x = 0; x < a->q; x++) {
        const int32_t *run = a->given + 3 * x;
        if (run[0] != k) continue;
        double level = pm_level(p, run[1], 1 + 2 * k);
        for (ptrdiff_t t = run[1] + 1; t <= run[2]; t++) level = level + pm_level(p, t, 2 + 2 * k);
        a->given_p[x] = run_probability(c, run[1], run[2], bit, level);
    }
    if (!(a->floor <= 1.0)) return;
    ptrdiff_t count = a->count[chain];
    for (ptrdiff_t first = 0; first < p->n; first++) {
        double left = start[first * p->stride + k], level = pm_level(p, first, 1 + 2 * k);
        for (ptrdiff_t last = first; left >= a->floor; ) {
            double probability = run_probability(c, first, last, bit, level);
            if (probability >= a->floor) {
                if (count < a->capacity) {
                    int32_t *run = a->found + 3 * (chain * a->capacity + count);
                    run[0] = (int32_t)k; run[1] = (int32_t)first; run[2] = (int32_t)last;
                    a->found_p[chain * a->capacity + count] = probability;
                }
                count++;
            }
            left = left - probability;
            if (++last == p->n) break;
            level = level + pm_level(p, last, 2 + 2 * k);
        }
    }
    a->count[chain] = count;
}

/* The probability that a field that is not exclusive has no run: the total mass of a forward pass in which it cannot
 * begin. That pass takes the place of the chain's own. */
static void closed(const job *a, pm_chain *c, ptrdiff_t k, double z, int32_t ez)
{
    c->open[k] = 0.0;
    pm_forward(c);
    c->open[k] = 1.0;
    double absent = c->z * pm_power(c->ez - ez) / z;
    a->absent[k] = absent > 1.0 ? 1.0 : absent;
}

static void run_chains(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const pm_page *p = a->page;
    for (ptrdiff_t x = begin; x < end; x++) {
        char *memory = a->memory + (size_t)worker * a->chain_bytes;
        double *start = (double *)memory;
        pm_chain c;
        const ptrdiff_t *exclusive = a->joint ? a->fields : a->list + x;
        int bits = a->joint ? a->bits : a->list[x] >= 0;
        pm_chain_init(&c, memory + sizeof(double) * (size_t)(p->n * p->stride), p, exclusive, bits, 0);
        pm_forward(&c);
        pm_backward(&c, start, a->joint || a->list[x] < 0 ? -1 : a->list[x]);
        a->count[x] = 0;
        int bit = 0;
        for (ptrdiff_t k = 0; k < p->fields; k++) {
            int own = a->joint ? !a->repeated[k] : a->list[x] == k;
            if (own || (a->repeated[k] && (a->joint || a->list[x] < 0))) answer(a, &c, start, x, k, own ? bit : -1);
            bit += own;
        }
        const double z = c.z;
        const int32_t ez = c.ez;
        for (ptrdiff_t k = 0; k < p->fields; k++)
            if (a->repeated[k] && (a->joint || a->list[x] < 0)) closed(a, &c, k, z, ez);
    }
}

int DX_FN(run_posteriors)(int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits,
                          const unsigned char *repeated, double *absent, ptrdiff_t q, const int32_t *given,
                          double *given_p, double floor, ptrdiff_t capacity, int32_t *found, double *found_p,
                          ptrdiff_t *count)
{
    pm_page page;
    job a = {.page = &page, .repeated = repeated, .absent = absent, .given_p = given_p, .floor = floor, .q = q,
             .capacity = capacity, .given = given};
    ptrdiff_t chains = 1;
    dx_mark mark = dx_scratch_mark();
    void *memory = dx_scratch(pm_page_bytes(n, fields));
    a.list = dx_scratch(sizeof(ptrdiff_t) * (size_t)(fields + 1));
    a.count = dx_scratch(sizeof(ptrdiff_t) * (size_t)(fields + 1));
    if (!memory || !a.list || !a.count) goto no_memory;
    pm_page_init(&page, memory, n, fields, logits);
    a.joint = pm_joint(fields, repeated, a.fields, &a.bits);
    if (!a.joint) chains = pm_each(fields, repeated, a.list);
    int workers = a.joint ? 1 : degree, bits = a.joint ? a.bits : 1;
    a.chain_bytes = (sizeof(double) * (size_t)(n * page.stride) + pm_chain_bytes(n, fields, bits, 0) + 63) / 64 * 64;
    a.memory = dx_scratch(a.chain_bytes * (size_t)workers);
    a.found = dx_scratch(sizeof(int32_t) * 3 * (size_t)(chains * capacity) + 1);
    a.found_p = dx_scratch(sizeof(double) * (size_t)(chains * capacity) + 1);
    if (!a.memory || !a.found || !a.found_p) goto no_memory;
    if (workers > 1 && chains > 1) dx_rt.parallel(run_chains, &a, chains, 1, workers);
    else run_chains(&a, 0, chains, 0);
    /* the chains' findings in order of the field: every field belongs to one chain, each chain's are ascending */
    ptrdiff_t total = 0, kept = 0;
    for (ptrdiff_t x = 0; x < chains; x++) total += a.count[x];
    for (ptrdiff_t k = 0; k < fields && kept < capacity; k++)
        for (ptrdiff_t x = 0; x < chains; x++) {
            if (!a.joint && a.list[x] != (repeated[k] ? -1 : k)) continue;
            ptrdiff_t stored = a.count[x] < capacity ? a.count[x] : capacity;
            for (ptrdiff_t y = x * capacity; y < x * capacity + stored && kept < capacity; y++) {
                if (a.found[3 * y] != k) continue;
                for (int z = 0; z < 3; z++) found[3 * kept + z] = a.found[3 * y + z];
                found_p[kept++] = a.found_p[y];
            }
        }
    *count = total;
    dx_scratch_release(mark);
    return DX_OK;
no_memory:
    dx_scratch_release(mark);
    return DX_NO_MEMORY;
}
