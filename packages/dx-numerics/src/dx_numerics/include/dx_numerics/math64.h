/* exp64, log64, log1p64, softplus64: binary64 functions from separately rounded + - * / alone (no FMA, no libm). */
#ifndef DX_NUMERICS_MATH64_H
#define DX_NUMERICS_MATH64_H

#include "config.h"

DX_INLINE double dx_exp64(double x)
{
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double t = x * 0x1.71547652b82fep+0 + 6755399441055744.0;
    int64_t n = (int64_t)dx_bits_of_double(t) - 0x4338000000000000LL;
    double fn = t - 6755399441055744.0;
    double a = x - fn * 0x1.62e42feep-1, w = fn * 0x1.a39ef35793c76p-33, r = a - w;
    double q = 0x1.1f730a202e3a1p-29;
    q = q * r + 0x1.af4df5750ec00p-26;
    q = q * r + 0x1.27e4db6121bf2p-22;
    q = q * r + 0x1.71de022bd5558p-19;
    q = q * r + 0x1.a01a01a6d9931p-16;
    q = q * r + 0x1.a01a01abe9ce8p-13;
    q = q * r + 0x1.6c16c16c162d2p-10;
    q = q * r + 0x1.11111111100d8p-7;
    q = q * r + 0x1.5555555555556p-5;
    q = q * r + 0x1.5555555555557p-3;
    q = q * r + 0x1.0p-1;
    double r_low = (a - r) - w, s = 1.0 + r, e = (1.0 - s) + r, y = s + (e + (r_low + (r * r) * q));
    uint64_t n1 = ((uint64_t)(n + 2048) >> 1) - 1024, n2 = (uint64_t)n - n1;
    return (y * dx_double_of_bits((n1 + 1023) << 52)) * dx_double_of_bits((n2 + 1023) << 52);
}

/* m = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); k is a whole binary64 number. Defined for every bits. */
typedef struct { double k, f; } dx_log_parts;

DX_INLINE dx_log_parts dx_split_log64(double x)
{
    uint64_t bits = dx_bits_of_double(x);
    uint64_t kb = (bits - 0x3fe6a09e667f3bcdULL + (2048ULL << 52)) >> 52; /* k + 2048 */
    double k = dx_double_of_bits(kb | 0x4330000000000000ULL) - (4503599627370496.0 + 2048.0);
    return (dx_log_parts){k, dx_double_of_bits(bits - ((kb - 2048) << 52)) - 1.0};
}

/* k * log(2) + log(1 + f) + c for a small correction c. */
DX_INLINE double dx_join_log64(double k, double f, double c)
{
    double s = f / (2.0 + f), z = s * s;
    double q = 0x1.2b6688a387e03p-3;
    q = q * z + 0x1.39fd392179a95p-3;
    q = q * z + 0x1.7462bd8f7796ep-3;
    q = q * z + 0x1.c71c62c639fdep-3;
    q = q * z + 0x1.2492492e09d4dp-2;
    q = q * z + 0x1.9999999995204p-2;
    q = q * z + 0x1.5555555555558p-1;
    q = q * z;
    double h = 0.5 * f * f;
    return k * 0x1.62e42feep-1 - ((h - (s * (h + q) + (k * 0x1.a39ef35793c76p-33 + c))) - f);
}

/* log(x); log(+-0) = -inf, x < 0 gives NaN. */
DX_INLINE double dx_log64(double x)
{
    int subnormal = x < 0x1p-1022;
    dx_log_parts p = dx_split_log64(subnormal ? x * 0x1p54 : x);
    double r = dx_join_log64(p.k + (subnormal ? -54.0 : 0.0), p.f, 0.0);
    r = x == 0.0 ? -__builtin_inf() : r;
    r = x < 0.0 ? __builtin_nan("") : r;
    r = x == __builtin_inf() ? x : r;
    return x != x ? x : r;
}

/* log(1 + x); log1p(-1) = -inf, x < -1 gives NaN, log1p(-0) = -0. u = round(1 + x), low = 1 + x - u exactly;
 * log(u + low) = log(u) + low / u; where k is 0, f is x itself. */
DX_INLINE double dx_log1p64(double x)
{
    double u = 1.0 + x, back = u - 1.0, low = (1.0 - (u - back)) + (x - back);
    dx_log_parts p = dx_split_log64(u);
    double r = dx_join_log64(p.k, p.k == 0.0 ? x : p.f, p.k == 0.0 ? 0.0 : low / u);
    r = x == 0.0 ? x : r;
    r = x == -1.0 ? -__builtin_inf() : r;
    r = x < -1.0 ? __builtin_nan("") : r;
    r = x == __builtin_inf() ? x : r;
    return x != x ? x : r;
}

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)): no overflow, no cancellation. */
DX_INLINE double dx_softplus64(double x)
{
    double positive = x > 0.0 ? x : 0.0, negative = x > 0.0 ? -x : x;
    return positive + dx_log1p64(dx_exp64(negative));
}

#endif
