/* Squared norm of a gradient: dot16(g, g). When that overflows, the same dot16 of g * 2^-80 (exact for every element
 * that matters), times 2^160 in binary64. */
#include <dx_numerics/dot.h>
#include "table.h"

double DX_FN(squared_norm)(ptrdiff_t n, const float *g)
{
    float plain = dx_dot16(g, g, n);
    if (plain <= FLT_MAX) return (double)plain;
    dx_lanes lanes = dx_lanes_zero();
    for (ptrdiff_t i = 0; i < n; i += 16) {
        float scaled[16];
        dx_pad16(scaled, g + i, n - i < 16 ? n - i : 16, 1);
        for (int l = 0; l < 16; l++) scaled[l] = scaled[l] * 0x1p-80f;
        dx_lanes_fma(&lanes, scaled, scaled);
    }
    return (double)dx_lanes_tree(lanes) * 0x1p160;
}

double DX_FN(joint_norm)(ptrdiff_t count, const double *squares)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < count; i++) total = total + squares[i];
    return __builtin_sqrt(total);
}

double DX_FN(clip_factor)(double norm, double max_norm)
{
    double factor = max_norm / (norm + 1e-6);
    return max_norm > 0.0 && factor < 1.0 ? factor : 1.0;
}

typedef struct {
    double factor;
    float *g;
} job;

static void scale(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job a = *(const job *)context;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; i++) a.g[i] = (float)((double)a.g[i] * a.factor);
}

int DX_FN(scale_in_place)(int degree, ptrdiff_t n, double factor, float *g)
{
    job a = {.factor = factor, .g = g};
    dx_rt.parallel(scale, &a, n, dx_grain(n, 0.5, degree), degree);
    return DX_OK;
}
