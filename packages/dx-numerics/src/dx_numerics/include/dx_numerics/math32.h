/* exp32, tanh32, erf32, sigmoid32, rsqrt32: binary32 functions from separately rounded + - * / and sqrt alone (no FMA,
 * no libm), branch-free, so that scalar and vector code give the same bits and plain loops vectorise.
 *
 * The line "ulp NAME: ..." above each function is what a run over all 2^32 inputs measured; the exhaustive test reads
 * it and repeats the run. "worst" is the largest |result - exact| in units of the last place of the exact result (at
 * least 2^-149), "at" the lowest encoding where it happens, "wrong" how many results are not correctly rounded. */
#ifndef DX_NUMERICS_MATH32_H
#define DX_NUMERICS_MATH32_H

#include "config.h"

/* exp(x) = 2^n * y, n = round(x / log 2); with r + r_low = x - n * log 2, |r| <= 0.35,
 *     y = exp(r) = (1 + r) + ((error of 1 + r) + r_low + r^2 q(r))
 * The low bits of t hold n. Good for -104 <= x < 88.723; for NaN y is NaN; defined for every x. */
typedef struct { float y; uint32_t t; } dx_exp32_parts;

DX_INLINE dx_exp32_parts dx_split_exp32(float x)
{
    float t = x * 0x1.715476p+0f + 12582912.0f, n = t - 12582912.0f;
    float a = x - n * 0x1.63p-1f, w = n * -0x1.bd0106p-13f, r = a - w, g = r * r;
    float q = (0x1.fffffcp-2f + 0x1.55548cp-3f * r) + g * ((0x1.555858p-5f + 0x1.123dep-7f * r) + g * 0x1.6ac74cp-10f);
    float r_low = (a - r) - w, s = 1.0f + r, e = (1.0f - s) + r;
    return (dx_exp32_parts){s + ((e + r_low) + g * q), dx_bits_of_float(t)};
}

/* Adding t << 23 to the bits of y multiplies it by 2^n. Below x = -64 that is done 2^64 too high and a multiplication
 * brings it back, which rounds subnormal results.
 * ulp exp32: worst 0.77910 at -0x1.5ed742p+6 wrong 4534649 */
DX_INLINE float dx_exp32(float x)
{
    dx_exp32_parts p = dx_split_exp32(x);
    float back = x < -64.0f ? 0x1p-64f : 1.0f;
    uint32_t shift = (p.t << 23) + (0x3f800000u - dx_bits_of_float(back));
    float z = dx_float_of_bits(dx_bits_of_float(p.y) + shift) * back;
    z = x < -104.0f ? 0.0f : z;
    return x <= 0x1.62e42ep+6f ? z : x + __builtin_inff(); /* overflow and NaN */
}

/* The functions below are evaluated in binary64 and rounded once to binary32.
 * 2^t = 2^n * 2^f with n = round(t), |f| <= 1/2. The low bits of k = t + 1.5 * 2^52 hold n, so adding k << 52 to a
 * binary64's bits multiplies it by 2^n. NaN: f is NaN, and every step is still defined. */
typedef struct { double f; uint64_t shift; } dx_reduced;

DX_INLINE dx_reduced dx_reduce_exp2(double t)
{
    double k = t + 6755399441055744.0;
    return (dx_reduced){t - (k - 6755399441055744.0), dx_bits_of_double(k) << 52};
}

/* tanh(x) = (2^n p + (2^n - 1)) / (2^n p + (2^n + 1)), where 2x = (n + f) log 2 and p = 2^f - 1 = f * polynomial.
 * ulp tanh32: worst 0.50385 at -0x1.d1968p-4 wrong 203587 */
DX_INLINE float dx_tanh32(float x)
{
    float c = x > 10.0f ? 10.0f : x;
    c = c < -10.0f ? -10.0f : c;
    dx_reduced m = dx_reduce_exp2((double)c * 0x1.71547652b82fep+1);
    double f = m.f, g = f * f;
    double a = 0x1.62e42fefd32c3p-1 + 0x1.ebfbe045304bdp-3 * f;
    double b = 0x1.c6b08cb1670e1p-5 + 0x1.3b2a1c3613eb0p-7 * f;
    double d = 0x1.5d88bdb26496dp-10 + 0x1.443f6252ee25ap-13 * f;
    double p = f * (a + g * (b + g * (d + g * 0x1.ffcbdc7b47117p-17)));
    double s = dx_double_of_bits(m.shift + 0x3ff0000000000000ULL), sp = s * p;
    float y = (float)((sp + (s - 1.0)) / (sp + (s + 1.0)));
    return dx_float_of_bits(dx_bits_of_float(y) | (dx_bits_of_float(x) & 0x80000000u)); /* tanh(-0) is -0 */
}

/* sigmoid(x) = 1 / (1 + 2^n p), where -x = (n + f) log 2 and p = 2^f.
 * ulp sigmoid32: worst 0.52927 at -0x1.a5eabep+5 wrong 2738515 */
DX_INLINE float dx_sigmoid32(float x)
{
    float c = x > 104.0f ? 104.0f : x;
    c = c < -104.0f ? -104.0f : c;
    dx_reduced m = dx_reduce_exp2((double)c * -0x1.71547652b82fep+0);
    double f = m.f, g = f * f;
    double a = 0x1.0000000261531p+0 + 0x1.62e430c7e8192p-1 * f;
    double b = 0x1.ebfbdadca918ep-3 + 0x1.c6aed4b8ef83ap-5 * f;
    double d = 0x1.3b2dbbc2ac0c8p-7 + 0x1.5f456b05220bap-10 * f;
    double p = a + g * (b + g * (d + g * 0x1.41d334447d2b0p-13));
    return (float)(1.0 / (1.0 + dx_double_of_bits(dx_bits_of_double(p) + m.shift)));
}

/* erf(x) = x * (P(z) + z Q(z)), z = x^2, P and Q polynomials in z^2; from |x| = 3.9375 on the result is +-1.
 * ulp erf32: worst 0.51804 at 0x1.c5af3ep-11 wrong 27747084 */
DX_INLINE float dx_erf32(float x)
{
    float c = x > 3.9375f ? 3.9375f : x;
    c = c < -3.9375f ? -3.9375f : c;
    double t = c, z = t * t, v = z * z;
    double q = -0x1.192d2bf745f89p-63,        p = 0x1.4fc4928c9deb7p-56;
    q = q * v + -0x1.76d80a8d15e4ap-50;       p = p * v + 0x1.04bbb959fcc5fp-44;
    q = q * v + -0x1.fcfd1ab2485d0p-40;       p = p * v + 0x1.74d04984cadd6p-35;
    q = q * v + -0x1.acf6fb695008fp-31;       p = p * v + 0x1.91827cded3122p-27;
    q = q * v + -0x1.3a9c2981d94fep-23;       p = p * v + 0x1.a64289540e7e9p-20;
    q = q * v + -0x1.ecde92b5cb4a3p-17;       p = p * v + 0x1.f7426c38a30ccp-14;
    q = q * v + -0x1.bfac4ef0c01d8p-11;       p = p * v + 0x1.56494a8a6577dp-8;
    q = q * v + -0x1.b8299c1771f75p-6;        p = p * v + 0x1.ce2ed1c9b720bp-4;
    q = q * v + -0x1.8127439b8f9d7p-2;        p = p * v + 0x1.20dd74fef39bep+0;
    return (float)(t * (q * z + p));
}

/* 1 / sqrt(x) as two IEEE operations, so it has two roundings.
 * ulp rsqrt32: worst 1.49035 at 0x1.019566p-126 wrong 556013448 */
DX_INLINE float dx_rsqrt32(float x) { return 1.0f / __builtin_sqrtf(x); }

#endif
