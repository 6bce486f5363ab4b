/* The log-sum-exp form of late interaction, in binary64 for each query row i and document, its rows j ascending:
 *
 *   z_j = a_ij / temperature      m = largest z      e_j = exp64(z_j - m)      S = e_0 + e_1 + … from +0
 *   value_i = temperature * (m + log64(S))           score = round(sum of value_i, i ascending, from +0)
 *   share_ij = round(e_j / S), below 2^-126: +0      adjoint: g_ji = round(share * dscore), then two products */
#include <dx_numerics/math64.h>
#include "gemm_kernel.h"
#include "table.h"

typedef struct {
    const dx_maxsim *a;
    ptrdiff_t longest, widest, packed, worker_floats;
    float *scratch;
} job;

static inline ptrdiff_t up16(ptrdiff_t n) { return (n + 15) / 16 * 16; }

/* Columns of sims (n, width), m of them: their values; shares into out (rows apart by stride), unless NULL. */
static double reduce(const job *c, ptrdiff_t n, ptrdiff_t m, ptrdiff_t width, const float *sims, double *z, float *out,
                     ptrdiff_t stride)
{
    const double temperature = c->a->temperature;
    double score = 0.0;
    for (ptrdiff_t i = 0; i < m; i++) {
        double largest = -__builtin_inf(), sum = 0.0;
        for (ptrdiff_t j = 0; j < n; j++) z[j] = (double)sims[j * width + i] / temperature;
        for (ptrdiff_t j = 0; j < n; j++) largest = z[j] > largest ? z[j] : largest;
        for (ptrdiff_t j = 0; j < n; j++) z[j] = dx_exp64(z[j] - largest);
        for (ptrdiff_t j = 0; j < n; j++) sum = sum + z[j];
        score = score + temperature * (largest + dx_log64(sum));
        if (out)
            for (ptrdiff_t j = 0; j < n; j++) {
                const float share = (float)(z[j] / sum);
                out[j * stride + i] = share < 0x1p-126f ? 0.0f : share;
            }
    }
    return score;
}

static void forward_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *c = context;
    const dx_maxsim *a = c->a;
    const ptrdiff_t all = a->query_starts[a->queries];
    float *packed = c->scratch + worker * c->worker_floats, *sims = packed + c->packed;
    double *z = (double *)(sims + up16(c->longest * c->widest));
    for (ptrdiff_t s = 0; s < a->queries; s++) {
        const ptrdiff_t first = a->query_starts[s], m = a->query_starts[s + 1] - first, width = up16(m);
        DX_FN(gemm_pack_part)(1, a->d, m, width, a->q + first * a->d, a->d, packed);
        for (ptrdiff_t b = begin; b < end; b++) {
            const ptrdiff_t row = a->document_starts[b], n = a->document_starts[b + 1] - row;
            DX_FN(gemm_rows)(n, width, a->d, a->docs + row * a->d, a->d, packed, sims, width);
            float *shares = a->shares ? a->shares + row * all + first : NULL;
            a->scores[s * a->documents + b] = (float)reduce(c, n, m, width, sims, z, shares, all);
        }
    }
}

int DX_FN(maxsim_lse_forward)(int degree, const dx_maxsim *a)
{
    const ptrdiff_t rows = a->query_starts[a->queries];
    job c = {.a = a};
    for (ptrdiff_t s = 0; s < a->queries; s++) {
        const ptrdiff_t m = up16(a->query_starts[s + 1] - a->query_starts[s]);
        if (m > c.widest) c.widest = m;
    }
    for (ptrdiff_t b = 0; b < a->documents; b++) {
        const ptrdiff_t n = a->document_starts[b + 1] - a->document_starts[b];
        if (n > c.longest) c.longest = n;
    }
    c.packed = up16(DX_FN(gemm_packed_floats)(a->d, c.widest));
    c.worker_floats = c.packed + up16(c.longest * c.widest) + up16(2 * c.longest);
    dx_mark mark = dx_scratch_mark();
    c.scratch = dx_scratch(sizeof(float) * (size_t)(degree * c.worker_floats));
    if (!c.scratch) return DX_NO_MEMORY;
    const double work = (double)a->document_starts[a->documents] / (double)a->documents * (double)rows
                        * (16.0 + 0.0625 * (double)a->d);
    dx_rt.parallel(forward_task, &c, a->documents, dx_grain(a->documents, work, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

typedef struct { const dx_maxsim *a; float *g; } spread_job;

/* g[row][i] := shares[row][i] * dscores[query of i][document of row], documents begin..end-1. */
static void spread_task(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const spread_job *c = context;
    const dx_maxsim *a = c->a;
    const ptrdiff_t all = a->query_starts[a->queries];
    (void)worker;
    for (ptrdiff_t b = begin; b < end; b++)
        for (ptrdiff_t row = a->document_starts[b]; row < a->document_starts[b + 1]; row++)
            for (ptrdiff_t s = 0; s < a->queries; s++) {
                const float upstream = a->dscores[s * a->documents + b];
                for (ptrdiff_t i = a->query_starts[s]; i < a->query_starts[s + 1]; i++)
                    c->g[row * all + i] = a->shares_in[row * all + i] * upstream;
            }
}

int DX_FN(maxsim_lse_backward)(int degree, const dx_maxsim *a)
{
    const ptrdiff_t all = a->query_starts[a->queries], rows = a->document_starts[a->documents], d = a->d;
    dx_mark mark = dx_scratch_mark();
    spread_job c = {a, dx_scratch(sizeof(float) * (size_t)(all * rows))};
    int status = c.g ? DX_OK : DX_NO_MEMORY;
    if (status == DX_OK)
        dx_rt.parallel(spread_task, &c, a->documents, dx_grain(a->documents, (double)(all * 64), degree), degree);
    if (status == DX_OK && a->dq)
        status = DX_FN(gemm)(degree, 1, 0, all, d, rows, c.g, all, a->docs, d, NULL, a->dq, d, NULL, NULL);
    if (status == DX_OK && a->ddocs)
        status = DX_FN(gemm)(degree, 0, 0, rows, d, all, c.g, all, a->q, d, NULL, a->ddocs, d, NULL, NULL);
    dx_scratch_release(mark);
    return status;
}
