/* Table rows by id, and their gradient (seed 000 "Embeddings"). The gradient is added in word order with plain
 * additions on one thread, starting from +0: the one sum of the backward pass that is not a dot16. */
#include "table.h"

typedef struct {
    ptrdiff_t n, d;
    int padding, count;
    const float *const *tables;
    const int32_t *ids;
    const float *x;
    float *y;
} job;

static void gather(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        if (a->ids[i] == a->padding) memset(a->y + i * d, 0, sizeof(float) * (size_t)d);
        else memcpy(a->y + i * d, a->tables[0] + a->ids[i] * d, sizeof(float) * (size_t)d);
    }
}

static void gather_sum(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) {
        float *y = a->y + i * d;
        int k = 0;
        if (!a->x) memcpy(y, a->tables[k++] + a->ids[i] * d, sizeof(float) * (size_t)d);
        else if (a->x != a->y) memcpy(y, a->x + i * d, sizeof(float) * (size_t)d);
        for (; k < a->count; k++) {
            const float *restrict row = a->tables[k] + a->ids[k * a->n + i] * d;
            for (ptrdiff_t j = 0; j < d; j++) y[j] = y[j] + row[j];
        }
    }
}

int DX_FN(embedding_forward)(int degree, ptrdiff_t n, ptrdiff_t d, const float *table, const int32_t *ids,
                             int padding, float *y)
{
    job a = {.n = n, .d = d, .padding = padding, .tables = &table, .ids = ids, .y = y};
    dx_rt.parallel(gather, &a, n, dx_grain(n, 0.25 * (double)d, degree), degree);
    return DX_OK;
}

int DX_FN(embedding_sum_forward)(int degree, ptrdiff_t n, ptrdiff_t d, int count, const float *const *tables,
                                 const int32_t *ids, const float *x, float *y)
{
    job a = {.n = n, .d = d, .count = count, .tables = tables, .ids = ids, .x = x, .y = y};
    dx_rt.parallel(gather_sum, &a, n, dx_grain(n, 0.25 * (double)(d * count), degree), degree);
    return DX_OK;
}

int DX_FN(embedding_backward)(ptrdiff_t n, ptrdiff_t d, ptrdiff_t rows, const float *dy, const int32_t *ids,
                              int padding, float *dtable)
{
    memset(dtable, 0, sizeof(float) * (size_t)(rows * d));
    for (ptrdiff_t i = 0; i < n; i++) {
        if (ids[i] == padding) continue;
        float *restrict row = dtable + ids[i] * d;
        const float *restrict from = dy + i * d;
        for (ptrdiff_t j = 0; j < d; j++) row[j] = row[j] + from[j];
    }
    return DX_OK;
}
