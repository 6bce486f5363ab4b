/* MaxSim: for each query row the largest dot16 with a row of the document, added over the query's rows by sum16.
 *
 * Documents are the rows of the product and one query's rows its columns, so that a block of document rows needs no
 * packing and the maximum runs down the block with the query's rows in vector lanes. A row that is larger replaces the
 * maximum (the first of equal ones stays); a NaN replaces a number and is never replaced. */
#include <dx_numerics/dot.h>
#include "gemm_kernel.h"
#include "table.h"

#define BLOCK 64 /* document rows whose similarities stay in the cache */

static inline ptrdiff_t up16(ptrdiff_t n) { return (n + 15) / 16 * 16; }

typedef struct {
    const dx_maxsim *a;
    ptrdiff_t widest, worker_floats;
    const ptrdiff_t *packed_at; /* of query: where its packed rows start */
    const float *packed;
    float *scratch;
} job;

/* best, winner := the maximum of them and of row number at. */
DX_INLINE void take_larger(ptrdiff_t m, const float *restrict c, int32_t at, float *restrict best,
                           int32_t *restrict winner)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        const int larger = (c[i] > best[i]) | ((c[i] != c[i]) & (best[i] == best[i]));
        winner[i] = larger ? at : winner[i];
        best[i] = larger ? c[i] : best[i];
    }
}

/* Documents begin..end-1 against query s. */
static void one_query(const job *c, ptrdiff_t s, ptrdiff_t begin, ptrdiff_t end, float *sims)
{
    const dx_maxsim *a = c->a;
    const ptrdiff_t first = a->query_starts[s], m = a->query_starts[s + 1] - first, width = up16(m);
    const ptrdiff_t last = a->document_starts[end];
    float *best = sims + BLOCK * c->widest;
    int32_t *winner = (int32_t *)(best + c->widest);
    ptrdiff_t b = begin;
    for (ptrdiff_t r = a->document_starts[begin]; r < last; r += BLOCK) {
        const ptrdiff_t rows = last - r < BLOCK ? last - r : BLOCK;
        DX_FN(gemm_rows)(rows, width, a->d, a->docs + r * a->d, a->d, c->packed + c->packed_at[s], sims, width);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const ptrdiff_t within = r + i - a->document_starts[b];
            if (within == 0) {
                memcpy(best, sims + i * width, sizeof(float) * (size_t)width);
                memset(winner, 0, sizeof(int32_t) * (size_t)width);
            } else
                take_larger(width, sims + i * width, (int32_t)within, best, winner);
            if (r + i + 1 == a->document_starts[b + 1]) {
                a->scores[s * a->documents + b] = dx_sum16(best, m);
                for (ptrdiff_t j = 0; j < m; j++) a->winners[(first + j) * a->documents + b] = winner[j];
                b++;
            }
        }
    }
}

static void forward_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    for (ptrdiff_t s = 0; s < c->a->queries; s++) one_query(c, s, begin, end, c->scratch + worker * c->worker_floats);
}

int DX_FN(maxsim_forward)(int degree, const dx_maxsim *a)
{
    const ptrdiff_t rows = a->query_starts[a->queries];
    job c = {.a = a};
    dx_mark mark = dx_scratch_mark();
    ptrdiff_t *at = dx_scratch(sizeof(ptrdiff_t) * (size_t)(a->queries + 1)), floats = 0;
    if (!at) return DX_NO_MEMORY;
    for (ptrdiff_t s = 0; s < a->queries; s++) {
        const ptrdiff_t m = up16(a->query_starts[s + 1] - a->query_starts[s]);
        at[s] = floats;
        floats += up16(DX_FN(gemm_packed_floats)(a->d, m));
        if (m > c.widest) c.widest = m;
    }
    c.worker_floats = (BLOCK + 2) * c.widest;
    float *packed = dx_scratch(sizeof(float) * (size_t)floats);
    c.scratch = dx_scratch(sizeof(float) * (size_t)(degree * c.worker_floats));
    if (!packed || !c.scratch) {
        dx_scratch_release(mark);
        return DX_NO_MEMORY;
    }
    for (ptrdiff_t s = 0; s < a->queries; s++) {
        const ptrdiff_t first = a->query_starts[s], m = a->query_starts[s + 1] - first;
        DX_FN(gemm_pack_part)(1, a->d, m, up16(m), a->q + first * a->d, a->d, packed + at[s]);
    }
    c.packed_at = at;
    c.packed = packed;
    const double work = (double)a->document_starts[a->documents] / (double)a->documents * (double)rows
                        * (1.0 + 0.0625 * (double)a->d);
    dx_rt.parallel(forward_task, &c, a->documents, dx_grain(a->documents, work, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* --- adjoint ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const dx_maxsim *a;
    const int32_t *query_of;           /* of query row */
    const int32_t *counts, *order;     /* per document: how many query rows chose each of its rows, and which, in order */
    float *scratch;
} back_job;

/* out[c] := the tree of 16 lanes of d floats, + 0: what executed padding makes of a zero's sign. */
DX_INLINE void join_lanes(ptrdiff_t d, float *restrict lanes, float *restrict out)
{
    for (ptrdiff_t h = 8; h; h >>= 1)
        for (ptrdiff_t i = 0; i < h * d; i++) lanes[i] = lanes[i] + lanes[i + h * d];
    for (ptrdiff_t i = 0; i < d; i++) out[i] = lanes[i];
}

/* lane[c] = fma(g, x[c], lane[c]) */
DX_INLINE void add_product(ptrdiff_t d, float g, const float *x, float *lane)
{
    ptrdiff_t i = 0;
    const dx_vf factor = dx_vset(g);
    for (; i + DX_VL <= d; i += DX_VL) dx_vstore(lane + i, dx_vfma(factor, dx_vload(x + i), dx_vload(lane + i)));
    if (i < d) {
        float part[DX_VL] = {0}, row[DX_VL] = {0};
        memcpy(part, lane + i, sizeof(float) * (size_t)(d - i));
        memcpy(row, x + i, sizeof(float) * (size_t)(d - i));
        dx_vstore(part, dx_vfma(factor, dx_vload(row), dx_vload(part)));
        memcpy(lane + i, part, sizeof(float) * (size_t)(d - i));
    }
}

/* The padding of a dot of count terms: lanes from count mod 16 on get fma(+0, +0, lane). */
static void pad_lanes(ptrdiff_t d, ptrdiff_t count, float *lanes)
{
    const ptrdiff_t tail = count % 16;
    if (tail)
        for (ptrdiff_t i = tail * d; i < 16 * d; i++) lanes[i] = lanes[i] + 0.0f;
}

static void query_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const back_job *c = context;
    const dx_maxsim *a = c->a;
    const ptrdiff_t d = a->d;
    float *lanes = c->scratch + worker * 16 * d;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *g = a->dscores + c->query_of[i] * a->documents;
        memset(lanes, 0, sizeof(float) * (size_t)(16 * d));
        for (ptrdiff_t b = 0; b < a->documents; b++) {
            const ptrdiff_t row = a->document_starts[b] + a->winners_in[i * a->documents + b];
            add_product(d, g[b], a->docs + row * d, lanes + (b & 15) * d);
        }
        pad_lanes(d, a->documents, lanes);
        join_lanes(d, lanes, a->dq + i * d);
    }
}

static void document_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const back_job *c = context;
    const dx_maxsim *a = c->a;
    const ptrdiff_t d = a->d, rows = a->query_starts[a->queries];
    float *lanes = c->scratch + worker * 16 * d;
    for (ptrdiff_t b = begin; b < end; b++) {
        const int32_t *order = c->order + b * rows;
        for (ptrdiff_t j = a->document_starts[b]; j < a->document_starts[b + 1]; j++) {
            const ptrdiff_t count = c->counts[j];
            if (count == 0) {
                memset(a->ddocs + j * d, 0, sizeof(float) * (size_t)d);
                continue;
            }
            memset(lanes, 0, sizeof(float) * (size_t)(16 * d));
            for (ptrdiff_t r = 0; r < count; r++) {
                const ptrdiff_t i = order[r];
                add_product(d, a->dscores[c->query_of[i] * a->documents + b], a->q + i * d, lanes + (r & 15) * d);
            }
            pad_lanes(d, count, lanes);
            join_lanes(d, lanes, a->ddocs + j * d);
            order += count;
        }
    }
}

/* For each document the query rows by the row they chose, stable: a counting sort. */
static void sort_winners(const dx_maxsim *a, int32_t *counts, int32_t *order)
{
    const ptrdiff_t rows = a->query_starts[a->queries];
    memset(counts, 0, sizeof(int32_t) * (size_t)a->document_starts[a->documents]);
    for (ptrdiff_t b = 0; b < a->documents; b++) {
        int32_t *of = counts + a->document_starts[b], *here = order + b * rows, at = 0;
        const ptrdiff_t n = a->document_starts[b + 1] - a->document_starts[b];
        for (ptrdiff_t i = 0; i < rows; i++) of[a->winners_in[i * a->documents + b]]++;
        for (ptrdiff_t j = 0; j < n; j++) { /* counts become starts, then, row by row, ends */
            const int32_t count = of[j];
            of[j] = at;
            at += count;
        }
        for (ptrdiff_t i = 0; i < rows; i++) here[of[a->winners_in[i * a->documents + b]]++] = (int32_t)i;
        for (ptrdiff_t j = n - 1; j > 0; j--) of[j] -= of[j - 1];
    }
}

int DX_FN(maxsim_backward)(int degree, const dx_maxsim *a)
{
    const ptrdiff_t rows = a->query_starts[a->queries], d = a->d;
    dx_mark mark = dx_scratch_mark();
    int32_t *query_of = dx_scratch(sizeof(int32_t) * (size_t)rows);
    int32_t *counts = dx_scratch(sizeof(int32_t) * (size_t)a->document_starts[a->documents]);
    int32_t *order = a->ddocs ? dx_scratch(sizeof(int32_t) * (size_t)(rows * a->documents)) : counts;
    back_job c = {.a = a, .query_of = query_of, .counts = counts, .order = order,
                  .scratch = dx_scratch(sizeof(float) * (size_t)(degree * 16 * d))};
    int status = query_of && counts && order && c.scratch ? DX_OK : DX_NO_MEMORY;
    if (status == DX_OK) {
        for (ptrdiff_t s = 0; s < a->queries; s++)
            for (ptrdiff_t i = a->query_starts[s]; i < a->query_starts[s + 1]; i++) query_of[i] = (int32_t)s;
        if (a->dq) {
            const double work = (double)((a->documents + 16) * d) / 8;
            dx_rt.parallel(query_task, &c, rows, dx_grain(rows, work, degree), degree);
        }
        if (a->ddocs) {
            sort_winners(a, counts, order);
            const double work = (double)((rows + 16) * d) / 8;
            dx_rt.parallel(document_task, &c, a->documents, dx_grain(a->documents, work, degree), degree);
        }
    }
    dx_scratch_release(mark);
    return status;
}
