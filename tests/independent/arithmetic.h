/* The arithmetic of docs/numerics.md, sections 2 to 5 and 19, written from that page alone.

   Shares nothing with the packages: it is the stranger's reading of the text. Needs binary32 and binary64 operations
   rounded one by one: compile with -ffp-contract=off. fmaf and sqrt of the C library are correctly rounded. */
#ifndef DX_INDEPENDENT_ARITHMETIC_H
#define DX_INDEPENDENT_ARITHMETIC_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits32(float x) { uint32_t i; memcpy(&i, &x, 4); return i; }
static inline float number32(uint32_t i) { float x; memcpy(&x, &i, 4); return x; }
static inline uint64_t bits64(double x) { uint64_t i; memcpy(&i, &x, 8); return i; }
static inline double number64(uint64_t i) { double x; memcpy(&x, &i, 8); return x; }

/* Section 2. Strides in elements; stride 0 with a pointer to 1 makes a plain sum. */
static inline float dot16(const float *a, ptrdiff_t step_a, const float *b, ptrdiff_t step_b, ptrdiff_t n)
{
    float lane[16] = {0};
    for (ptrdiff_t i = 0; i < (n + 15) / 16 * 16; i++) {
        float x = i < n ? a[i * step_a] : 0.0f, y = i < n ? b[i * step_b] : 0.0f;
        lane[i % 16] = fmaf(x, y, lane[i % 16]);
    }
    for (int w = 8; w; w /= 2)
        for (int l = 0; l < w; l++)
            lane[l] = lane[l] + lane[l + w];
    return lane[0];
}

static inline float sum16(const float *x, ptrdiff_t step, ptrdiff_t n)
{
    const float one = 1.0f;
    return dot16(x, step, &one, 0, n);
}

/* Section 3 */
static inline float exp32(float x)
{
    float t = x * 0x1.715476p+0f + 12582912.0f, n = t - 12582912.0f;
    float a = x - n * 0x1.63p-1f, w = n * -0x1.bd0106p-13f;
    float r = a - w, g = r * r, r_low = (a - r) - w;
    float q = (0x1.fffffcp-2f + 0x1.55548cp-3f * r)
            + g * ((0x1.555858p-5f + 0x1.123dep-7f * r) + g * 0x1.6ac74cp-10f);
    float s = 1.0f + r, e = (1.0f - s) + r, y = s + ((e + r_low) + g * q);
    float back = x < -64.0f ? 0x1p-64f : 1.0f;
    float z = number32(bits32(y) + (bits32(t) << 23) + (0x3f800000u - bits32(back))) * back;
    z = x < -104.0f ? 0.0f : z;
    return x <= 0x1.62e42ep+6f ? z : x + INFINITY;
}

static inline float tanh32(float x32)
{
    double x = x32, c = x > 10.0 ? 10.0 : x;
    c = c < -10.0 ? -10.0 : c;
    double t = c * 0x1.71547652b82fep+1, k = t + 6755399441055744.0, f = t - (k - 6755399441055744.0), g = f * f;
    uint64_t shift = bits64(k) << 52;
    double p = f * ((0x1.62e42fefd32c3p-1 + 0x1.ebfbe045304bdp-3 * f)
             + g * ((0x1.c6b08cb1670e1p-5 + 0x1.3b2a1c3613eb0p-7 * f)
             + g * ((0x1.5d88bdb26496dp-10 + 0x1.443f6252ee25ap-13 * f) + g * 0x1.ffcbdc7b47117p-17)));
    double s = number64(shift + 0x3ff0000000000000u), u = s * p;
    float y = (float)((u + (s - 1.0)) / (u + (s + 1.0)));
    return number32(bits32(y) | (bits32(x32) & 0x80000000u));
}

/* Section 4 */
static inline double exp64(double x)
{
    double t = x * 0x1.71547652b82fep+0 + 6755399441055744.0, n = t - 6755399441055744.0;
    double a = x - n * 0x1.62e42feep-1, w = n * 0x1.a39ef35793c76p-33, r = a - w;
    double g = r * r, h = g * g, r_low = (a - r) - w;
    double q0 = (0x1.0p-1 + 0x1.5555555555557p-3 * r) + g * (0x1.5555555555556p-5 + 0x1.11111111100d8p-7 * r);
    double q1 = (0x1.6c16c16c162d2p-10 + 0x1.a01a01abe9ce8p-13 * r)
              + g * (0x1.a01a01a6d9931p-16 + 0x1.71de022bd5558p-19 * r);
    double q2 = (0x1.27e4db6121bf2p-22 + 0x1.af4df5750ec00p-26 * r) + g * 0x1.1f730a202e3a1p-29;
    double q = q0 + h * (q1 + h * q2);
    double s = 1.0 + r, e = (1.0 - s) + r, y = s + ((e + r_low) + g * q);
    double back = x < -512.0 ? 0x1p-512 : 1.0;
    double z = number64(bits64(y) + (bits64(t) << 52) + (0x3ff0000000000000u - bits64(back))) * back;
    z = x < -746.0 ? 0.0 : z;
    return x <= 0x1.62e42fefa39efp+9 ? z : x + INFINITY;
}

static inline double log64(double x)
{
    double lower = 0.0;
    if (x == 0.0)
        return -INFINITY;
    if (x < 0.0)
        return NAN;
    if (!(x < INFINITY))
        return x;
    if (x < 0x1p-1022)
        x = x * 0x1p54, lower = 54.0;
    uint64_t j = (bits64(x) - 0x3fe6a09e667f3bcdu + ((uint64_t)2048 << 52)) >> 52;
    double k = number64(j | 0x4330000000000000u) - 4503599627372544.0 - lower;
    double f = number64(bits64(x) - ((j - 2048) << 52)) - 1.0;
    double s = f / (2.0 + f), z = s * s, v = z * z, h = (0.5 * f) * f;
    double q = z * ((0x1.5555555555558p-1 + 0x1.9999999995204p-2 * z)
             + v * ((0x1.2492492e09d4dp-2 + 0x1.c71c62c639fdep-3 * z)
             + v * ((0x1.7462bd8f7796ep-3 + 0x1.39fd392179a95p-3 * z) + v * 0x1.2b6688a387e03p-3)));
    return k * 0x1.62e42feep-1 - ((h - (s * (h + q) + (k * 0x1.a39ef35793c76p-33 + 0.0))) - f);
}

/* Section 5 */
#define GOLDEN 0x9E3779B97F4A7C15u

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline uint64_t value(uint64_t seed, uint64_t k) { return mix(seed + (k + 1) * GOLDEN); }

static inline uint64_t stream(uint64_t seed, const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return value(value(seed, 0) ^ h, 0);
}

static inline uint64_t draw(uint64_t *state)
{
    *state += GOLDEN;
    return mix(*state);
}

static inline double uniform(uint64_t *state) { return (double)(draw(state) >> 11) * 0x1p-53; }

static inline uint64_t bounded(uint64_t *state, uint64_t n)
{
    uint64_t v, least = (0 - n) % n;  /* 2^64 mod n */
    do
        v = draw(state);
    while (v < least);
    return v % n;
}

static inline void permutation(uint64_t seed, long n, long *p)
{
    for (long i = 0; i < n; i++)
        p[i] = i;
    for (long i = n - 1; i >= 1; i--) {
        long j = (long)bounded(&seed, (uint64_t)i + 1), other = p[j];
        p[j] = p[i];
        p[i] = other;
    }
}

static inline float normal32(uint64_t seed, uint64_t k, double deviation)
{
    uint64_t state = value(seed, k);
    double u, v, s;
    do {
        u = 2.0 * uniform(&state) - 1.0;
        v = 2.0 * uniform(&state) - 1.0;
        s = u * u + v * v;
    } while (!(0.0 < s && s < 1.0));
    return (float)(0.0 + deviation * (u * sqrt((-2.0 * log64(s)) / s)));
}
#endif
