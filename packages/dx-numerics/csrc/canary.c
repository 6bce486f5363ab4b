/* What selfcheck runs on every path: arithmetic whose result tells whether the build and the floating-point
 * environment keep IEEE rules. Products and sums here must not be contracted into fused operations. */
#include "table.h"

void DX_FN(canary)(ptrdiff_t n, const float *restrict a, const float *restrict b, const float *restrict c,
                   float *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = a[i] * b[i] + c[i];
}

void DX_FN(canary64)(ptrdiff_t n, const double *restrict a, const double *restrict b, const double *restrict c,
                     double *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = a[i] * b[i] + c[i];
}
