/* Test hook: a parallel region that records what the pool did with it. */
#include "runtime_impl.h"
#include <stdatomic.h>

typedef struct {
    int *worker, *visits;
    _Atomic int busy[DX_MAX_DEGREE];
    _Atomic int clashes, bad_mode, nested_items;
    int spin, nested;
} probe;

static void count_nested(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    probe *p = context;
    if (worker != 0) atomic_fetch_add(&p->clashes, 1); /* a nested region is serial */
    atomic_fetch_add(&p->nested_items, (int)(end - begin));
}

static void record(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    probe *p = context;
    if (atomic_exchange(&p->busy[worker], 1)) atomic_fetch_add(&p->clashes, 1);
    if (!dx_fp_is_ieee()) atomic_fetch_add(&p->bad_mode, 1);
    for (ptrdiff_t i = begin; i < end; i++) {
        p->worker[i] = worker;
        p->visits[i]++;
        for (volatile int k = 0; k < p->spin;) k = k + 1;
    }
    if (p->nested) dx_parallel(count_nested, p, p->nested, 1, DX_MAX_DEGREE);
    atomic_store(&p->busy[worker], 0);
}

void dx_parallel_probe(int *worker, int *visits, ptrdiff_t count, ptrdiff_t grain, int degree, int spin, int nested,
                       int report[3])
{
    probe p = {.worker = worker, .visits = visits, .spin = spin, .nested = nested};
    uint64_t saved = dx_fp_enter();
    dx_parallel(record, &p, count, grain, degree);
    dx_fp_leave(saved);
    report[0] = p.clashes;
    report[1] = p.bad_mode;
    report[2] = p.nested_items;
}
