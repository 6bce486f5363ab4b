/* Activations of one element, for the kernels of this package: written so that compilers vectorise a loop of them,
 * from separately rounded operations alone. The array kernels are in activations.c. */
#ifndef DX_KERNELS_ACTIVATIONS_INLINE_H
#define DX_KERNELS_ACTIVATIONS_INLINE_H

#include <dx_numerics/math32.h>

/* NaN stays; -0 becomes +0. */
DX_INLINE float dx_relu(float x) { return x < 0.0f ? 0.0f : x + 0.0f; }
/* x may be relu's input or its output: both have the same elements above zero and the same NaN. */
DX_INLINE float dx_relu_grad(float dy, float x) { return x <= 0.0f ? 0.0f : dy; }
DX_INLINE float dx_tanh_grad(float dy, float y) { return dy * (1.0f - y * y); }
DX_INLINE float dx_sigmoid_grad(float dy, float y) { return dy * (y * (1.0f - y)); }

#define DX_GELU_C0 0x1.988454p-1f /* sqrt(2/pi) */
#define DX_GELU_C1 0x1.6e4e26p-5f /* 0.044715 */

/* The tanh term, which forward saves for backward. */
DX_INLINE float dx_gelu_tanh_term(float x)
{
    return dx_tanh32(DX_GELU_C0 * (x + DX_GELU_C1 * (x * (x * x))));
}

DX_INLINE float dx_gelu_tanh(float x, float t) { return (0.5f * x) * (1.0f + t); }

/* dy * (0.5 (1 + t) + 0.5 x (1 - t^2) c0 (1 + 3 c1 x^2)); where 1 - t^2 is 0 the second term is +0, so that a
 * finite x whose square overflows has a finite gradient. */
DX_INLINE float dx_gelu_tanh_grad(float dy, float x, float t)
{
    float s = 1.0f - t * t;
    float term = ((0.5f * x) * s) * (DX_GELU_C0 * (1.0f + (3.0f * DX_GELU_C1) * (x * x)));
    return dy * (0.5f * (1.0f + t) + (s == 0.0f ? 0.0f : term));
}

/* The erf form is x P(x) with P the normal distribution function, computed in binary64 and rounded once. For a = |x|
 * (15 at most: beyond, nothing of it is left), *e = exp(-a^2/2) and the result is P(-a) = e * num(a) / den(a), both to
 * a relative error of 2^-32. Every term of num and den is positive, so nothing cancels in the far tail. */
DX_INLINE double dx_normal_tail(double a, double *e)
{
    double z = -0.5 * (a * a);
    double k = z * 0x1.71547652b82fep+0 + 0x1.8p52;
    double r = z - (k - 0x1.8p52) * 0x1.62e42fefa39efp-1;
    double p = 0x1.a1132015ba37ep-16;
    p = p * r + 0x1.a15179d80ae96p-13;
    p = p * r + 0x1.6c16858b7acb9p-10;
    p = p * r + 0x1.1110c632a3088p-7;
    p = p * r + 0x1.5555555c87148p-5;
    p = p * r + 0x1.55555567532adp-3;
    p = p * r + 0x1.0000000000000p-1;
    uint64_t scale = (dx_bits_of_double(k) + 1023) << 52; /* 2^k: the low bits of k are the integer */
    *e = (1.0 + (r + (r * r) * p)) * dx_double_of_bits(scale);
    double num = 0x1.d4f1e28d51a5ap-11;
    num = num * a + 0x1.7f200386841f1p-7;
    num = num * a + 0x1.24fbf317f175bp-4;
    num = num * a + 0x1.0120a583ca857p-2;
    num = num * a + 0x1.042b312d2cc0ep-1;
    num = num * a + 0x1.ffffffff54baep-2;
    double den = 0x1.25de324d0c3f8p-9;
    den = den * a + 0x1.e02c52862a4bep-6;
    den = den * a + 0x1.73cdcdb9320e3p-3;
    den = den * a + 0x1.5137af2a2b1eap-1;
    den = den * a + 0x1.731f80bb91113p+0;
    den = den * a + 0x1.d06d5aab00d68p+0;
    den = den * a + 1.0;
    return *e * (num / den);
}

DX_INLINE double dx_gelu_limit(double x)
{
    double a = dx_double_of_bits(dx_bits_of_double(x) & 0x7fffffffffffffffULL);
    return a > 15.0 ? 15.0 : a;
}

DX_INLINE float dx_gelu_erf(float x)
{
    double v = x, a = dx_gelu_limit(v), e, tail = a * dx_normal_tail(a, &e);
    return (float)(v < 0.0 ? -tail : v - tail);
}

/* dy * (P(x) + x exp(-x^2/2) / sqrt(2 pi)) */
DX_INLINE float dx_gelu_erf_grad(float dy, float x)
{
    double v = x, a = dx_gelu_limit(v), e, tail = dx_normal_tail(a, &e);
    double slope = (a * e) * 0x1.9884533d43651p-2;
    return (float)((double)dy * (v < 0.0 ? tail - slope : (1.0 - tail) + slope));
}

#endif
