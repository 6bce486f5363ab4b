/* Pooling of listed rows (pooling.h): sums, maxima and softmax over the rows of each segment, gathered in order, so that
 * rows that are not listed (padding on either side, holes) never enter an operation.
 *
 *   sum      t[d] = dot16 over the segment of (w, x[., d]), or sum16        y = t / divisor
 *            t = dy / divisor      dx[row] = w * t      dw = dot16(t, x[row])      dx of rows that are not listed = +0
 *   maximum  y[d] = the first of the largest, a NaN before all others; dx[argmax[b, d], d] += dy[b, d], b ascending
 *   softmax  as softmax_row.h, over the segment */
#include "softmax_row.h"
#include "table.h"

#define SUM_VECTORS 8 /* vectors of columns summed at once: 16 lanes of them stay in the first-level cache */
#define AHEAD 8       /* rows read ahead */
#define COLUMNS 512   /* columns of a task */

typedef struct {
    const dx_segments *s;
    ptrdiff_t blocks, heads, scratch_floats; /* blocks of columns; scratch of one worker */
    const float *x, *weights, *divisors, *dy;
    const int32_t *argmax_in;
    float *y, *dx, *dweights, *scratch;
    int32_t *argmax;
} job;

DX_INLINE ptrdiff_t row_of(const dx_segments *s, ptrdiff_t i) { return s->rows ? s->rows[i] : i; }
DX_INLINE ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* y[0..) of up to SUM_VECTORS vectors of columns from j on, of segment b. A cut vector goes through a buffer. */
DX_INLINE void sum_columns(const job *a, ptrdiff_t b, ptrdiff_t j, const int vectors, const int weighted)
{
    const dx_segments *s = a->s;
    const ptrdiff_t begin = s->starts[b], n = s->starts[b + 1] - begin, left = least(s->d - j, vectors * DX_VL);
    dx_vf lane[16][SUM_VECTORS];
    for (int l = 0; l < 16; l++)
        for (int v = 0; v < vectors; v++) lane[l][v] = (dx_vf){0};
    for (ptrdiff_t i = 0; i < n; i++) {
        const float *row = a->x + row_of(s, begin + i) * s->d + j;
        dx_vf *restrict to = lane[i & 15];
        const float *ahead = i + AHEAD < n ? a->x + row_of(s, begin + i + AHEAD) * s->d + j : row;
        for (int v = 0; v < vectors; v++) __builtin_prefetch(ahead + v * DX_VL);
        float cut[SUM_VECTORS * DX_VL];
        if (left < vectors * DX_VL) {
            for (ptrdiff_t c = 0; c < vectors * DX_VL; c++) cut[c] = c < left ? row[c] : 0.0f;
            row = cut;
        }
        if (weighted) {
            const dx_vf w = dx_vset(a->weights[begin + i]);
            DX_UNROLL(8)
            for (int v = 0; v < vectors; v++) to[v] = dx_vfma(w, dx_vload(row + v * DX_VL), to[v]);
        } else {
            DX_UNROLL(8)
            for (int v = 0; v < vectors; v++) to[v] = dx_vload(row + v * DX_VL) + to[v];
        }
    }
    if (weighted && n % 16) /* the padding of the last chunk makes a lane of -0 +0; plain sums have no such lane */
        for (ptrdiff_t l = n % 16; l < 16; l++)
            for (int v = 0; v < vectors; v++) lane[l][v] = lane[l][v] + (dx_vf){0};
    for (int h = 8; h; h >>= 1)
        for (int l = 0; l < h; l++)
            for (int v = 0; v < vectors; v++) lane[l][v] = lane[l][v] + lane[l + h][v];
    const dx_vf divisor = dx_vset(a->divisors ? a->divisors[b] : 1.0f);
    float *y = a->y + b * s->d + j;
    for (int v = 0; v < vectors; v++) {
        dx_vf t = a->divisors ? lane[0][v] / divisor : lane[0][v];
        if (left >= (v + 1) * DX_VL) dx_vstore(y + v * DX_VL, t);
        else for (ptrdiff_t c = v * DX_VL; c < left; c++) y[c] = t[c - v * DX_VL];
    }
}

static void sums(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t b = t / a->blocks;
        ptrdiff_t j = t % a->blocks * COLUMNS, stop = least(j + COLUMNS, a->s->d);
        if (a->weights) {
            for (; j + SUM_VECTORS * DX_VL <= stop; j += SUM_VECTORS * DX_VL) sum_columns(a, b, j, SUM_VECTORS, 1);
            for (; j < stop; j += DX_VL) sum_columns(a, b, j, 1, 1);
        } else {
            for (; j + SUM_VECTORS * DX_VL <= stop; j += SUM_VECTORS * DX_VL) sum_columns(a, b, j, SUM_VECTORS, 0);
            for (; j < stop; j += DX_VL) sum_columns(a, b, j, 1, 0);
        }
    }
}

/* Tasks: segments (outer) by blocks of columns (inner). */
static void spread(dx_task task, job *a, int degree)
{
    const dx_segments *s = a->s;
    a->blocks = (s->d + COLUMNS - 1) / COLUMNS;
    const ptrdiff_t tasks = s->segments * a->blocks;
    const double each = (double)(s->listed > s->x_rows ? s->listed : s->x_rows) * (double)s->d / (double)tasks / 4;
    dx_rt.parallel(task, a, tasks, dx_grain(tasks, each, degree), degree);
}

int DX_FN(pool_sum_forward)(int degree, const dx_segments *s, const float *x, const float *weights,
                            const float *divisors, float *y)
{
    job a = {.s = s, .x = x, .weights = weights, .divisors = divisors, .y = y};
    spread(sums, &a, degree);
    return DX_OK;
}

/* Rows of x that a segment answers for: its own and those up to the next segment's first; the first also those before. */
DX_INLINE ptrdiff_t first_owned(const dx_segments *s, ptrdiff_t b)
{
    return b == 0 ? 0 : b == s->segments ? s->x_rows : row_of(s, s->starts[b]);
}

static void spread_gradient(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    (void)worker;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t b = t / a->blocks, j = t % a->blocks * COLUMNS, width = least(COLUMNS, s->d - j);
        const ptrdiff_t stop = first_owned(s, b + 1);
        float share[COLUMNS];
        const float *dy = a->dy + b * s->d + j;
        if (a->divisors) {
            const float divisor = a->divisors[b];
            for (ptrdiff_t c = 0; c < width; c++) share[c] = dy[c] / divisor;
            dy = share;
        }
        ptrdiff_t i = s->starts[b];
        for (ptrdiff_t r = first_owned(s, b); r < stop; r++) {
            float *restrict dx = a->dx + r * s->d + j;
            if (i == s->starts[b + 1] || r != row_of(s, i)) {
                memset(dx, 0, sizeof(float) * (size_t)width);
                continue;
            }
            if (a->weights) {
                const float w = a->weights[i];
                for (ptrdiff_t c = 0; c < width; c++) dx[c] = w * dy[c];
            } else
                memcpy(dx, dy, sizeof(float) * (size_t)width);
            i++;
        }
    }
}

static void weight_gradients(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    float *share = a->scratch ? a->scratch + worker * s->d : NULL;
    for (ptrdiff_t b = begin; b < end; b++) {
        const float *t = a->dy + b * s->d;
        if (share) {
            const float divisor = a->divisors[b];
            for (ptrdiff_t c = 0; c < s->d; c++) share[c] = t[c] / divisor;
            t = share;
        }
        for (ptrdiff_t i = s->starts[b]; i < s->starts[b + 1]; i++)
            a->dweights[i] = dx_dot16(t, a->x + row_of(s, i) * s->d, s->d);
    }
}

int DX_FN(pool_sum_backward)(int degree, const dx_segments *s, const float *dy, const float *x, const float *weights,
                             const float *divisors, float *dx, float *dweights)
{
    job a = {.s = s, .x = x, .weights = weights, .divisors = divisors, .dy = dy, .dx = dx, .dweights = dweights};
    if (s->segments == 0) {
        if (dx) memset(dx, 0, sizeof(float) * (size_t)(s->x_rows * s->d));
        return DX_OK;
    }
    if (dx) spread(spread_gradient, &a, degree);
    if (!dweights) return DX_OK;
    dx_mark mark = dx_scratch_mark();
    if (divisors && !(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * s->d)))) return DX_NO_MEMORY;
    const double each = (double)s->listed * (double)s->d / (double)s->segments / 2;
    dx_rt.parallel(weight_gradients, &a, s->segments, dx_grain(s->segments, each, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

static void maxima(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    (void)worker;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t b = t / a->blocks, j = t % a->blocks * COLUMNS, width = least(COLUMNS, s->d - j);
        float best[COLUMNS];
        int32_t at[COLUMNS];
        ptrdiff_t i = s->starts[b], r = row_of(s, i);
        memcpy(best, a->x + r * s->d + j, sizeof(float) * (size_t)width);
        for (ptrdiff_t c = 0; c < width; c++) at[c] = (int32_t)r;
        for (i++; i < s->starts[b + 1]; i++) {
            r = row_of(s, i);
            const float *x = a->x + r * s->d + j;
            const int32_t row = (int32_t)r;
            for (ptrdiff_t c = 0; c < width; c++) {
                const float v = x[c], m = best[c];
                const int taken = (v > m) | ((v != v) & (m == m));
                best[c] = taken ? v : m;
                at[c] = taken ? row : at[c];
            }
        }
        memcpy(a->y + b * s->d + j, best, sizeof(float) * (size_t)width);
        memcpy(a->argmax + b * s->d + j, at, sizeof(int32_t) * (size_t)width);
    }
}

int DX_FN(pool_max_forward)(int degree, const dx_segments *s, const float *x, float *y, int32_t *argmax)
{
    job a = {.s = s, .x = x, .y = y, .argmax = argmax};
    spread(maxima, &a, degree);
    return DX_OK;
}

static void max_gradients(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    (void)worker;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t j = t * COLUMNS, stop = least(j + COLUMNS, s->d);
        for (ptrdiff_t r = 0; r < s->x_rows; r++)
            memset(a->dx + r * s->d + j, 0, sizeof(float) * (size_t)(stop - j));
        for (ptrdiff_t b = 0; b < s->segments; b++)
            for (ptrdiff_t c = j; c < stop; c++) {
                float *to = a->dx + (ptrdiff_t)a->argmax_in[b * s->d + c] * s->d + c;
                *to = *to + a->dy[b * s->d + c];
            }
    }
}

int DX_FN(pool_max_backward)(int degree, ptrdiff_t segments, ptrdiff_t x_rows, ptrdiff_t d, const float *dy,
                             const int32_t *argmax, float *dx)
{
    const dx_segments s = {.segments = segments, .x_rows = x_rows, .d = d};
    job a = {.s = &s, .dy = dy, .argmax_in = argmax, .dx = dx};
    const ptrdiff_t tasks = (d + COLUMNS - 1) / COLUMNS;
    dx_rt.parallel(max_gradients, &a, tasks, dx_grain(tasks, (double)(x_rows * COLUMNS) / 4, degree), degree);
    return DX_OK;
}

/* Item t: segment t / heads, head t % heads. */
static void softmaxes(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    float *scratch = a->scratch + worker * a->scratch_floats;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t b = t / a->heads, at = t % a->heads * s->listed + s->starts[b];
        const dx_softmax_block block = {.n = s->starts[b + 1] - s->starts[b], .raw = a->x + at, .scale = 1.0f,
                                        .s = scratch, .p = a->y + at};
        dx_softmax_rows(&block, 1);
    }
}

int DX_FN(pool_softmax_forward)(int degree, ptrdiff_t heads, const dx_segments *s, const float *scores, float *p)
{
    job a = {.s = s, .heads = heads, .x = scores, .y = p};
    for (ptrdiff_t b = 0; b < s->segments; b++) {
        const ptrdiff_t floats = dx_round16(s->starts[b + 1] - s->starts[b]);
        if (floats > a.scratch_floats) a.scratch_floats = floats;
    }
    const ptrdiff_t tasks = heads * s->segments;
    dx_mark mark = dx_scratch_mark();
    if (!(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * a.scratch_floats)))) return DX_NO_MEMORY;
    dx_rt.parallel(softmaxes, &a, tasks, dx_grain(tasks, 4.0 * (double)s->listed / (double)s->segments, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

static void softmax_gradients(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const dx_segments *s = a->s;
    (void)worker;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t b = t / a->heads, at = t % a->heads * s->listed + s->starts[b];
        dx_softmax_backward_row(s->starts[b + 1] - s->starts[b], a->x + at, a->dy + at, 1.0f, a->dx + at, NULL);
    }
}

int DX_FN(pool_softmax_backward)(int degree, ptrdiff_t heads, const dx_segments *s, const float *p, const float *dp,
                                 float *dscores)
{
    job a = {.s = s, .heads = heads, .x = p, .dy = dp, .dx = dscores};
    const ptrdiff_t tasks = heads * s->segments;
    dx_rt.parallel(softmax_gradients, &a, tasks, dx_grain(tasks, (double)s->listed / (double)s->segments, degree),
                   degree);
    return DX_OK;
}
