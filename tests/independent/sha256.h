/* SHA-256 by FIPS 180-4, and the array digest of docs/numerics.md, section 19. */
#ifndef DX_INDEPENDENT_SHA256_H
#define DX_INDEPENDENT_SHA256_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct { uint32_t h[8]; unsigned char block[64]; uint64_t length; } Sha256;

static inline uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static inline void sha256_block(Sha256 *s)
{
    static const uint32_t K[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], a[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16
             | (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10) + w[i - 7]
             + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 16];
    memcpy(a, s->h, sizeof a);
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = a[7] + (turn(a[4], 6) ^ turn(a[4], 11) ^ turn(a[4], 25)) + ((a[4] & a[5]) ^ (~a[4] & a[6]))
                    + K[i] + w[i];
        uint32_t t2 = (turn(a[0], 2) ^ turn(a[0], 13) ^ turn(a[0], 22))
                    + ((a[0] & a[1]) ^ (a[0] & a[2]) ^ (a[1] & a[2]));
        memmove(a + 1, a, 7 * sizeof *a);
        a[4] += t1;
        a[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += a[i];
}

static inline void sha256_add(Sha256 *s, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) {
        s->block[s->length++ % 64] = p[i];
        if (s->length % 64 == 0)
            sha256_block(s);
    }
}

#define SHA256_START {{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, \
                       0x5be0cd19}, {0}, 0}

/* Prints "<name> <digest>" of what was added. */
static inline void sha256_print(Sha256 *s, const char *name)
{
    uint64_t length = 8 * s->length;
    unsigned char end[8];
    for (int b = 0; b < 8; b++)
        end[b] = (unsigned char)(length >> (56 - 8 * b));
    sha256_add(s, "\x80", 1);
    while (s->length % 64 != 56)
        sha256_add(s, "", 1);
    sha256_add(s, end, 8);
    printf("%s ", name);
    for (int i = 0; i < 8; i++)
        printf("%08x", (unsigned)s->h[i]);
    printf("\n");
}

/* Prints "<name> <digest>": of an array of the type (float32, float64 or int32) with the given shape. */
static inline void print_digest(const char *name, const char *type, const void *numbers, int axes, const long *shape)
{
    Sha256 s = SHA256_START;
    char header[100];
    int size = strstr(type, "64") ? 8 : 4, real = type[0] == 'f';
    int used = snprintf(header, sizeof header, "dx-array 1 %s", type);
    size_t count = 1;
    for (int i = 0; i < axes; i++) {
        used += snprintf(header + used, sizeof header - (size_t)used, " %ld", shape[i]);
        count *= (size_t)shape[i];
    }
    header[used++] = '\n';
    sha256_add(&s, header, (size_t)used);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *p = (const unsigned char *)numbers + i * (size_t)size;
        uint64_t x = 0;
        unsigned char out[8];
        if (size == 4) {
            float f;
            uint32_t b;
            memcpy(&f, p, 4);
            memcpy(&b, p, 4);
            x = f == f || !real ? b : 0x7FC00000u;
        } else {
            double f;
            memcpy(&f, p, 8);
            memcpy(&x, p, 8);
            x = f == f ? x : 0x7FF8000000000000u;
        }
        for (int b = 0; b < size; b++)
            out[b] = (unsigned char)(x >> 8 * b);
        sha256_add(&s, out, (size_t)size);
    }
    sha256_print(&s, name);
}
#endif
