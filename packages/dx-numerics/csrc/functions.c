/* The functions of math32.h and math64.h over arrays, once per path. out may be x itself; otherwise they must not
 * overlap (no iteration reads what another writes, which the pragma tells the compiler). */
#include <dx_numerics/math32.h>
#include <dx_numerics/math64.h>
#include "table.h"

#if defined(__clang__)
#define DX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DX_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define DX_MAP(type, name) \
    void DX_FN(name)(ptrdiff_t n, const type *x, type *out) \
    { \
        DX_INDEPENDENT for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_##name(x[i]); \
    }
DX_MAP(float, exp32)
DX_MAP(float, tanh32)
DX_MAP(float, erf32)
DX_MAP(float, sigmoid32)
DX_MAP(float, rsqrt32)
DX_MAP(double, exp64)
DX_MAP(double, log64)
DX_MAP(double, log1p64)
DX_MAP(double, softplus64)
