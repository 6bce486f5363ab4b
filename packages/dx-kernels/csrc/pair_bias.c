/* pair_bias_forward (pair_bias.h). A task takes some page rows of pairs; their features are made at once and go through
 * the two layers in chunks of pairs. */
#include "pair_hidden.h"

#define CHUNK 256 /* pairs whose hidden values stay in the first-level cache; a multiple of 16 */
#define INPUTS DX_PAIR_FEATURE_COUNT

typedef struct {
    ptrdiff_t n, units, heads, rows, worker_floats;
    const double *real;
    const int32_t *whole;
    const float *weight1, *bias1, *weight2, *bias2;
    float *out, *scratch;
} job;

static void tiles(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    float *hidden = a->scratch + worker * a->worker_floats, *y = hidden + a->units * CHUNK;
    float *features = y + a->heads * CHUNK;
    for (ptrdiff_t tile = begin; tile < end; tile++) {
        const ptrdiff_t i0 = tile * a->rows, i1 = i0 + a->rows < a->n ? i0 + a->rows : a->n, pairs = (i1 - i0) * a->n;
        DX_FN(pair_features_tile)(a->n, a->real, a->whole, i0, i1, features);
        for (ptrdiff_t p = 0; p < pairs; p += CHUNK) {
            /* Columns beyond the last pair are computed from what lies there (the next feature, at the very end zeros)
             * and dropped. */
            const ptrdiff_t count = pairs - p < CHUNK ? pairs - p : CHUNK, padded = (count + 15) / 16 * 16;
            dx_pair_hidden(a->units, INPUTS, padded, a->weight1, a->bias1, features + p, pairs, hidden, CHUNK);
            DX_FN(gemm_direct)(a->heads, padded, a->units, a->weight2, a->units, hidden, CHUNK, y, CHUNK);
            for (ptrdiff_t o = 0; o < a->heads; o++) {
                const float b = a->bias2[o];
                float *to = a->out + (o * a->n + i0) * a->n + p;
                for (ptrdiff_t c = 0; c < count; c++) to[c] = y[o * CHUNK + c] + b;
            }
        }
    }
}

int DX_FN(pair_bias_forward)(int degree, ptrdiff_t n, ptrdiff_t units, ptrdiff_t heads, const double *real,
                             const int32_t *whole, const float *weight1, const float *bias1, const float *weight2,
                             const float *bias2, float *out)
{
    const ptrdiff_t rows = n >= CHUNK ? 1 : CHUNK / n, features = INPUTS * rows * n + 16;
    job a = {.n = n, .units = units, .heads = heads, .rows = rows, .real = real, .whole = whole, .weight1 = weight1,
             .bias1 = bias1, .weight2 = weight2, .bias2 = bias2, .out = out,
             .worker_floats = (units + heads) * CHUNK + (features + 15) / 16 * 16};
    const ptrdiff_t count = (n + rows - 1) / rows;
    const size_t floats = (size_t)(degree * a.worker_floats);
    dx_mark mark = dx_scratch_mark();
    if (!(a.scratch = dx_scratch(sizeof(float) * floats))) return DX_NO_MEMORY;
    memset(a.scratch, 0, sizeof(float) * floats);
    dx_rt.parallel(tiles, &a, count, dx_grain(count, (double)(rows * n) / 16.0 * (double)(units * (INPUTS + heads)), degree),
                   degree);
    dx_scratch_release(mark);
    return DX_OK;
}
