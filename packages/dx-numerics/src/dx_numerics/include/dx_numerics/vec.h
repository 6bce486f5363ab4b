/* The vector type of the kernel path being compiled, and the one fused multiply-add of dx.
 *
 * dx_vf holds DX_VL floats (the path's own register width; wider GCC vectors are slow on AVX2). + - * / and
 * comparisons on it are the compiler's own, one IEEE operation a lane; fused operations happen only where
 * dx_vfma is written, and dx_vfma is written only inside dots. */
#ifndef DX_NUMERICS_VEC_H
#define DX_NUMERICS_VEC_H

#include "config.h"

#if DX_PATH == DX_PATH_AVX512
#include <immintrin.h>
#define DX_VL 16
#elif DX_PATH == DX_PATH_AVX2
#include <immintrin.h>
#define DX_VL 8
#elif DX_PATH == DX_PATH_NEON
#include <arm_neon.h>
#define DX_VL 4
#else
#define DX_VL 4
#endif

/* The vectors that make up the 16 lanes of a dot. */
#define DX_NV (16 / DX_VL)

typedef float dx_vf __attribute__((vector_size(4 * DX_VL)));
typedef int32_t dx_vi __attribute__((vector_size(4 * DX_VL)));
/* For loads and stores at any address of a float array. */
typedef float dx_vf_any __attribute__((vector_size(4 * DX_VL), aligned(4), may_alias));
typedef int32_t dx_vi_any __attribute__((vector_size(4 * DX_VL), aligned(4), may_alias));

DX_INLINE dx_vf dx_vload(const float *p) { return *(const dx_vf_any *)p; }
DX_INLINE void dx_vstore(float *p, dx_vf v) { *(dx_vf_any *)p = v; }
DX_INLINE dx_vf dx_vset(float x) { return x - (dx_vf){0}; } /* x - (+0) is x for every x, -0 included */
/* mask ? a : b, lane by lane; mask is a comparison's result (all ones or all zeros). */
DX_INLINE dx_vf dx_vselect(dx_vi mask, dx_vf a, dx_vf b)
{
    return (dx_vf)(((dx_vi)a & mask) | ((dx_vi)b & ~mask));
}

/* Lane l of the result is lane l ^ width of v; width is a constant power of two below DX_VL. */
#if DX_VL == 16
#define DX_VSWAP(v, w) __builtin_shufflevector(v, v, 0 ^ w, 1 ^ w, 2 ^ w, 3 ^ w, 4 ^ w, 5 ^ w, 6 ^ w, 7 ^ w, \
                                               8 ^ w, 9 ^ w, 10 ^ w, 11 ^ w, 12 ^ w, 13 ^ w, 14 ^ w, 15 ^ w)
#elif DX_VL == 8
#define DX_VSWAP(v, w) __builtin_shufflevector(v, v, 0 ^ w, 1 ^ w, 2 ^ w, 3 ^ w, 4 ^ w, 5 ^ w, 6 ^ w, 7 ^ w)
#else
#define DX_VSWAP(v, w) __builtin_shufflevector(v, v, 0 ^ w, 1 ^ w, 2 ^ w, 3 ^ w)
#endif

/* a * b + c with one rounding, from binary64 arithmetic alone. The product of two binary32 numbers is exact in
 * binary64; the sum is rounded to odd (so that the second rounding, to binary32, is the only one that counts).
 * Infinities and NaN have no error term and pass through untouched. */
DX_INLINE float dx_fma_software(float a, float b, float c)
{
    double product = (double)a * b, addend = c;
    double sum = product + addend;
    double back = sum - product;
    double error = (product - (sum - back)) + (addend - back); /* NaN when sum is not finite */
    uint64_t bits = dx_bits_of_double(sum);
    int64_t inexact = (error < 0.0) | (error > 0.0);
    int64_t away = (error > 0.0) == (sum > 0.0); /* the lost part lies away from zero */
    int64_t nudge = inexact & ~(int64_t)bits & 1;
    bits += (uint64_t)(nudge * (2 * away - 1));
    return (float)dx_double_of_bits(bits);
}

DX_INLINE dx_vf dx_vfma(dx_vf a, dx_vf b, dx_vf c)
{
#if DX_PATH == DX_PATH_AVX512
    return (dx_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif DX_PATH == DX_PATH_AVX2
    return (dx_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif DX_PATH == DX_PATH_NEON
    return (dx_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    dx_vf r;
    for (int l = 0; l < DX_VL; l++) r[l] = dx_fma_software(a[l], b[l], c[l]);
    return r;
#endif
}

#endif
