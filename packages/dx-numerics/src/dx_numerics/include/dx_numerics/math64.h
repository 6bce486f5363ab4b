/* exp64, log64, log1p64, softplus64: binary64 functions from separately rounded + - * / alone (no FMA, no libm),
 * branch-free, so that scalar and vector code give the same bits and plain loops vectorise.
 *
 * The line "ulp NAME: ..." above each function is what a run over 10^8 samples measured: the largest
 * |result - exact| in units of the last place of the exact result. The exhaustive test reads it and repeats the run. */
#ifndef DX_NUMERICS_MATH64_H
#define DX_NUMERICS_MATH64_H

#include "config.h"

/* exp(x) as exp32 does it: n = round(x / log 2), r + r_low = x - n log 2; below x = -512 scaled back by 2^-512.
 * ulp exp64: worst 0.79590 at -0x1.625f1a5dc72e3p+9 */
DX_INLINE double dx_exp64(double x)
{
    double t = x * 0x1.71547652b82fep+0 + 6755399441055744.0, n = t - 6755399441055744.0;
    double a = x - n * 0x1.62e42feep-1, w = n * 0x1.a39ef35793c76p-33, r = a - w, g = r * r, h = g * g;
    double q0 = (0x1.0p-1 + 0x1.5555555555557p-3 * r) + g * (0x1.5555555555556p-5 + 0x1.11111111100d8p-7 * r);
    double q1 = (0x1.6c16c16c162d2p-10 + 0x1.a01a01abe9ce8p-13 * r)
              + g * (0x1.a01a01a6d9931p-16 + 0x1.71de022bd5558p-19 * r);
    double q2 = (0x1.27e4db6121bf2p-22 + 0x1.af4df5750ec00p-26 * r) + g * 0x1.1f730a202e3a1p-29;
    double q = q0 + h * (q1 + h * q2);
    double r_low = (a - r) - w, s = 1.0 + r, e = (1.0 - s) + r;
    double y = s + ((e + r_low) + g * q);
    double back = x < -512.0 ? 0x1p-512 : 1.0;
    uint64_t shift = (dx_bits_of_double(t) << 52) + (0x3ff0000000000000ULL - dx_bits_of_double(back));
    double z = dx_double_of_bits(dx_bits_of_double(y) + shift) * back;
    z = x < -746.0 ? 0.0 : z;
    return x <= 0x1.62e42fefa39efp+9 ? z : x + __builtin_inf(); /* overflow and NaN */
}

/* x = 2^k * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); k is a whole binary64 number. Defined for every x. */
typedef struct { double k, f; } dx_log_parts;

DX_INLINE dx_log_parts dx_split_log64(double x)
{
    uint64_t bits = dx_bits_of_double(x);
    uint64_t kb = (bits - 0x3fe6a09e667f3bcdULL + (2048ULL << 52)) >> 52; /* k + 2048 */
    double k = dx_double_of_bits(kb | 0x4330000000000000ULL) - (4503599627370496.0 + 2048.0);
    return (dx_log_parts){k, dx_double_of_bits(bits - ((kb - 2048) << 52)) - 1.0};
}

/* k * log(2) + log(1 + f) + c for a small correction c; with s = f / (2 + f),
 * log(1 + f) = f - f^2/2 + s (f^2/2 + q(s^2)). */
DX_INLINE double dx_join_log64(double k, double f, double c)
{
    double s = f / (2.0 + f), z = s * s, v = z * z;
    double q0 = 0x1.5555555555558p-1 + 0x1.9999999995204p-2 * z;
    double q1 = 0x1.2492492e09d4dp-2 + 0x1.c71c62c639fdep-3 * z;
    double q2 = (0x1.7462bd8f7796ep-3 + 0x1.39fd392179a95p-3 * z) + v * 0x1.2b6688a387e03p-3;
    double q = z * (q0 + v * (q1 + v * q2));
    double h = 0.5 * f * f;
    return k * 0x1.62e42feep-1 - ((h - (s * (h + q) + (k * 0x1.a39ef35793c76p-33 + c))) - f);
}

/* log(x); log(+-0) = -inf, x < 0 gives NaN.
 * ulp log64: worst 0.89062 at 0x1.6a09e6084c87bp-1 */
DX_INLINE double dx_log64(double x)
{
    double up = x < 0x1p-1022 ? 0x1p54 : 1.0, down = x < 0x1p-1022 ? -54.0 : 0.0;
    dx_log_parts p = dx_split_log64(x * up);
    double r = dx_join_log64(p.k + down, p.f, 0.0);
    r = x > 0.0 ? r : (x == 0.0 ? -__builtin_inf() : __builtin_nan(""));
    return x < __builtin_inf() ? r : x + x;
}

/* log(1 + x); log1p(-1) = -inf, x < -1 gives NaN, log1p(-0) = -0. u = round(1 + x), low = 1 + x - u exactly;
 * log(u + low) = log(u) + low / u; where k is 0, f is x itself.
 * ulp log1p64: worst 0.89600 at -0x1.2bec3533c3342p-2 */
DX_INLINE double dx_log1p64(double x)
{
    double u = 1.0 + x, part = u - 1.0, low = (1.0 - (u - part)) + (x - part);
    dx_log_parts p = dx_split_log64(u);
    double r = dx_join_log64(p.k, p.k == 0.0 ? x : p.f, p.k == 0.0 ? 0.0 : low / u);
    r = x > -1.0 ? r : (x == -1.0 ? -__builtin_inf() : __builtin_nan(""));
    r = x == 0.0 ? x : r;
    return x < __builtin_inf() ? r : x + x;
}

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)): no overflow, no cancellation.
 * ulp softplus64: worst 1.53760 at -0x1.49ef6cb202d16p+0 */
DX_INLINE double dx_softplus64(double x)
{
    double positive = x > 0.0 ? x : 0.0, e = dx_exp64(x > 0.0 ? -x : x);
    double u = 1.0 + e, low = (1.0 - u) + e; /* e <= 1, so this is exactly what u lost */
    dx_log_parts p = dx_split_log64(u);
    return positive + dx_join_log64(p.k, p.k == 0.0 ? e : p.f, p.k == 0.0 ? 0.0 : low / u);
}

#endif
