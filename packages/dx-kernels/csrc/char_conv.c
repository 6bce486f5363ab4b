/* Character convolution and maximum over the word (seed 000 "Character convolution").
 *
 *   z[p][o] = dot16 over (tap, channel) of character row p - left + tap, weight[o]      left = (taps - 1) / 2
 *   y[o] = max over positions p with id != 0 of relu(z[p][o] + bias[o]), the first of equal ones; NaN wins
 *
 * Rows outside the word and rows of id 0 are +0. Words are laid out one after another with gap zero rows between, so
 * that the taps of a position are taps * channels consecutive floats and a matrix product reads them in place.
 *
 * Backward, with dz[w][o] = relu's gradient of dy at the maximum, +0 for a word without characters:
 *   dweight[o][tap][channel] = dot16 over words of dz[w][o], character row argmax - left + tap
 *   dbias[o] = sum16 over words of dz[w][o]
 *   gradient of the character row at q = dot16 over (j, o) of dz at position q - right + j, weight[o][taps - 1 - j]
 *   dtable = those, added by id in word order, then position order (embedding_backward) */
#include <dx_numerics/dot.h>
#include "activations_inline.h"
#include "table.h"

#define BLOCK_ROWS 64 /* positions whose products stay in the first-level cache */

typedef struct {
    ptrdiff_t words, length, channels, taps, out, left, gap, width; /* width: out rounded up to whole vectors */
    const float *table, *bias, *packed; /* bias: whole vectors, zeros where there is none (relu takes -0 to +0) */
    const int32_t *ids;
    float *y, *scratch, *dweight;
    int32_t *argmax;
    ptrdiff_t worker_floats;
    const float *x, *dz; /* backward */
    const int32_t *where;
    const ptrdiff_t *start;
} job;

static job make_job(ptrdiff_t words, ptrdiff_t length, ptrdiff_t channels, ptrdiff_t taps, ptrdiff_t out)
{
    return (job){.words = words, .length = length, .channels = channels, .taps = taps, .out = out,
                 .left = (taps - 1) / 2, .gap = taps / 2, .width = (out + DX_VL - 1) / DX_VL * DX_VL};
}

/* Positions up to the last character. */
static ptrdiff_t extent(const int32_t *ids, ptrdiff_t length)
{
    while (length > 0 && ids[length - 1] == 0) length--;
    return length;
}

static void put_rows(const job *a, float *x, const int32_t *ids, ptrdiff_t n)
{
    const ptrdiff_t c = a->channels;
    for (ptrdiff_t p = 0; p < n; p++) {
        if (ids[p]) memcpy(x + p * c, a->table + ids[p] * c, sizeof(float) * (size_t)c);
        else memset(x + p * c, 0, sizeof(float) * (size_t)c);
    }
}

/* Maximum over the word's rows z for the vector of outputs at o (columns beyond the last output are dropped). The
 * maximum starts below every relu, so that the first character is taken, and NaN is taken whenever it has none yet. */
DX_INLINE void pool_vector(const job *a, const int32_t *ids, ptrdiff_t n, const float *z, ptrdiff_t o, const int wanted,
                           float *y, int32_t *where)
{
    const dx_vf zero = {0}, bias = dx_vload(a->bias + o);
    dx_vf best = dx_vset(-1.0f);
    dx_vi at = (dx_vi){0} - 1;
    for (ptrdiff_t p = 0; p < n; p++) {
        if (ids[p] == 0) continue;
        dx_vf v = dx_vload(z + p * a->width + o) + bias;
        v = dx_vselect(v < zero, zero, v + zero); /* dx_relu */
        const dx_vi take = ~(v <= best) & (best == best);
        best = dx_vselect(take, v, best);
        if (wanted) at = (at & ~take) | (((dx_vi){0} + (int32_t)p) & take);
    }
    best = dx_vselect(best < zero, zero, best); /* no characters */
    if (o + DX_VL <= a->out) {
        dx_vstore(y + o, best);
        if (wanted) *(dx_vi_any *)(where + o) = at;
    } else
        for (int l = 0; o + l < a->out; l++) {
            y[o + l] = best[l];
            if (wanted) where[o + l] = at[l];
        }
}

static void pool(const job *a, ptrdiff_t w, ptrdiff_t n, const float *z)
{
    const int32_t *ids = a->ids + w * a->length;
    float *y = a->y + w * a->out;
    if (a->argmax)
        for (ptrdiff_t o = 0; o < a->width; o += DX_VL)
            pool_vector(a, ids, n, z, o, 1, y, a->argmax + w * a->out);
    else
        for (ptrdiff_t o = 0; o < a->width; o += DX_VL) pool_vector(a, ids, n, z, o, 0, y, NULL);
}

static void forward_words(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t c = a->channels, most = a->length > BLOCK_ROWS ? a->length : BLOCK_ROWS;
    float *x = a->scratch + worker * a->worker_floats, *z = x + (most + 2 * a->gap + 1) * c;
    memset(x, 0, sizeof(float) * (size_t)(a->gap * c));
    while (begin < end) {
        ptrdiff_t rows = 0, last = begin;
        for (; last < end; last++) {
            const int32_t *ids = a->ids + last * a->length;
            ptrdiff_t n = extent(ids, a->length);
            if (last > begin && rows + n > most) break;
            put_rows(a, x + (a->gap + rows) * c, ids, n);
            memset(x + (a->gap + rows + n) * c, 0, sizeof(float) * (size_t)(a->gap * c));
            rows += n + a->gap;
        }
        rows -= a->gap;
        DX_FN(gemm_rows)(rows, a->width, a->taps * c, x + (a->gap - a->left) * c, c, a->packed, z, a->width);
        for (rows = 0; begin < last; begin++) {
            ptrdiff_t n = extent(a->ids + begin * a->length, a->length);
            pool(a, begin, n, z + rows * a->width);
            rows += n + a->gap;
        }
    }
}

int DX_FN(char_conv_forward)(int degree, ptrdiff_t words, ptrdiff_t length, ptrdiff_t channels, ptrdiff_t taps,
                             ptrdiff_t out, const float *table, const int32_t *ids, const float *weight,
                             const float *bias, float *y, int32_t *argmax)
{
    job a = make_job(words, length, channels, taps, out);
    const ptrdiff_t most = length > BLOCK_ROWS ? length : BLOCK_ROWS;
    dx_mark mark = dx_scratch_mark();
    a.table = table, a.ids = ids, a.y = y, a.argmax = argmax;
    a.worker_floats = ((most + 2 * a.gap + 1) * channels + (most + a.gap) * a.width + 15) / 16 * 16;
    float *packed = dx_scratch(sizeof(float) * (size_t)DX_FN(gemm_packed_floats)(taps * channels, a.width));
    float *padded_bias = dx_scratch(sizeof(float) * (size_t)a.width);
    a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * a.worker_floats));
    if (!packed || !padded_bias || !a.scratch) {
        dx_scratch_release(mark);
        return DX_NO_MEMORY;
    }
    DX_FN(gemm_pack_part)(1, taps * channels, out, a.width, weight, taps * channels, packed);
    for (ptrdiff_t o = 0; o < a.width; o++) padded_bias[o] = bias && o < out ? bias[o] : 0.0f;
    a.packed = packed, a.bias = padded_bias;
    dx_rt.parallel(forward_words, &a, words, dx_grain(words, (double)(length * out * taps * channels) / 16, degree),
                   degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* Channels begin..end-1 of dweight: the 16 lanes of every (tap, channel) in scratch. */
static void weight_gradient(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t k = a->taps * a->channels, padded = (k + DX_VL - 1) / DX_VL * DX_VL;
    float *lanes = a->scratch + worker * a->worker_floats;
    for (ptrdiff_t o = begin; o < end; o++) {
        memset(lanes, 0, sizeof(float) * (size_t)(16 * padded));
        for (ptrdiff_t w = 0; w < (a->words + 15) / 16 * 16; w++) {
            float *lane = lanes + (w & 15) * padded;
            int32_t p = w < a->words ? a->where[w * a->out + o] : -1;
            if (p < 0) {
                for (ptrdiff_t i = 0; i < padded; i += DX_VL)
                    dx_vstore(lane + i, dx_vfma((dx_vf){0}, (dx_vf){0}, dx_vload(lane + i)));
                continue;
            }
            const float *x = a->x + (a->start[w] + p - a->left) * a->channels;
            dx_vf dz = dx_vset(a->dz[w * a->out + o]);
            for (ptrdiff_t i = 0; i < padded; i += DX_VL)
                dx_vstore(lane + i, dx_vfma(dz, dx_vload(x + i), dx_vload(lane + i)));
        }
        for (int h = 8; h; h >>= 1)
            for (ptrdiff_t i = 0; i < h * padded; i++) lanes[i] = lanes[i] + lanes[i + h * padded];
        memcpy(a->dweight + o * k, lanes, sizeof(float) * (size_t)k);
    }
}

/* B of the product for the character rows: row (j, o), column c is weight[o][taps - 1 - j][c]. */
static void flip_weight(const job *a, const float *weight, float *flipped)
{
    const ptrdiff_t c = a->channels;
    for (ptrdiff_t j = 0; j < a->taps; j++)
        for (ptrdiff_t o = 0; o < a->out; o++)
            memcpy(flipped + (j * a->out + o) * c, weight + (o * a->taps + a->taps - 1 - j) * c,
                   sizeof(float) * (size_t)c);
}

int DX_FN(char_conv_backward)(int degree, ptrdiff_t words, ptrdiff_t length, ptrdiff_t channels, ptrdiff_t taps,
                              ptrdiff_t out, ptrdiff_t vocabulary, const float *dy, const float *y,
                              const int32_t *argmax, const float *table, const int32_t *ids, const float *weight,
                              float *dtable, float *dweight, float *dbias)
{
    job a = make_job(words, length, channels, taps, out);
    const ptrdiff_t k = taps * channels;
    dx_mark mark = dx_scratch_mark();
    int status = DX_NO_MEMORY;
    a.table = table, a.ids = ids, a.where = argmax, a.dweight = dweight;
    ptrdiff_t *start = dx_scratch(sizeof *start * (size_t)(words + 1));
    float *dz = dx_scratch(sizeof(float) * (size_t)(words * out));
    if (!start || !dz) goto done;
    start[0] = a.gap;
    for (ptrdiff_t w = 0; w < words; w++) start[w + 1] = start[w] + extent(ids + w * length, length) + a.gap;
    for (ptrdiff_t i = 0; i < words * out; i++) dz[i] = argmax[i] < 0 ? 0.0f : dx_relu_grad(dy[i], y[i]);
    a.start = start, a.dz = dz;
    const ptrdiff_t rows = start[words] - a.gap, all = start[words] + a.gap; /* rows: those of words and gaps */
    if (dbias) for (ptrdiff_t o = 0; o < out; o++) dbias[o] = dx_sum16_strided(dz + o, out, words);
    if (dweight) {
        float *x = dx_scratch(sizeof(float) * (size_t)(all * channels + 16));
        a.worker_floats = 16 * ((k + DX_VL - 1) / DX_VL * DX_VL);
        a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * a.worker_floats));
        if (!x || !a.scratch) goto done;
        memset(x, 0, sizeof(float) * (size_t)(all * channels + 16));
        for (ptrdiff_t w = 0; w < words; w++)
            put_rows(&a, x + start[w] * channels, ids + w * length, start[w + 1] - a.gap - start[w]);
        a.x = x;
        dx_rt.parallel(weight_gradient, &a, out, dx_grain(out, (double)(words * k) / 8, degree), degree);
    }
    if (dtable) {
        float *z = dx_scratch(sizeof(float) * (size_t)(all * out));
        float *flipped = dx_scratch(sizeof(float) * (size_t)(k * out));
        float *drows = dx_scratch(sizeof(float) * (size_t)(rows * channels));
        int32_t *row_ids = dx_scratch(sizeof(int32_t) * (size_t)all);
        if (!z || !flipped || !drows || !row_ids) goto done;
        memset(z, 0, sizeof(float) * (size_t)(all * out));
        memset(row_ids, 0, sizeof(int32_t) * (size_t)all);
        for (ptrdiff_t w = 0; w < words; w++) {
            memcpy(row_ids + start[w], ids + w * length, sizeof(int32_t) * (size_t)(start[w + 1] - a.gap - start[w]));
            for (ptrdiff_t o = 0; o < out; o++)
                if (argmax[w * out + o] >= 0) z[(start[w] + argmax[w * out + o]) * out + o] = dz[w * out + o];
        }
        flip_weight(&a, weight, flipped);
        const ptrdiff_t right = taps - 1 - a.left;
        status = DX_FN(gemm)(degree, 0, 0, rows, channels, taps * out, z + (a.gap - right) * out, out, flipped, channels,
                             NULL, drows, channels, NULL, NULL);
        if (status) goto done;
        DX_FN(embedding_backward)(rows, channels, vocabulary, drows, row_ids + a.gap, 0, dtable);
    }
    status = DX_OK;
done:
    dx_scratch_release(mark);
    return status;
}
