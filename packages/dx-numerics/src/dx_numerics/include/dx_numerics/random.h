/* SplitMix64 (Steele, Lea, Flood 2014): a counter pushed through a bijection of 64-bit numbers.
 *
 *     value k of stream seed = mix(seed + (k + 1) * G)   mod 2^64,  k = 0, 1, 2, ...
 *
 * so every value is at hand without walking, and a stream is its 64-bit seed. What dx makes of the values (uniform
 * numbers, bounded integers, permutations, normal numbers, streams by name) is written here once and in
 * docs/numerics.md, "Random numbers". */
#ifndef DX_NUMERICS_RANDOM_H
#define DX_NUMERICS_RANDOM_H

#include "math64.h"

#define DX_RANDOM_STEP 0x9E3779B97F4A7C15u

DX_INLINE uint64_t dx_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

DX_INLINE uint64_t dx_random_at(uint64_t seed, uint64_t k) { return dx_mix64(seed + (k + 1) * DX_RANDOM_STEP); }

/* The next value of a walk; state starts as the seed. */
DX_INLINE uint64_t dx_random_next(uint64_t *state) { return dx_mix64(*state += DX_RANDOM_STEP); }

/* Multiples of 2^-24 and 2^-53 in [0, 1), exact. */
DX_INLINE float dx_uniform24(uint64_t x) { return (float)(uint32_t)(x >> 40) * 0x1p-24f; }
DX_INLINE double dx_uniform53(uint64_t x) { return (double)(int64_t)(x >> 11) * 0x1p-53; }

/* A whole number in 0..n-1, n >= 1, without bias: values below 2^64 mod n are drawn again. */
DX_INLINE uint64_t dx_random_below(uint64_t *state, uint64_t n)
{
    uint64_t least = (0 - n) % n, x;
    do x = dx_random_next(state);
    while (x < least);
    return x % n;
}

/* Fisher-Yates, descending, of 0..n-1. */
DX_INLINE void dx_permutation(uint64_t seed, ptrdiff_t n, int64_t *out)
{
    uint64_t state = seed;
    for (ptrdiff_t i = 0; i < n; i++) out[i] = i;
    for (ptrdiff_t i = n - 1; i > 0; i--) {
        ptrdiff_t j = (ptrdiff_t)dx_random_below(&state, (uint64_t)i + 1);
        int64_t kept = out[i];
        out[i] = out[j];
        out[j] = kept;
    }
}

/* A standard normal number for one key: Marsaglia's polar method on the walk that starts at the key. The second
 * number of the accepted pair is not used, so number k of a stream (its key is value k) is at hand without walking. */
DX_INLINE double dx_normal(uint64_t key)
{
    for (;;) {
        double u = 2.0 * dx_uniform53(dx_random_next(&key)) - 1.0;
        double v = 2.0 * dx_uniform53(dx_random_next(&key)) - 1.0;
        double s = u * u + v * v;
        if (s < 1.0 && s > 0.0) return u * __builtin_sqrt(-2.0 * dx_log64(s) / s);
    }
}

/* The stream called name (UTF-8 bytes) under seed: FNV-1a of the bytes, mixed with the seed. */
DX_INLINE uint64_t dx_substream(uint64_t seed, const char *name, ptrdiff_t length)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (ptrdiff_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * 0x100000001B3u;
    return dx_random_at(dx_random_at(seed, 0) ^ h, 0);
}

#endif
