/* The functions of math32.h and math64.h over arrays, once per path. */
#include <dx_numerics/math32.h>
#include "table.h"

void DX_FN(exp32)(ptrdiff_t n, const float *restrict x, float *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_exp32(x[i]);
}
