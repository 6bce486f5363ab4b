/* dot16 and sum16 as callable functions, once per path; the definitions are in dx_numerics/dot.h. */
#include <dx_numerics/dot.h>
#include "table.h"

float DX_FN(dot16)(const float *a, const float *b, ptrdiff_t n) { return dx_dot16(a, b, n); }

float DX_FN(dot16_strided)(const float *a, ptrdiff_t a_stride, const float *b, ptrdiff_t b_stride, ptrdiff_t n)
{
    return dx_dot16_strided(a, a_stride, b, b_stride, n);
}

float DX_FN(sum16)(const float *x, ptrdiff_t n) { return dx_sum16(x, n); }

float DX_FN(sum16_strided)(const float *x, ptrdiff_t stride, ptrdiff_t n) { return dx_sum16_strided(x, stride, n); }
