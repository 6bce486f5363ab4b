/* The streams of dx_numerics/random.h over arrays, once per path. */
#include <dx_numerics/random.h>
#include "table.h"

void DX_FN(random_u64)(ptrdiff_t n, uint64_t seed, uint64_t first, uint64_t *out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_random_at(seed, first + (uint64_t)i);
}

void DX_FN(random_uniform24)(ptrdiff_t n, uint64_t seed, uint64_t first, float *out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_uniform24(dx_random_at(seed, first + (uint64_t)i));
}

void DX_FN(random_uniform53)(ptrdiff_t n, uint64_t seed, uint64_t first, double *out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_uniform53(dx_random_at(seed, first + (uint64_t)i));
}

void DX_FN(random_between)(ptrdiff_t n, uint64_t seed, uint64_t first, double low, double high, float *out)
{
    double width = high - low;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (float)(low + width * dx_uniform53(dx_random_at(seed, first + (uint64_t)i)));
}

void DX_FN(random_normal)(ptrdiff_t n, uint64_t seed, uint64_t first, double mean, double deviation, float *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (float)(mean + deviation * dx_normal(dx_random_at(seed, first + (uint64_t)i)));
}
