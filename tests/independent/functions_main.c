/* The functions of docs/numerics.md that docextract itself does not need, and the ones it needs at every kind of input:
   prints digests over encodings and moderate numbers from one stream. Usage: functions COUNT. */
#include "arithmetic.h"
#include "sha256.h"
#include <stdlib.h>

typedef struct { double k, f; } Split;

static Split split(double x)
{
    uint64_t j = (bits64(x) - 0x3fe6a09e667f3bcdu + ((uint64_t)2048 << 52)) >> 52;
    return (Split){number64(j | 0x4330000000000000u) - 4503599627370496.0 - 2048.0,
                   number64(bits64(x) - ((j - 2048) << 52)) - 1.0};
}

static double join(double k, double f, double c)
{
    double s = f / (2.0 + f), z = s * s, v = z * z, h = (0.5 * f) * f;
    double q = z * ((0x1.5555555555558p-1 + 0x1.9999999995204p-2 * z)
             + v * ((0x1.2492492e09d4dp-2 + 0x1.c71c62c639fdep-3 * z)
             + v * ((0x1.7462bd8f7796ep-3 + 0x1.39fd392179a95p-3 * z) + v * 0x1.2b6688a387e03p-3)));
    return k * 0x1.62e42feep-1 - ((h - (s * (h + q) + (k * 0x1.a39ef35793c76p-33 + c))) - f);
}

static double log1p64(double x)
{
    if (x == 0.0 || x != x || x == INFINITY)
        return x;
    if (x <= -1.0)
        return x == -1.0 ? -INFINITY : NAN;
    double u = 1.0 + x, b = u - 1.0, low = (1.0 - (u - b)) + (x - b);
    Split s = split(u);
    return s.k == 0.0 ? join(0.0, x, 0.0) : join(s.k, s.f, low / u);
}

static double softplus64(double x)
{
    if (x != x)
        return x;
    double e = exp64(x > 0.0 ? -x : x), u = 1.0 + e, low = (1.0 - u) + e;
    Split s = split(u);
    return (x > 0.0 ? x : 0.0) + (s.k == 0.0 ? join(0.0, e, 0.0) : join(s.k, s.f, low / u));
}

static float sigmoid32(float x32)
{
    double x = x32, c = x > 104.0 ? 104.0 : x;
    c = c < -104.0 ? -104.0 : c;
    double t = c * -0x1.71547652b82fep+0, k = t + 6755399441055744.0, f = t - (k - 6755399441055744.0), g = f * f;
    double p = (0x1.0000000261531p+0 + 0x1.62e430c7e8192p-1 * f)
             + g * ((0x1.ebfbdadca918ep-3 + 0x1.c6aed4b8ef83ap-5 * f)
             + g * ((0x1.3b2dbbc2ac0c8p-7 + 0x1.5f456b05220bap-10 * f) + g * 0x1.41d334447d2b0p-13));
    return (float)(1.0 / (1.0 + number64(bits64(p) + (bits64(k) << 52))));
}

static double horner(const double *c, int n, double v)
{
    double q = c[0];
    for (int i = 1; i < n; i++)
        q = q * v + c[i];
    return q;
}

static float erf32(float x)
{
    static const double Q[] = {-0x1.192d2bf745f89p-63, -0x1.76d80a8d15e4ap-50, -0x1.fcfd1ab2485d0p-40,
                               -0x1.acf6fb695008fp-31, -0x1.3a9c2981d94fep-23, -0x1.ecde92b5cb4a3p-17,
                               -0x1.bfac4ef0c01d8p-11, -0x1.b8299c1771f75p-6, -0x1.8127439b8f9d7p-2};
    static const double P[] = {0x1.4fc4928c9deb7p-56, 0x1.04bbb959fcc5fp-44, 0x1.74d04984cadd6p-35,
                               0x1.91827cded3122p-27, 0x1.a64289540e7e9p-20, 0x1.f7426c38a30ccp-14,
                               0x1.56494a8a6577dp-8, 0x1.ce2ed1c9b720bp-4, 0x1.20dd74fef39bep+0};
    double c = x > 3.9375 ? 3.9375 : x;
    c = c < -3.9375 ? -3.9375 : c;
    double z = c * c, v = z * z;
    return (float)(c * (horner(Q, 9, v) * z + horner(P, 9, v)));
}

/* y, or the gradient for dy. */
static float gelu_erf_at(float x32, int backward, float dy)
{
    static const double p[] = {0x1.a1132015ba37ep-16, 0x1.a15179d80ae96p-13, 0x1.6c16858b7acb9p-10,
                               0x1.1110c632a3088p-7, 0x1.5555555c87148p-5, 0x1.55555567532adp-3, 0x1p-1};
    static const double num[] = {0x1.d4f1e28d51a5ap-11, 0x1.7f200386841f1p-7, 0x1.24fbf317f175bp-4,
                                 0x1.0120a583ca857p-2, 0x1.042b312d2cc0ep-1, 0x1.ffffffff54baep-2};
    static const double den[] = {0x1.25de324d0c3f8p-9, 0x1.e02c52862a4bep-6, 0x1.73cdcdb9320e3p-3,
                                 0x1.5137af2a2b1eap-1, 0x1.731f80bb91113p+0, 0x1.d06d5aab00d68p+0, 1.0};
    double x = x32, a = fabs(x) > 15.0 ? 15.0 : fabs(x), z = -0.5 * (a * a);
    double t = z * 0x1.71547652b82fep+0 + 0x1.8p52, r = z - (t - 0x1.8p52) * 0x1.62e42fefa39efp-1;
    double e = (1.0 + (r + (r * r) * horner(p, 7, r))) * number64((bits64(t) + 1023) << 52);
    double tail = e * (horner(num, 6, a) / horner(den, 7, a));
    if (backward) {
        double slope = (a * e) * 0x1.9884533d43651p-2;
        return (float)(dy * (x < 0.0 ? tail - slope : (1.0 - tail) + slope));
    }
    return (float)(x < 0.0 ? -(a * tail) : x - a * tail);
}

static float gelu_erf(float x) { return gelu_erf_at(x, 0, 0.0f); }
static float gelu_erf_slope(float x) { return gelu_erf_at(x, 1, 0.7f); }

static float rsqrt32(float x) { return 1.0f / sqrtf(x); }

/* Section 2: a fused multiply-add for a machine without one. */
static float fused(float x, float y, float z)
{
    double p = (double)x * (double)y, s = p + (double)z, e = (p - (s - (s - p))) + ((double)z - (s - p));
    if (e == e && e != 0.0 && (bits64(s) & 1) == 0)
        s = number64(bits64(s) + ((e > 0.0) == (s > 0.0) ? 1 : (uint64_t)-1));
    return (float)s;
}

/* Narrowing by the text: round half to even at the target's unit, by whole-number arithmetic on the encoding. */
static uint16_t narrow(float x, int fraction, int exponent_bits)
{
    uint32_t b = bits32(x), sign = b >> 31 << 15, magnitude = b & 0x7fffffff, infinity = (1u << exponent_bits) - 1;
    infinity <<= fraction;
    if (magnitude > 0x7f800000)
        return exponent_bits == 5 ? 0x7e00 : 0x7fc0;
    int e = (int)(magnitude >> 23), bias = (1 << (exponent_bits - 1)) - 1, drop = 23 - fraction;
    uint64_t m = e ? (magnitude & 0x7fffff) | 0x800000 : magnitude;
    int target = (e ? e : 1) - 127 + bias;      /* the target's exponent field, if it is normal */
    if (target < 1) {
        drop += 1 - target;
        target = 1;
    }
    uint64_t kept = drop > 40 ? 0 : m >> drop, rest = drop > 40 ? 0 : m & (((uint64_t)1 << drop) - 1);
    uint64_t half = drop > 40 ? 1 : (uint64_t)1 << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    uint64_t whole = kept + ((uint64_t)(target - 1) << fraction);
    return (uint16_t)(sign | (magnitude == 0x7f800000 || whole > infinity ? infinity : whole));
}

int main(int arguments, char **argument)
{
    static float (*const functions32[])(float) = {exp32, tanh32, sigmoid32, erf32, rsqrt32, gelu_erf,
                                                    gelu_erf_slope};
    static const char *const names32[] = {"exp32", "tanh32", "sigmoid32", "erf32", "rsqrt32", "gelu_erf",
                                            "gelu_erf_slope"};
    static double (*const functions64[])(double) = {exp64, log64, log1p64, softplus64};
    static const char *const names64[] = {"exp64", "log64", "log1p64", "softplus64"};
    long n = arguments == 2 ? atol(argument[1]) : 0, *order = calloc((size_t)n + 1, sizeof *order);
    float *x = calloc(2 * (size_t)n + 1, 4), *y = calloc(2 * (size_t)n + 1, 4);
    double *u = calloc(2 * (size_t)n + 1, 8), *v = calloc(2 * (size_t)n + 1, 8);
    for (long k = 0; k < n; k++) {  /* encodings, then numbers between -20 and 20 */
        uint64_t bits = value(9, (uint64_t)k);
        x[k] = number32((uint32_t)(bits >> 32));
        u[k] = number64(bits);
        x[n + k] = (float)(u[n + k] = -20.0 + 40.0 * ((double)(bits >> 11) * 0x1p-53));
    }
    for (int f = 0; f < 7; f++) {
        for (long k = 0; k < 2 * n; k++)
            y[k] = functions32[f](x[k]);
        print_digest(names32[f], "float32", y, 1, (long[]){2 * n});
    }
    for (int f = 0; f < 4; f++) {
        for (long k = 0; k < 2 * n; k++)
            v[k] = functions64[f](u[k]);
        print_digest(names64[f], "float64", v, 1, (long[]){2 * n});
    }
    for (long k = 0; k < n; k++)  /* two products of one lane; the tree then adds +0 */
        y[k] = fused(x[(k + 1) % n], x[(k + 7) % n], fused(x[k], x[(k + 3) % n], 0.0f)) + 0.0f;
    print_digest("fused", "float32", y, 1, (long[]){n});
    for (int half = 0; half < 2; half++) {
        int32_t *narrowed = calloc(2 * (size_t)n + 1, 4);
        for (long k = 0; k < 2 * n; k++)
            narrowed[k] = half ? narrow(x[k], 7, 8) : narrow(x[k], 10, 5);
        print_digest(half ? "bfloat16" : "float16", "int32", narrowed, 1, (long[]){2 * n});
        free(narrowed);
    }
    permutation(77, n, order);
    for (long k = 0; k < n; k++)
        y[k] = (float)order[k];
    print_digest("permutation", "float32", y, 1, (long[]){n});
    print_digest("dot16", "float32", &(float){dot16(x + n, 1, x + n + 5, 1, n - 5)}, 0, NULL);
    free(order), free(x), free(y), free(u), free(v);
    return 0;
}
