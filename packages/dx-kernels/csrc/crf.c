/* Linear-chain conditional random field in binary64 (docs/readout.md, "Linear-chain CRF"). With tags i, j, emissions
 * e[t][j], transitions A[i][j], and lse(x) = log64(sum of exp64(x - max x), ascending) + max x:
 *
 *   alpha[0][j] = first[j] + e[0][j]          alpha[t][j] = lse over i (alpha[t - 1][i] + A[i][j]) + e[t][j]
 *   beta[n - 1][i] = last[i]                  beta[t][i] = lse over j ((A[i][j] + e[t + 1][j]) + beta[t + 1][j])
 *   log Z = lse over j (alpha[n - 1][j] + last[j])
 *   p[t][j] = exp64((alpha[t][j] + beta[t][j]) - log Z)
 *   pair[t][i][j] = exp64((((alpha[t - 1][i] + A[i][j]) + e[t][j]) + beta[t][j]) - log Z)
 *
 * The loss is log Z - log Z of the taggings that the targets allow, from the same recursions over the allowed tags alone;
 * the gradient is expectation minus expectation under the targets. A sequence's sums over t are ascending, sequences are
 * added in order, each from +0, and one rounding to binary32 ends it. */
#include <dx_numerics/math64.h>
#include "table.h"

#define BLOCK 64 /* sequences whose transition gradients wait to be added */

typedef struct {
    ptrdiff_t tags, longest, from; /* from: first sequence of the block */
    const float *emissions;
    const int32_t *targets, *begin;
    const double *into, *out_of, *first, *last; /* into[j][i] = out_of[i][j] = A[i][j] */
    double factor, *losses, *sums, *scratch, *log_partition, *marginals, *scores;
    float *demissions;
    int32_t *best, *back;
    size_t scratch_each;
} job;

/* The tags of a row that count: its target, or all. */
typedef struct { ptrdiff_t low, high; } range;

static range range_of(const job *a, const int32_t *targets, ptrdiff_t row)
{
    if (!targets || targets[row] < 0) return (range){0, a->tags};
    return (range){targets[row], targets[row] + 1};
}

/* Replaces x by exp64(x - max). Nothing admitted (all -inf) gives -inf; a NaN gives NaN. */
static double log_sum_exp(double *restrict x, ptrdiff_t n)
{
    double m = -__builtin_inf(), sum = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    if (m == -__builtin_inf()) {
        for (ptrdiff_t i = 0; i < n; i++) m = m + x[i];
        return m;
    }
    for (ptrdiff_t i = 0; i < n; i++) x[i] = dx_exp64(x[i] - m);
    for (ptrdiff_t i = 0; i < n; i++) sum = sum + x[i];
    return dx_log64(sum) + m;
}

/* alpha and log Z of rows row..row + n - 1 */
static double forward(const job *a, const int32_t *targets, ptrdiff_t row, ptrdiff_t n, double *alpha, double *x)
{
    const ptrdiff_t c = a->tags;
    range before = {0, 0};
    for (ptrdiff_t t = 0; t < n; t++) {
        const range now = range_of(a, targets, row + t);
        const float *e = a->emissions + (row + t) * c;
        for (ptrdiff_t j = now.low; j < now.high; j++) {
            double reached = a->first[j];
            if (t) {
                const double *from = alpha + (t - 1) * c, *into = a->into + j * c;
                for (ptrdiff_t i = before.low; i < before.high; i++) x[i] = from[i] + into[i];
                reached = log_sum_exp(x + before.low, before.high - before.low);
            }
            alpha[t * c + j] = reached + (double)e[j];
        }
        before = now;
    }
    for (ptrdiff_t j = before.low; j < before.high; j++) x[j] = alpha[(n - 1) * c + j] + a->last[j];
    return log_sum_exp(x + before.low, before.high - before.low);
}

static void backward(const job *a, const int32_t *targets, ptrdiff_t row, ptrdiff_t n, double *beta, double *x)
{
    const ptrdiff_t c = a->tags;
    range after = range_of(a, targets, row + n - 1);
    for (ptrdiff_t j = after.low; j < after.high; j++) beta[(n - 1) * c + j] = a->last[j];
    for (ptrdiff_t t = n - 2; t >= 0; t--) {
        const range now = range_of(a, targets, row + t);
        const float *e = a->emissions + (row + t + 1) * c;
        for (ptrdiff_t i = now.low; i < now.high; i++) {
            const double *out_of = a->out_of + i * c, *later = beta + (t + 1) * c;
            for (ptrdiff_t j = after.low; j < after.high; j++) x[j] = (out_of[j] + (double)e[j]) + later[j];
            beta[t * c + i] = log_sum_exp(x + after.low, after.high - after.low);
        }
        after = now;
    }
}

/* sums: dA (tags, tags), dfirst, dlast: sign times the expectations of one sequence; d (n, tags) likewise, added. */
static void expectations(const job *a, const int32_t *targets, ptrdiff_t row, ptrdiff_t n, double sign, double log_z,
                         const double *alpha, const double *beta, double *d, double *sums)
{
    const ptrdiff_t c = a->tags;
    range before = {0, 0};
    for (ptrdiff_t t = 0; t < n; t++) {
        const range now = range_of(a, targets, row + t);
        const float *e = a->emissions + (row + t) * c;
        for (ptrdiff_t j = now.low; j < now.high; j++)
            d[t * c + j] = d[t * c + j] + sign * dx_exp64((alpha[t * c + j] + beta[t * c + j]) - log_z);
        for (ptrdiff_t i = before.low; i < before.high; i++) {
            const double from = alpha[(t - 1) * c + i], *out_of = a->out_of + i * c, *later = beta + t * c;
            double *restrict to = sums + i * c;
            for (ptrdiff_t j = now.low; j < now.high; j++)
                to[j] = to[j] + sign * dx_exp64((((from + out_of[j]) + (double)e[j]) + later[j]) - log_z);
        }
        before = now;
    }
}

static void loss_task(void *context, ptrdiff_t from, ptrdiff_t to, int worker)
{
    const job *a = context;
    const ptrdiff_t c = a->tags, cells = a->longest * c;
    double *x = a->scratch + (size_t)worker * a->scratch_each, *alpha = x + c, *beta = alpha + cells, *d = beta + cells;
    for (ptrdiff_t k = from; k < to; k++) {
        const ptrdiff_t s = a->from + k, row = a->begin[s], n = a->begin[s + 1] - row;
        double *sums = a->sums + k * (c * c + 2 * c);
        if (a->demissions) for (ptrdiff_t i = 0; i < c * c + 2 * c; i++) sums[i] = 0.0;
        if (n == 0) { a->losses[s] = 0.0; continue; }
        double log_z = forward(a, NULL, row, n, alpha, x);
        if (a->demissions) {
            for (ptrdiff_t i = 0; i < n * c; i++) d[i] = 0.0;
            backward(a, NULL, row, n, beta, x);
            expectations(a, NULL, row, n, 1.0, log_z, alpha, beta, d, sums);
        }
        double log_target = forward(a, a->targets, row, n, alpha, x), loss = log_z - log_target;
        a->losses[s] = loss < 0.0 ? 0.0 : loss;
        if (!a->demissions) continue;
        backward(a, a->targets, row, n, beta, x);
        expectations(a, a->targets, row, n, -1.0, log_target, alpha, beta, d, sums);
        for (ptrdiff_t j = 0; j < c; j++) {
            sums[c * c + j] = d[j];
            sums[c * c + c + j] = d[(n - 1) * c + j];
        }
        for (ptrdiff_t i = 0; i < n * c; i++) a->demissions[row * c + i] = (float)(a->factor * d[i]);
    }
}

/* Both layouts of the transitions, the borders, in binary64; the longest sequence. 0: out of memory. */
static int prepare(job *a, ptrdiff_t sequences, const float *transitions, const float *first, const float *last)
{
    const ptrdiff_t c = a->tags;
    double *memory = dx_scratch(sizeof(double) * (size_t)(2 * c * c + 2 * c));
    if (!memory) return 0;
    double *into = memory, *out_of = into + c * c, *begins = out_of + c * c, *ends = begins + c;
    for (ptrdiff_t i = 0; i < c; i++) {
        for (ptrdiff_t j = 0; j < c; j++) into[j * c + i] = out_of[i * c + j] = (double)transitions[i * c + j];
        begins[i] = (double)first[i];
        ends[i] = (double)last[i];
    }
    a->into = into; a->out_of = out_of; a->first = begins; a->last = ends;
    for (ptrdiff_t s = 0; s < sequences; s++)
        if (a->begin[s + 1] - a->begin[s] > a->longest) a->longest = a->begin[s + 1] - a->begin[s];
    return 1;
}

int DX_FN(crf_loss)(int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions, const float *transitions,
                    const float *first, const float *last, const int32_t *targets, const int32_t *begin, double scale,
                    double denominator, double *losses, float *demissions, float *dtransitions, float *dfirst,
                    float *dlast)
{
    job a = {.tags = tags, .emissions = emissions, .targets = targets, .begin = begin, .factor = scale / denominator,
             .losses = losses, .demissions = demissions};
    const ptrdiff_t width = tags * tags + 2 * tags;
    dx_mark mark = dx_scratch_mark();
    if (!prepare(&a, sequences, transitions, first, last)) return DX_NO_MEMORY;
    a.scratch_each = (size_t)(tags + 3 * a.longest * tags);
    a.scratch = dx_scratch(sizeof(double) * a.scratch_each * (size_t)degree);
    a.sums = dx_scratch(sizeof(double) * (size_t)((demissions ? BLOCK : 0) * width));
    double *total = dx_scratch(sizeof(double) * (size_t)width);
    if (!a.scratch || !a.sums || !total) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    for (ptrdiff_t i = 0; i < width; i++) total[i] = 0.0;
    for (a.from = 0; a.from < sequences; a.from += BLOCK) {
        ptrdiff_t count = sequences - a.from < BLOCK ? sequences - a.from : BLOCK;
        double work = 10.0 * (double)(a.longest * tags * tags);
        dx_rt.parallel(loss_task, &a, count, work * (double)count < 65536.0 ? count : 1, degree);
        for (ptrdiff_t k = 0; demissions && k < count; k++)
            for (ptrdiff_t i = 0; i < width; i++) total[i] = total[i] + a.sums[k * width + i];
    }
    if (demissions) {
        for (ptrdiff_t i = 0; i < tags * tags; i++) dtransitions[i] = (float)(a.factor * total[i]);
        for (ptrdiff_t j = 0; j < tags; j++) {
            dfirst[j] = (float)(a.factor * total[tags * tags + j]);
            dlast[j] = (float)(a.factor * total[tags * tags + tags + j]);
        }
    }
    dx_scratch_release(mark);
    return DX_OK;
}

static void marginals_task(void *context, ptrdiff_t from, ptrdiff_t to, int worker)
{
    const job *a = context;
    const ptrdiff_t c = a->tags, cells = a->longest * c;
    double *x = a->scratch + (size_t)worker * a->scratch_each, *alpha = x + c, *beta = alpha + cells;
    for (ptrdiff_t s = from; s < to; s++) {
        const ptrdiff_t row = a->begin[s], n = a->begin[s + 1] - row;
        if (n == 0) { a->log_partition[s] = 0.0; continue; }
        double log_z = a->log_partition[s] = forward(a, NULL, row, n, alpha, x);
        backward(a, NULL, row, n, beta, x);
        for (ptrdiff_t i = 0; i < n * c; i++) a->marginals[row * c + i] = dx_exp64((alpha[i] + beta[i]) - log_z);
    }
}

int DX_FN(crf_marginals)(int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions,
                         const float *transitions, const float *first, const float *last, const int32_t *begin,
                         double *log_partition, double *marginals)
{
    job a = {.tags = tags, .emissions = emissions, .begin = begin, .log_partition = log_partition,
             .marginals = marginals};
    dx_mark mark = dx_scratch_mark();
    if (!prepare(&a, sequences, transitions, first, last)) return DX_NO_MEMORY;
    a.scratch_each = (size_t)(tags + 2 * a.longest * tags);
    a.scratch = dx_scratch(sizeof(double) * a.scratch_each * (size_t)degree);
    if (!a.scratch) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    dx_rt.parallel(marginals_task, &a, sequences, dx_grain(sequences, 10.0 * (double)(a.longest * tags * tags), degree),
                   degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* Best path by max-plus; the lowest tag wins ties, at the end and among the tags before. */
static void decode_task(void *context, ptrdiff_t from, ptrdiff_t to, int worker)
{
    const job *a = context;
    const ptrdiff_t c = a->tags;
    double *v = a->scratch + (size_t)worker * a->scratch_each;
    int32_t *back = a->back + (size_t)worker * (size_t)(a->longest * c);
    for (ptrdiff_t s = from; s < to; s++) {
        const ptrdiff_t row = a->begin[s], n = a->begin[s + 1] - row;
        double best = -__builtin_inf();
        int32_t tag = -1;
        for (ptrdiff_t t = 0; t < n; t++) {
            const float *e = a->emissions + (row + t) * c;
            const double *before = v + (~t & 1) * c;
            double *now = v + (t & 1) * c;
            for (ptrdiff_t j = 0; j < c; j++) {
                double reached = a->first[j];
                if (t) {
                    const double *into = a->into + j * c;
                    int32_t chosen = 0;
                    reached = before[0] + into[0];
                    for (ptrdiff_t i = 1; i < c; i++) {
                        double w = before[i] + into[i];
                        if (w > reached) { reached = w; chosen = (int32_t)i; }
                    }
                    back[t * c + j] = chosen;
                }
                now[j] = reached + (double)e[j];
            }
        }
        for (ptrdiff_t j = 0; n && j < c; j++) {
            double w = v[(~n & 1) * c + j] + a->last[j];
            if (w > best) { best = w; tag = (int32_t)j; }
        }
        a->scores[s] = n ? best : 0.0;
        for (ptrdiff_t t = n - 1; t >= 0; t--) {
            a->best[row + t] = tag;
            if (t && tag >= 0) tag = back[t * c + tag];
        }
    }
}

int DX_FN(crf_decode)(int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions, const float *transitions,
                      const float *first, const float *last, const int32_t *begin, double *scores, int32_t *best)
{
    job a = {.tags = tags, .emissions = emissions, .begin = begin, .scores = scores, .best = best};
    dx_mark mark = dx_scratch_mark();
    if (!prepare(&a, sequences, transitions, first, last)) return DX_NO_MEMORY;
    a.scratch_each = (size_t)(2 * tags);
    a.scratch = dx_scratch(sizeof(double) * a.scratch_each * (size_t)degree);
    a.back = dx_scratch(sizeof(int32_t) * (size_t)(a.longest * tags) * (size_t)degree);
    if (!a.scratch || !a.back) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    dx_rt.parallel(decode_task, &a, sequences, dx_grain(sequences, 2.0 * (double)(a.longest * tags * tags), degree),
                   degree);
    dx_scratch_release(mark);
    return DX_OK;
}
