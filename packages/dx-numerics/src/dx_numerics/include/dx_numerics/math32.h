/* exp32, tanh32, erf32, sigmoid32, rsqrt32: binary32 functions from separately rounded + - * / and sqrt alone (no FMA,
 * no libm), branch-free, so that scalar and vector code give the same bits and plain loops vectorise. */
#ifndef DX_NUMERICS_MATH32_H
#define DX_NUMERICS_MATH32_H

#include "config.h"

DX_INLINE float dx_exp32(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float t = x * 0x1.715476p+0f + 12582912.0f;
    int32_t n = (int32_t)dx_bits_of_float(t) - 0x4B400000;
    float fn = t - 12582912.0f;
    float a = x - fn * 0x1.63p-1f, w = fn * -0x1.bd0106p-13f, r = a - w;
    float q = 0x1.a125p-13f;
    q = q * r + 0x1.6d4334p-10f;
    q = q * r + 0x1.1110e0p-7f;
    q = q * r + 0x1.5554e8p-5f;
    q = q * r + 0x1.555556p-3f;
    q = q * r + 0x1.0p-1f;
    float r_low = (a - r) - w, s = 1.0f + r, e = (1.0f - s) + r;
    float y = s + (e + (r_low + (r * r) * q));
    int32_t n1 = n >> 1, n2 = n - n1;
    return (y * dx_float_of_bits((uint32_t)(n1 + 127) << 23)) * dx_float_of_bits((uint32_t)(n2 + 127) << 23);
}

/* Common part of the functions evaluated in binary64: 2^t = 2^n * 2^f with n = round(t), |f| <= 1/2.
 * The low bits of k = t + 1.5 * 2^52 hold n, so that adding k << 52 to a binary64's bits multiplies it by 2^n.
 * For NaN every step is still defined, and f is NaN. */
typedef struct { double f; uint64_t shift; } dx_reduced;

DX_INLINE dx_reduced dx_reduce_exp2(double t)
{
    double k = t + 6755399441055744.0;
    return (dx_reduced){t - (k - 6755399441055744.0), dx_bits_of_double(k) << 52};
}

/* 2^t for |t| < 1000, relative error 2^-29, in binary64. */
DX_INLINE double dx_exp2_short(double t)
{
    dx_reduced r = dx_reduce_exp2(t);
    double f = r.f, g = f * f;
    double a = 0x1.0000000261531p+0 + 0x1.62e430c7e8192p-1 * f;
    double b = 0x1.ebfbdadca918ep-3 + 0x1.c6aed4b8ef83ap-5 * f;
    double c = (0x1.3b2dbbc2ac0c8p-7 + 0x1.5f456b05220bap-10 * f) + 0x1.41d334447d2b0p-13 * g;
    return dx_double_of_bits(dx_bits_of_double(a + g * (b + g * c)) + r.shift);
}

/* tanh(x) = e / (e + 2), e = 2^n (2^f - 1) + (2^n - 1) = exp(2x) - 1, in binary64, rounded once. */
DX_INLINE float dx_tanh32(float x)
{
    float c = x > 10.0f ? 10.0f : x;
    c = c < -10.0f ? -10.0f : c;
    dx_reduced r = dx_reduce_exp2((double)c * 0x1.71547652b82fep+1);
    double f = r.f, g = f * f;
    double a = ((0x1.ffcbdc7b47117p-17 * g + 0x1.5d88bdb26496dp-10) * g + 0x1.c6b08cb1670e1p-5) * g + 0x1.62e42fefd32c3p-1;
    double b = (0x1.443f6252ee25ap-13 * g + 0x1.3b2a1c3613eb0p-7) * g + 0x1.ebfbe045304bdp-3;
    double s = dx_double_of_bits(r.shift + 0x3ff0000000000000ULL);
    double e = s * ((a + f * b) * f) + (s - 1.0);
    float y = (float)(e / (e + 2.0));
    return dx_float_of_bits(dx_bits_of_float(y) | (dx_bits_of_float(x) & 0x80000000u)); /* tanh(-0) = -0 */
}

/* sigmoid(x) = 1 / (1 + exp(-x)), in binary64, rounded once. */
DX_INLINE float dx_sigmoid32(float x)
{
    float c = x > 104.0f ? 104.0f : x;
    c = c < -104.0f ? -104.0f : c;
    return (float)(1.0 / (1.0 + dx_exp2_short((double)c * -0x1.71547652b82fep+0)));
}

/* erf(x) = x * P(x^2), in binary64, rounded once; |x| >= 3.9375 gives 1. */
DX_INLINE float dx_erf32(float x)
{
    float c = x > 3.9375f ? 3.9375f : x;
    c = c < -3.9375f ? -3.9375f : c;
    double t = c, z = t * t, y = z * z;
    double a = -0x1.1997d7a0e355bp-63, b = 0x1.5030b9bc8448dp-56;
    a = a * y + -0x1.773c0eafe04a0p-50; b = b * y + 0x1.04f3928aa26c9p-44;
    a = a * y + -0x1.fd5129ba9ccccp-40; b = b * y + 0x1.74fd55cabe792p-35;
    a = a * y + -0x1.ad1a688701b62p-31; b = b * y + 0x1.91973dc9a52bep-27;
    a = a * y + -0x1.3aa543924a029p-23; b = b * y + 0x1.a6487e068f1e9p-20;
    a = a * y + -0x1.ece172583ba4ep-17; b = b * y + 0x1.f7436c76c6268p-14;
    a = a * y + -0x1.bfac8d458d01cp-11; b = b * y + 0x1.56495499b3143p-8;
    a = a * y + -0x1.b8299e1408bd9p-6;  b = b * y + 0x1.ce2ed1ff33861p-4;
    a = a * y + -0x1.8127439dd3396p-2;  b = b * y + 0x1.20dd74fef7c9ap+0;
    return (float)(t * (a * z + b));
}

/* 1 / sqrt(x), two IEEE operations. */
DX_INLINE float dx_rsqrt32(float x) { return 1.0f / __builtin_sqrtf(x); }

#endif
