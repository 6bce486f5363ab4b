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

/* One row of pairs (i, 0..n-1); feature f goes to out[f * stride + j]. One loop a feature, which the compiler
 * vectorises without a doubt about aliases. */
static void pair_row(ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t i, ptrdiff_t stride, float *out)
{
    const double *cx = real, *cy = real + n, *x0 = real + 2 * n, *x1 = real + 3 * n, *my = real + 4 * n;
    const double *lh = real + 5 * n;
    const int32_t *row = whole, *line = whole + n, *key = whole + 2 * n;
    const double cxi = cx[i], cyi = cy[i], x0i = x0[i], x1i = x1[i], myi = my[i], lhi = lh[i];
    const int32_t rowi = row[i], linei = line[i], keyi = key[i], own = (int32_t)i, count = (int32_t)n;
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
    dx_tanh_all(n, out + 4 * stride, out + 4 * stride);
    dx_tanh_all(n, out + 5 * stride, out + 5 * stride);
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
    out[16 * stride + i] = 0.0f; /* a word is not its own double */
}

int DX_FN(pair_features_tile)(ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t i0, ptrdiff_t i1,
                              float *out)
{
    for (ptrdiff_t i = i0; i < i1; i++) pair_row(n, real, whole, i, (i1 - i0) * n, out + (i - i0) * n);
    return DX_OK;
}

typedef struct { ptrdiff_t n, i0, stride; const double *real; const int32_t *whole; float *out; } job;

static void pair_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) pair_row(a->n, a->real, a->whole, a->i0 + i, a->stride, a->out + i * a->n);
}

int DX_FN(pair_features)(int degree, ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t i0, ptrdiff_t i1,
                         float *out)
{
    job a = {n, i0, (i1 - i0) * n, real, whole, out};
    dx_rt.parallel(pair_rows, &a, i1 - i0, dx_grain(i1 - i0, 60.0 * (double)n, degree), degree);
    return DX_OK;
}
