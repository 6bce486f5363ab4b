/* Pair MLP pair2(relu(pair1(features))) over all ordered pairs (seed 000 "Pair-bias MLP"), in tiles of pairs that stay
 * in cache:
 *
 *   hidden[u][p] = relu(dot16 over inputs of weight1[u], features[.][p]  + bias1[u])
 *   y[o][p]      = dot16 over units of weight2[o], hidden[.][p]  + bias2[o]
 *   dh[u][p]     = dot16 over heads of weight2[.][u], dy[.][p];  +0 where hidden <= 0
 *   dweight1[u][i] = dot16 over pairs of dh[u], features[i]      dbias1[u] = sum16 over pairs of dh[u]
 *   dweight2[o][u] = dot16 over pairs of dy[o], hidden[u]        dbias2[o] = sum16 over pairs of dy[o]
 *
 * The dots over pairs keep their 16 lanes in memory from tile to tile. Threads split tiles in forward and units (with
 * everything that belongs to them) in backward. */
#include <dx_numerics/dot.h>
#include "pair_hidden.h"

#define TILE 256 /* pairs; a multiple of 16 */

/* Register tile of dots: rows of a by rows of b. */
#if DX_VL == 16
#define DOT_ROWS 4
#define DOT_COLUMNS 5 /* divides the pair features */
#else
#define DOT_ROWS 2
#define DOT_COLUMNS 2
#endif

typedef struct {
    ptrdiff_t pairs, inputs, units, heads, step;
    const float *features, *weight1, *bias1, *weight2, *bias2, *dy, *hidden_in, *weight2t;
    ptrdiff_t n; /* backward: words, when features is NULL and they come from real and whole */
    const double *real;
    const int32_t *whole;
    float *y, *hidden, *scratch, *dweight1, *dbias1, *dweight2, *dbias2;
    ptrdiff_t worker_floats;
} job;

/* Zeros from column n up to the next multiple of 16. */
static void pad_rows(ptrdiff_t rows, ptrdiff_t n, float *x)
{
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t p = n; p < (n + 15) / 16 * 16; p++) x[i * TILE + p] = 0.0f;
}

/* n columns of each row, zeros up to the next multiple of 16. */
static void copy_rows(ptrdiff_t rows, const float *from, ptrdiff_t stride, ptrdiff_t n, float *to)
{
    for (ptrdiff_t i = 0; i < rows; i++) memcpy(to + i * TILE, from + i * stride, sizeof(float) * (size_t)n);
    pad_rows(rows, n, to);
}

static void hidden_rows(const job *a, ptrdiff_t unit, ptrdiff_t count, ptrdiff_t n, const float *features, float *hidden)
{
    dx_pair_hidden(count, a->inputs, n, a->weight1 + unit * a->inputs, a->bias1 + unit, features, TILE, hidden, TILE);
}

static void forward_tiles(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    float *features = a->scratch + worker * a->worker_floats;
    float *hidden = features + a->inputs * TILE, *y = hidden + a->units * TILE;
    for (ptrdiff_t tile = begin; tile < end; tile++) {
        ptrdiff_t first = tile * TILE, n = a->pairs - first < TILE ? a->pairs - first : TILE, padded = (n + 15) / 16 * 16;
        copy_rows(a->inputs, a->features + first, a->pairs, n, features);
        hidden_rows(a, 0, a->units, padded, features, hidden);
        if (a->hidden)
            for (ptrdiff_t u = 0; u < a->units; u++)
                memcpy(a->hidden + u * a->pairs + first, hidden + u * TILE, sizeof(float) * (size_t)n);
        DX_FN(gemm_direct)(a->heads, padded, a->units, a->weight2, a->units, hidden, TILE, y, TILE);
        for (ptrdiff_t o = 0; o < a->heads; o++) {
            const float b = a->bias2[o];
            float *to = a->y + o * a->pairs + first;
            for (ptrdiff_t p = 0; p < n; p++) to[p] = y[o * TILE + p] + b;
        }
    }
}

int DX_FN(pair_mlp_forward)(int degree, ptrdiff_t pairs, ptrdiff_t inputs, ptrdiff_t units, ptrdiff_t heads,
                            const float *features, const float *weight1, const float *bias1, const float *weight2,
                            const float *bias2, float *y, float *hidden)
{
    job a = {.pairs = pairs, .inputs = inputs, .units = units, .heads = heads, .features = features,
             .weight1 = weight1, .bias1 = bias1, .weight2 = weight2, .bias2 = bias2, .y = y, .hidden = hidden,
             .worker_floats = (inputs + units + heads) * TILE};
    const ptrdiff_t tiles = (pairs + TILE - 1) / TILE;
    dx_mark mark = dx_scratch_mark();
    if (!(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * a.worker_floats)))) return DX_NO_MEMORY;
    dx_rt.parallel(forward_tiles, &a, tiles, dx_grain(tiles, (double)(TILE / 16 * units * (inputs + heads)), degree),
                   degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* lanes (r, c) += the dot of row r of a and row c of b over n pairs (a multiple of 16). */
DX_INLINE void dots(const int rows, const int columns, ptrdiff_t n, const float *a, const float *b, float *lanes,
                    ptrdiff_t lanes_row)
{
    dx_lanes s[DOT_ROWS][DOT_COLUMNS];
    DX_UNROLL(4)
    for (int r = 0; r < rows; r++) {
        DX_UNROLL(8)
        for (int c = 0; c < columns; c++)
            for (int h = 0; h < DX_NV; h++) s[r][c].v[h] = dx_vload(lanes + r * lanes_row + c * 16 + h * DX_VL);
    }
    for (ptrdiff_t p = 0; p < n; p += 16) {
        DX_UNROLL(4)
        for (int h = 0; h < DX_NV; h++) {
            dx_vf bv[DOT_COLUMNS];
            DX_UNROLL(8)
            for (int c = 0; c < columns; c++) bv[c] = dx_vload(b + c * TILE + p + h * DX_VL);
            DX_UNROLL(4)
            for (int r = 0; r < rows; r++) {
                dx_vf av = dx_vload(a + r * TILE + p + h * DX_VL);
                DX_UNROLL(8)
                for (int c = 0; c < columns; c++) s[r][c].v[h] = dx_vfma(av, bv[c], s[r][c].v[h]);
            }
        }
    }
    DX_UNROLL(4)
    for (int r = 0; r < rows; r++) {
        DX_UNROLL(8)
        for (int c = 0; c < columns; c++)
            for (int h = 0; h < DX_NV; h++) dx_vstore(lanes + r * lanes_row + c * 16 + h * DX_VL, s[r][c].v[h]);
    }
}

/* Rows r..r+rows-1 of a by all rows of b. */
DX_INLINE void dots_row(const int rows, ptrdiff_t columns, ptrdiff_t n, const float *a, const float *b, float *lanes)
{
    ptrdiff_t c = 0;
    for (; c + DOT_COLUMNS <= columns; c += DOT_COLUMNS)
        dots(rows, DOT_COLUMNS, n, a, b + c * TILE, lanes + c * 16, columns * 16);
    for (; DOT_COLUMNS > 4 && c + 4 <= columns; c += 4)
        dots(rows, 4, n, a, b + c * TILE, lanes + c * 16, columns * 16);
    for (; c < columns; c++) dots(rows, 1, n, a, b + c * TILE, lanes + c * 16, columns * 16);
}

static void all_dots(ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t n, const float *a, const float *b, float *lanes)
{
    ptrdiff_t r = 0;
    for (; r + DOT_ROWS <= rows; r += DOT_ROWS) dots_row(DOT_ROWS, columns, n, a + r * TILE, b, lanes + r * columns * 16);
    for (; r < rows; r++) dots_row(1, columns, n, a + r * TILE, b, lanes + r * columns * 16);
}

/* lanes (r) += row r of a, 4 rows at a time to hide an addition's latency. */
DX_INLINE void sums(const int rows, ptrdiff_t n, const float *a, float *lanes)
{
    dx_lanes s[4];
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < DX_NV; h++) s[r].v[h] = dx_vload(lanes + r * 16 + h * DX_VL);
    for (ptrdiff_t p = 0; p < n; p += 16)
        for (int r = 0; r < rows; r++) dx_lanes_add(&s[r], a + r * TILE + p);
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < DX_NV; h++) dx_vstore(lanes + r * 16 + h * DX_VL, s[r].v[h]);
}

static void all_sums(ptrdiff_t rows, ptrdiff_t n, const float *a, float *lanes)
{
    ptrdiff_t r = 0;
    for (; r + 4 <= rows; r += 4) sums(4, n, a + r * TILE, lanes + r * 16);
    for (; r < rows; r++) sums(1, n, a + r * TILE, lanes + r * 16);
}

static void finish(ptrdiff_t count, const float *lanes, float *out)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        dx_lanes s;
        for (int h = 0; h < DX_NV; h++) s.v[h] = dx_vload(lanes + 16 * i + h * DX_VL);
        out[i] = dx_lanes_tree(s);
    }
}

/* Blocks begin..end-1 of a->step units; the block of unit 0 also sums dbias2. */
static void backward_units(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t first = begin * a->step, stop = end * a->step < a->units ? end * a->step : a->units;
    const ptrdiff_t units = stop - first, heads = a->heads, inputs = a->inputs;
    float *features = a->scratch + worker * a->worker_floats, *dy = features + inputs * TILE;
    float *hidden = dy + heads * TILE, *dh = hidden + units * TILE, *lanes = dh + units * TILE;
    float *lanes1 = lanes, *lanes2 = lanes1 + 16 * units * inputs, *sums1 = lanes2 + 16 * units * heads;
    float *sums2 = sums1 + 16 * units, *done2 = sums2 + 16 * heads;
    memset(lanes, 0, sizeof(float) * (size_t)(done2 - lanes));
    for (ptrdiff_t p0 = 0; p0 < a->pairs; p0 += TILE) {
        ptrdiff_t n = a->pairs - p0 < TILE ? a->pairs - p0 : TILE, padded = (n + 15) / 16 * 16;
        if (a->features) copy_rows(inputs, a->features + p0, a->pairs, n, features);
        else {
            DX_FN(pair_features_part)(a->n, a->real, a->whole, p0, n, TILE, features);
            pad_rows(inputs, n, features);
        }
        copy_rows(heads, a->dy + p0, a->pairs, n, dy);
        if (a->hidden_in) {
            copy_rows(units, a->hidden_in + first * a->pairs + p0, a->pairs, n, hidden);
        } else {
            hidden_rows(a, first, units, padded, features, hidden);
            pad_rows(units, n, hidden);
        }
        dx_pair_dhidden(units, heads, padded, a->weight2t + first * heads, dy, TILE, hidden, dh);
        pad_rows(units, n, dh);
        all_dots(units, inputs, padded, dh, features, lanes1);
        all_dots(units, heads, padded, hidden, dy, lanes2);
        all_sums(units, padded, dh, sums1);
        if (first == 0) all_sums(heads, padded, dy, sums2);
    }
    finish(units * inputs, lanes1, a->dweight1 + first * inputs);
    finish(units, sums1, a->dbias1 + first);
    if (first == 0) finish(heads, sums2, a->dbias2);
    finish(units * heads, lanes2, dh); /* (unit, head): transposed below */
    for (ptrdiff_t u = 0; u < units; u++)
        for (ptrdiff_t o = 0; o < heads; o++) a->dweight2[o * a->units + first + u] = dh[u * heads + o];
}

static int backward(int degree, job *a)
{
    const ptrdiff_t inputs = a->inputs, units = a->units, heads = a->heads;
    int status = DX_NO_MEMORY;
    dx_mark mark = dx_scratch_mark();
    /* one block for each thread: every block reads all features, so more blocks would cost more than they balance */
    int threads = (double)a->pairs * (double)(units * (inputs + heads)) < 1e6 ? 1 : degree;
    a->step = ((units + threads - 1) / threads + 3) / 4 * 4;
    const ptrdiff_t blocks = (units + a->step - 1) / a->step, tile_rows = inputs + heads + 2 * a->step;
    a->worker_floats = tile_rows * TILE + 16 * (a->step * (inputs + heads + 1) + heads) + heads * a->step;
    float *weight2t = dx_scratch(sizeof(float) * (size_t)(units * heads));
    a->scratch = dx_scratch(sizeof(float) * (size_t)(degree * a->worker_floats));
    if (!weight2t || !a->scratch) goto done;
    for (ptrdiff_t u = 0; u < units; u++)
        for (ptrdiff_t o = 0; o < heads; o++) weight2t[u * heads + o] = a->weight2[o * units + u];
    a->weight2t = weight2t;
    dx_rt.parallel(backward_units, a, blocks, 1, threads);
    status = DX_OK;
done:
    dx_scratch_release(mark);
    return status;
}

int DX_FN(pair_mlp_backward)(int degree, ptrdiff_t pairs, ptrdiff_t inputs, ptrdiff_t units, ptrdiff_t heads,
                             const float *dy, const float *features, const float *hidden, const float *weight1,
                             const float *bias1, const float *weight2, float *dweight1, float *dbias1,
                             float *dweight2, float *dbias2)
{
    job a = {.pairs = pairs, .inputs = inputs, .units = units, .heads = heads, .features = features,
             .weight1 = weight1, .bias1 = bias1, .weight2 = weight2, .dy = dy, .hidden_in = hidden,
             .dweight1 = dweight1, .dbias1 = dbias1, .dweight2 = dweight2, .dbias2 = dbias2};
    return backward(degree, &a);
}

int DX_FN(pair_bias_backward)(int degree, ptrdiff_t n, ptrdiff_t units, ptrdiff_t heads, const float *dy,
                              const double *real, const int32_t *whole, const float *weight1, const float *bias1,
                              const float *weight2, float *dweight1, float *dbias1, float *dweight2, float *dbias2)
{
    job a = {.pairs = n * n, .inputs = DX_PAIR_FEATURE_COUNT, .units = units, .heads = heads, .n = n, .real = real,
             .whole = whole, .weight1 = weight1, .bias1 = bias1, .weight2 = weight2, .dy = dy,
             .dweight1 = dweight1, .dbias1 = dbias1, .dweight2 = dweight2, .dbias2 = dbias2};
    return backward(degree, &a);
}
