/* Unit rows and squared distances (docs/readout.md, "Geometry").
 *
 *   norm = sqrt(dot16(x, x))            y = x / max(norm, epsilon)
 *   dx = (dy - y * dot16(y, dy)) / norm where norm >= epsilon, else dy / epsilon
 *   s[i, j] = dot16(q[i] - e[j], q[i] - e[j])
 *   dq[i] = sum16 over j of (2 * ds[i, j]) * (q[i] - e[j])      de[j] = sum16 over i of (2 * ds[i, j]) * (e[j] - q[i])
 *
 * Where the sum of squares is below 2^-100 or above 2^100 it has lost bits or may overflow: then the row is first
 * multiplied by 2^-k, its largest magnitude being in [2^k, 2^(k + 1)), which changes no bit of a normal number. */
#include <dx_numerics/dot.h>
#include "table.h"

typedef struct {
    ptrdiff_t d, others;
    const float *x, *y_in, *dy, *norms_in, *ds;
    const float *q, *e;
    ptrdiff_t ds_row, ds_column;
    float epsilon, *y, *norms, *out, *scratch;
} job;

/* 2^-k for the row's largest magnitude m in [2^k, 2^(k + 1)); 0 where m is 0 or not finite. */
static double scale_of(const float *x, ptrdiff_t d)
{
    float m = 0.0f;
    for (ptrdiff_t j = 0; j < d; j++) {
        float v = dx_float_of_bits(dx_bits_of_float(x[j]) & 0x7fffffffu);
        m = v > m ? v : m;
        if (!(v <= 0x1.fffffep+127f)) return 0.0;
    }
    if (m == 0.0f) return 0.0;
    uint64_t exponent = dx_bits_of_double((double)m) >> 52;
    return dx_double_of_bits((2046 - exponent) << 52);
}

static void normalize_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *x = a->x + r * d;
        float *y = a->y + r * d, squares = dx_dot16(x, x, d), norm = __builtin_sqrtf(squares), by = norm;
        if (!(squares >= 0x1p-100f && squares <= 0x1p+100f)) {
            double scale = scale_of(x, d);
            if (scale != 0.0) {
                float *scaled = a->scratch + worker * d;
                for (ptrdiff_t j = 0; j < d; j++) scaled[j] = (float)((double)x[j] * scale);
                by = __builtin_sqrtf(dx_dot16(scaled, scaled, d));
                norm = (float)((double)by / scale);
                if (norm >= a->epsilon) x = scaled;
                else by = norm;
            }
        }
        if (norm < a->epsilon) by = a->epsilon;
        a->norms[r] = norm;
        for (ptrdiff_t j = 0; j < d; j++) y[j] = x[j] / by;
    }
}

int DX_FN(l2_normalize_forward)(int degree, ptrdiff_t rows, ptrdiff_t d, const float *x, float epsilon, float *y,
                                float *norms)
{
    job a = {.d = d, .x = x, .epsilon = epsilon, .y = y, .norms = norms};
    dx_mark mark = dx_scratch_mark();
    if (!(a.scratch = dx_scratch(sizeof(float) * (size_t)(degree * d)))) return DX_NO_MEMORY;
    dx_rt.parallel(normalize_rows, &a, rows, dx_grain(rows, 2.0 * (double)d, degree), degree);
    dx_scratch_release(mark);
    return DX_OK;
}

static void normalize_rows_backward(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    (void)worker;
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *y = a->y_in + r * d, *dy = a->dy + r * d, norm = a->norms_in[r];
        float *dx = a->out + r * d;
        if (norm < a->epsilon) {
            for (ptrdiff_t j = 0; j < d; j++) dx[j] = dy[j] / a->epsilon;
            continue;
        }
        float along = dx_dot16(y, dy, d);
        for (ptrdiff_t j = 0; j < d; j++) dx[j] = (dy[j] - y[j] * along) / norm;
    }
}

int DX_FN(l2_normalize_backward)(int degree, ptrdiff_t rows, ptrdiff_t d, const float *dy, const float *y,
                                 const float *norms, float epsilon, float *dx)
{
    job a = {.d = d, .dy = dy, .y_in = y, .norms_in = norms, .epsilon = epsilon, .out = dx};
    dx_rt.parallel(normalize_rows_backward, &a, rows, dx_grain(rows, 3.0 * (double)d, degree), degree);
    return DX_OK;
}

/* dot16(a - b, a - b) */
static float squared_distance(const float *a, const float *b, ptrdiff_t d)
{
    dx_lanes s = dx_lanes_zero();
    ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16)
        for (int h = 0; h < DX_NV; h++) {
            dx_vf v = dx_vload(a + j + h * DX_VL) - dx_vload(b + j + h * DX_VL);
            s.v[h] = dx_vfma(v, v, s.v[h]);
        }
    if (j < d) {
        float t[16] = {0};
        for (ptrdiff_t l = 0; l < d - j; l++) t[l] = a[j + l] - b[j + l];
        dx_lanes_fma(&s, t, t);
    }
    return dx_lanes_tree(s);
}

static void distance_rows(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++)
        for (ptrdiff_t j = 0; j < a->others; j++)
            a->out[i * a->others + j] = squared_distance(a->q + i * a->d, a->e + j * a->d, a->d);
}

int DX_FN(squared_distance_forward)(int degree, ptrdiff_t queries, ptrdiff_t documents, ptrdiff_t d, const float *q,
                                    const float *e, float *s)
{
    job a = {.d = d, .others = documents, .q = q, .e = e, .out = s};
    dx_rt.parallel(distance_rows, &a, queries, dx_grain(queries, 2.0 * (double)(d * documents), degree), degree);
    return DX_OK;
}

/* sum16 over the others: lane j mod 16 of every column, then the tree. */
static void distance_rows_backward(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *a = context;
    const ptrdiff_t d = a->d;
    float *lanes = a->scratch + worker * 16 * d;
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *own = a->q + i * d;
        for (ptrdiff_t k = 0; k < 16 * d; k++) lanes[k] = 0.0f;
        for (ptrdiff_t j = 0; j < a->others; j++) {
            const float *other = a->e + j * d;
            float *restrict lane = lanes + (j % 16) * d, g = 2.0f * a->ds[i * a->ds_row + j * a->ds_column];
            for (ptrdiff_t k = 0; k < d; k++) lane[k] = lane[k] + g * (own[k] - other[k]);
        }
        for (int half = 8; half; half /= 2)
            for (ptrdiff_t k = 0; k < half * d; k++) lanes[k] = lanes[k] + lanes[half * d + k];
        for (ptrdiff_t k = 0; k < d; k++) a->out[i * d + k] = lanes[k];
    }
}

int DX_FN(squared_distance_backward)(int degree, ptrdiff_t queries, ptrdiff_t documents, ptrdiff_t d, const float *ds,
                                     const float *q, const float *e, float *dq, float *de)
{
    job a = {.d = d, .others = documents, .ds = ds, .q = q, .e = e, .ds_row = documents, .ds_column = 1, .out = dq};
    job b = {.d = d, .others = queries, .ds = ds, .q = e, .e = q, .ds_row = 1, .ds_column = documents, .out = de};
    dx_mark mark = dx_scratch_mark();
    float *scratch = dx_scratch(sizeof(float) * (size_t)(degree * 16 * d));
    if (!scratch) return DX_NO_MEMORY;
    a.scratch = b.scratch = scratch;
    if (dq) dx_rt.parallel(distance_rows_backward, &a, queries, dx_grain(queries, 3.0 * (double)(d * documents), degree),
                           degree);
    if (de) dx_rt.parallel(distance_rows_backward, &b, documents, dx_grain(documents, 3.0 * (double)(d * queries), degree),
                           degree);
    dx_scratch_release(mark);
    return DX_OK;
}
