/* The functions of dx-numerics that exist once per kernel path. A family adds its lines here and its code in
 * its own .c file; each file is compiled once per path. */
#ifndef DX_NUMERICS_TABLE_H
#define DX_NUMERICS_TABLE_H

#include <dx_numerics/config.h>

#define DX_NUMERICS_TABLE(F) \
    F(float, dot16, (const float *a, const float *b, ptrdiff_t n)) \
    F(float, dot16_strided, (const float *a, ptrdiff_t a_stride, const float *b, ptrdiff_t b_stride, ptrdiff_t n)) \
    F(float, sum16, (const float *x, ptrdiff_t n)) \
    F(float, sum16_strided, (const float *x, ptrdiff_t stride, ptrdiff_t n)) \
    F(void, widen_float16, (ptrdiff_t n, const uint16_t *x, float *out)) \
    F(void, widen_bfloat16, (ptrdiff_t n, const uint16_t *x, float *out)) \
    F(void, narrow_float16, (ptrdiff_t n, const float *x, uint16_t *out)) \
    F(void, narrow_bfloat16, (ptrdiff_t n, const float *x, uint16_t *out)) \
    F(void, random_u64, (ptrdiff_t n, uint64_t seed, uint64_t first, uint64_t *out)) \
    F(void, random_uniform24, (ptrdiff_t n, uint64_t seed, uint64_t first, float *out)) \
    F(void, random_uniform53, (ptrdiff_t n, uint64_t seed, uint64_t first, double *out)) \
    F(void, random_between, (ptrdiff_t n, uint64_t seed, uint64_t first, double low, double high, float *out)) \
    F(void, random_normal, (ptrdiff_t n, uint64_t seed, uint64_t first, double mean, double deviation, float *out)) \
    F(void, canary, (ptrdiff_t n, const float *a, const float *b, const float *c, float *out)) \
    F(void, canary64, (ptrdiff_t n, const double *a, const double *b, const double *c, double *out)) \
    F(void, exp32, (ptrdiff_t n, const float *x, float *out)) \
    F(void, tanh32, (ptrdiff_t n, const float *x, float *out)) \
    F(void, erf32, (ptrdiff_t n, const float *x, float *out)) \
    F(void, sigmoid32, (ptrdiff_t n, const float *x, float *out)) \
    F(void, rsqrt32, (ptrdiff_t n, const float *x, float *out)) \
    F(void, exp64, (ptrdiff_t n, const double *x, double *out)) \
    F(void, log64, (ptrdiff_t n, const double *x, double *out)) \
    F(void, log1p64, (ptrdiff_t n, const double *x, double *out)) \
    F(void, softplus64, (ptrdiff_t n, const double *x, double *out))

typedef struct {
#define DX_MEMBER(result, name, arguments) result (*name) arguments;
    DX_NUMERICS_TABLE(DX_MEMBER)
#undef DX_MEMBER
} dx_numerics_table;

/* By path; a path that this binary does not hold is NULL. */
extern const dx_numerics_table *const dx_numerics_tables[DX_PATH_COUNT];

#endif
