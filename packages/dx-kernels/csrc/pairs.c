/* Positions of words on the page and features of pairs of words (docs/numerics.md, section 17). Reals are binary64
 * until the one rounding to binary32 that makes a feature; tanh is dx_tanh32 of the rounded argument. */
#include <dx_numerics/math64.h>
#include "table.h"
#include "tanh_vectors.h"

/* The lower median of x[0..n-1], n > 0: the element at place (n - 1) / 2 in ascending order; x is reordered. */
static double lower_median(double *x, ptrdiff_t n)
{
    ptrdiff_t low = 0, high = n - 1, wanted = (n - 1) / 2;
    while (low < high) { /* Hoare's selection */
        double pivot = x[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (pivot < x[j]) j--;
            if (i <= j) { double t = x[i]; x[i++] = x[j]; x[j--] = t; }
        }
        if (wanted <= j) high = j;
        else if (wanted >= i) low = i;
        else break;
    }
    return x[wanted];
}

int DX_FN(page_geometry)(ptrdiff_t n, const double *box, const int32_t *row, const int32_t *line, const int32_t *key,
                         double *relative, double *real, int32_t *whole, double *line_height)
{
    *line_height = 1.0;
    if (n == 0) return DX_OK;
    dx_mark mark = dx_scratch_mark();
    double *heights = dx_scratch((size_t)n * sizeof *heights);
    if (!heights) return DX_NO_MEMORY;
    double x0 = box[0], y0 = box[1], x1 = box[2], y1 = box[3];
    ptrdiff_t positive = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *b = box + 4 * i;
        if (b[0] < x0) x0 = b[0];
        if (b[1] < y0) y0 = b[1];
        if (b[2] > x1) x1 = b[2];
        if (b[3] > y1) y1 = b[3];
        if (b[3] - b[1] > 0) heights[positive++] = b[3] - b[1];
    }
    double width = x1 - x0, height = y1 - y0, least = (width > height ? width : height) * 0x1p-20;
    double h = positive ? lower_median(heights, positive) : 1.0;
    if (h < least) h = least; /* keeps distances in line heights below 2^20 */
    *line_height = h;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *b = box + 4 * i;
        double *r = relative + 4 * i;
        r[0] = width > 0 ? (b[0] - x0) / width : 0.0;
        r[1] = height > 0 ? (b[1] - y0) / height : 0.0;
        r[2] = width > 0 ? (b[2] - x0) / width : 0.0;
        r[3] = height > 0 ? (b[3] - y0) / height : 0.0;
        double own = (b[3] - b[1]) / h;
        real[i] = (r[0] + r[2]) * 0.5;
        real[n + i] = (r[1] + r[3]) * 0.5;
        real[2 * n + i] = (b[0] - x0) / h;
        real[3 * n + i] = (b[2] - x0) / h;
        real[4 * n + i] = ((b[1] - y0) + (b[3] - y0)) * 0.5 / h;
        real[5 * n + i] = dx_log64(own < 0x1p-10 ? 0x1p-10 : own);
        whole[i] = row[i];
        whole[n + i] = line[i];
        whole[2 * n + i] = key[i];
    }
    dx_scratch_release(mark);
    return DX_OK;
}

int DX_FN(positions)(ptrdiff_t n, const double *relative, int32_t size, int32_t *position)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++) {
            double p = relative[4 * i + k] * size, top = size - 1;
            p = p > 0 ? p : 0; /* also for NaN */
            position[k * n + i] = (int32_t)(p < top ? p : top);
        }
    return DX_OK;
}

DX_INLINE int32_t clamp(int32_t x, int32_t most) { return x < -most ? -most : x > most ? most : x; }
DX_INLINE double clamp_real(double x, double most) { return x < -most ? -most : x > most ? most : x; }

/* The pairs (i, first..first+n-1) of words; feature f goes to out[f * stride + j], the distances of which tanh is to be
 * taken as they are. One loop a feature, which the compiler vectorises without a doubt about aliases. */
static void pair_row(ptrdiff_t words, const double *real, const int32_t *whole, ptrdiff_t i, ptrdiff_t first, ptrdiff_t n,
                     ptrdiff_t stride, float *out)
{
    const double *cx = real + first, *cy = cx + words, *x0 = cy + words, *x1 = x0 + words, *my = x1 + words;
    const double *lh = my + words;
    const int32_t *row = whole + first, *line = row + words, *key = line + words;
    const ptrdiff_t self = i - first; /* where the word itself stands among them, if it does */
    const double cxi = cx[self], cyi = cy[self], x0i = x0[self], x1i = x1[self], myi = my[self], lhi = lh[self];
    const int32_t rowi = row[self], linei = line[self], keyi = key[self], own = (int32_t)self, count = (int32_t)n;
    const float *dx = out, *dy = out + stride, *over = out + 12 * stride; /* features that others are made from */
#define EACH(f, value) \
    do { \
        float *restrict o = out + (f) * stride; \
        for (int32_t j = 0; j < count; j++) o[j] = (value); \
    } while (0)
    EACH(0, (float)(cx[j] - cxi));
    EACH(1, (float)(cy[j] - cyi));
    EACH(2, __builtin_fabsf(dx[j]));
    EACH(3, __builtin_fabsf(dy[j]));
    EACH(4, (float)((x0[j] - x1i) * 0.25));
    EACH(5, (float)((my[j] - myi) * 0.5));
    EACH(6, row[j] == rowi ? 1.0f : 0.0f);
    EACH(7, (float)clamp(row[j] - rowi, 3) / 3.0f);
    EACH(8, (float)clamp(j - own, 8) * 0.125f);
    EACH(9, j - own == 1 ? 1.0f : 0.0f);
    EACH(10, j - own == -1 ? 1.0f : 0.0f);
    EACH(11, j == own ? 1.0f : 0.0f);
    EACH(12, (x1[j] < x1i ? x1[j] : x1i) - (x0[j] > x0i ? x0[j] : x0i) > 0.0 ? 1.0f : 0.0f);
    EACH(13, __builtin_fabs(x0[j] - x0i) < 0.5 ? 1.0f : 0.0f);
    EACH(14, __builtin_fabs(x1[j] - x1i) < 0.5 ? 1.0f : 0.0f);
    EACH(15, row[j] - rowi == 1 ? over[j] : 0.0f);
    EACH(16, key[j] == keyi ? 1.0f : 0.0f);
    EACH(17, line[j] == linei ? 1.0f : 0.0f);
    EACH(18, (float)clamp_real(lh[j] - lhi, 1.0));
    EACH(19, row[j] - rowi == -1 ? over[j] : 0.0f);
#undef EACH
    if (self >= 0 && self < n) out[16 * stride + self] = 0.0f; /* a word is not its own double */
}

void DX_FN(pair_features_part)(ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t first, ptrdiff_t count,
                               ptrdiff_t stride, float *out)
{
    for (ptrdiff_t p = 0, m; p < count; p += m) {
        const ptrdiff_t i = (first + p) / n, j = (first + p) % n;
        m = n - j < count - p ? n - j : count - p;
        pair_row(n, real, whole, i, j, m, stride, out + p);
    }
    for (int f = 4; f <= 5; f++) dx_tanh_all(count, out + f * stride, out + f * stride);
}

typedef struct { ptrdiff_t n, i0, stride; const double *real; const int32_t *whole; float *out; } job;

static void pair_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++)
        DX_FN(pair_features_part)(a->n, a->real, a->whole, (a->i0 + i) * a->n, a->n, a->stride, a->out + i * a->n);
}

int DX_FN(pair_features)(int degree, ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t i0, ptrdiff_t i1,
                         float *out)
{
    job a = {n, i0, (i1 - i0) * n, real, whole, out};
    dx_rt.parallel(pair_rows, &a, i1 - i0, dx_grain(i1 - i0, 60.0 * (double)n, degree), degree);
    return DX_OK;
}
