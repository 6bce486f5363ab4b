/* pair_bias_forward (pair_bias.h): the features of a chunk of pairs and the two layers over them, while they are in the
 * first-level cache. Its gradients are in pair_mlp.c. */
#include "pair_hidden.h"

#define CHUNK 256 /* pairs; a multiple of 16 */
#define INPUTS DX_PAIR_FEATURE_COUNT

typedef struct {
    ptrdiff_t n, units, heads, worker_floats;
    const double *real;
    const int32_t *whole;
    const float *weight1, *bias1, *weight2, *bias2;
    float *out, *scratch;
} job;

static void chunks(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t pairs = a->n * a->n;
    float *hidden = a->scratch + worker * a->worker_floats, *y = hidden + a->units * CHUNK;
    float *features = y + a->heads * CHUNK;
    for (ptrdiff_t p = begin * CHUNK; p < pairs && p < end * CHUNK; p += CHUNK) {
        /* Columns beyond the last pair are computed from what lies there and dropped. */
        const ptrdiff_t count = pairs - p < CHUNK ? pairs - p : CHUNK, padded = (count + 15) / 16 * 16;
        DX_FN(pair_features_part)(a->n, a->real, a->whole, p, count, CHUNK, features);
        dx_pair_hidden(a->units, INPUTS, padded, a->weight1, a->bias1, features, CHUNK, hidden, CHUNK);
        DX_FN(gemm_direct)(a->heads, padded, a->units, a->weight2, a->units, hidden, CHUNK, y, CHUNK);
        for (ptrdiff_t o = 0; o < a->heads; o++) {
            const float b = a->bias2[o];
            float *to = a->out + o * pairs + p;
            for (ptrdiff_t c = 0; c < count; c++) to[c] = y[o * CHUNK + c] + b;
        }
    }
}

int DX_FN(pair_bias_forward)(int degree, ptrdiff_t n, ptrdiff_t units, ptrdiff_t heads, const double *real,
                             const int32_t *whole, const float *weight1, const float *bias1, const float *weight2,
                             const float *bias2, float *out)
{
    job a = {.n = n, .units = units, .heads = heads, .real = real, .whole = whole, .weight1 = weight1, .bias1 = bias1,
             .weight2 = weight2, .bias2 = bias2, .out = out, .worker_floats = (units + heads + INPUTS) * CHUNK};
    const ptrdiff_t count = (n * n + CHUNK - 1) / CHUNK;
    const size_t floats = (size_t)(degree * a.worker_floats);
    dx_mark mark = dx_scratch_mark();
    if (!(a.scratch = dx_scratch(sizeof(float) * floats))) return DX_NO_MEMORY;
    memset(a.scratch, 0, sizeof(float) * floats);
    dx_rt.parallel(chunks, &a, count, dx_grain(count, CHUNK / 16.0 * (double)(units * (INPUTS + heads)), degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}
