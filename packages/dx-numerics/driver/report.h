/* Shared by the drivers, which run the C code without Python: SHA-256, canonical bytes, and the sweep's inputs. Every
 * driver prints lines "path item digest"; the digest is that of the item's canonical bytes (docs/numerics.md,
 * "Digests"), as dx_numerics/sweep.py takes it. Little-endian machines. */
#ifndef DX_REPORT_H
#define DX_REPORT_H

#include <dx_numerics/random.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { uint32_t state[8]; unsigned char block[64]; uint64_t length; } sha256;

static void sha256_block(uint32_t s[8], const unsigned char *p)
{
    /* the first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4) */
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], v[8];
#define ROTATE(x, n) ((x) >> (n) | (x) << (32 - (n)))
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (ROTATE(w[i - 15], 7) ^ ROTATE(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7]
             + (ROTATE(w[i - 2], 17) ^ ROTATE(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = v[7] + (ROTATE(v[4], 6) ^ ROTATE(v[4], 11) ^ ROTATE(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6]))
                    + k[i] + w[i];
        uint32_t t2 = (ROTATE(v[0], 2) ^ ROTATE(v[0], 13) ^ ROTATE(v[0], 22))
                    + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for (int j = 7; j > 0; j--) v[j] = v[j - 1];
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) s[i] += v[i];
#undef ROTATE
}

static void sha256_start(sha256 *h)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, first, sizeof first);
    h->length = 0;
}

static void sha256_add(sha256 *h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        h->block[h->length++ % 64] = p[i];
        if (h->length % 64 == 0) sha256_block(h->state, h->block);
    }
}

static void sha256_print(sha256 *h)
{
    uint64_t bits = h->length * 8;
    unsigned char end[8];
    for (int i = 0; i < 8; i++) end[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(h, "\x80", 1);
    while (h->length % 64 != 56) sha256_add(h, "", 1);
    sha256_add(h, end, 8);
    for (int i = 0; i < 8; i++) printf("%08x", h->state[i]);
}

static const char *const report_paths[DX_PATH_COUNT] = {"portable", "avx2", "avx512", "neon"};

/* Prints one line; kind: 'f' binary32, 'd' binary64 (one NaN pattern), 'b' bytes as they are. */
static void report(int path, const char *item, char kind, const void *data, size_t count)
{
    sha256 h;
    sha256_start(&h);
    for (size_t i = 0; i < count; i++) {
        if (kind == 'f') {
            uint32_t x = ((const uint32_t *)data)[i];
            if ((x & 0x7FFFFFFFu) > 0x7F800000u) x = 0x7FC00000u;
            sha256_add(&h, &x, 4);
        } else if (kind == 'd') {
            uint64_t x = ((const uint64_t *)data)[i];
            if ((x & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u) x = 0x7FF8000000000000u;
            sha256_add(&h, &x, 8);
        } else sha256_add(&h, (const char *)data + i, 1);
    }
    printf("%s %s ", report_paths[path], item);
    sha256_print(&h);
    printf("\n");
}

/* The sweep's inputs: the stream called name under seed 1. */
static uint64_t stream(const char *name) { return dx_substream(1, name, (ptrdiff_t)strlen(name)); }

static void *room(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p) abort();
    return p;
}

/* Uniform binary32 numbers in low..high; arbitrary encodings. */
static float *between(ptrdiff_t n, const char *name, double low, double high)
{
    float *out = room(sizeof(float) * (size_t)n);
    double width = high - low;
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = (float)(low + width * dx_uniform53(dx_random_at(stream(name), (uint64_t)i)));
    return out;
}
static inline float *encodings(ptrdiff_t n, const char *name)
{
    float *out = room(sizeof(float) * (size_t)n);
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)(dx_random_at(stream(name), (uint64_t)i) >> 32);
        memcpy(&out[i], &bits, 4);
    }
    return out;
}

#endif
