/* The conversions of dx_numerics/half.h over arrays, once per path. */
#include <dx_numerics/half.h>
#include "table.h"

void DX_FN(widen_float16)(ptrdiff_t n, const uint16_t *restrict x, float *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_widen_float16(x[i]);
}

void DX_FN(widen_bfloat16)(ptrdiff_t n, const uint16_t *restrict x, float *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_widen_bfloat16(x[i]);
}

void DX_FN(narrow_float16)(ptrdiff_t n, const float *restrict x, uint16_t *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_narrow_float16(x[i]);
}

void DX_FN(narrow_bfloat16)(ptrdiff_t n, const float *restrict x, uint16_t *restrict out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_narrow_bfloat16(x[i]);
}
