/* The cheap self-check: a few operations on every path whose results tell a wrong rounding mode, flushed subnormals,
 * contracted products and a dot that rounds twice. */
#include "runtime_impl.h"
#include "table.h"

#define UNIT 0x1p-23f
#define UNIT64 0x1p-52

static const struct { float a, b, c, want; int failure; } cases32[] = {
    {1.0f, 1.0f, UNIT / 2, 1.0f, DX_BAD_ROUNDING},           /* tie, to even: down */
    {1.0f, 1.0f, 1.5f * UNIT, 1.0f + 2 * UNIT, DX_BAD_ROUNDING}, /* tie, to even: up */
    {-1.0f, 1.0f, -UNIT / 4, -1.0f, DX_BAD_ROUNDING},
    {1.0f, 1.0f, 0.75f * UNIT, 1.0f + UNIT, DX_BAD_ROUNDING},
    {0x1p-126f, 0.5f, 0.0f, 0x1p-127f, DX_BAD_SUBNORMALS},   /* flushed results */
    {0x1p-149f, 0x1p24f, 0.0f, 0x1p-125f, DX_BAD_SUBNORMALS}, /* flushed operands */
    {1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -(1.0f + 0x1p-11f), 0.0f, DX_BAD_CONTRACTION},
};
static const struct { double a, b, c, want; int failure; } cases64[] = {
    {1.0, 1.0, UNIT64 / 2, 1.0, DX_BAD_ROUNDING},
    {1.0, 1.0, 1.5 * UNIT64, 1.0 + 2 * UNIT64, DX_BAD_ROUNDING},
    {-1.0, 1.0, -UNIT64 / 4, -1.0, DX_BAD_ROUNDING},
    {1.0, 1.0, 0.75 * UNIT64, 1.0 + UNIT64, DX_BAD_ROUNDING},
    {0x1p-1022, 0.5, 0.0, 0x1p-1023, DX_BAD_SUBNORMALS},
    {0x1p-1074, 0x1p53, 0.0, 0x1p-1021, DX_BAD_SUBNORMALS},
    {1.0 + 0x1p-27, 1.0 + 0x1p-27, -(1.0 + 0x1p-26), 0.0, DX_BAD_CONTRACTION},
};
enum { CASES = 7, N = 5 * CASES + 3 }; /* vectors of every width, and a tail */

int dx_selfcheck(int path)
{
    const dx_numerics_table *t = dx_numerics_tables[path];
    float a[N], b[N], c[N], out[N];
    double a64[N], b64[N], c64[N], out64[N];
    int failures = 0;
    uint64_t saved = dx_fp_enter();
    if (!dx_fp_is_ieee()) failures |= DX_BAD_MODE;
    for (int i = 0; i < N; i++) {
        a[i] = cases32[i % CASES].a, b[i] = cases32[i % CASES].b, c[i] = cases32[i % CASES].c;
        a64[i] = cases64[i % CASES].a, b64[i] = cases64[i % CASES].b, c64[i] = cases64[i % CASES].c;
    }
    t->canary(N, a, b, c, out);
    t->canary64(N, a64, b64, c64, out64);
    /* by bits: a comparison would itself flush */
    for (int i = 0; i < N; i++) {
        if (dx_bits_of_float(out[i]) != dx_bits_of_float(cases32[i % CASES].want)) failures |= cases32[i % CASES].failure;
        if (dx_bits_of_double(out64[i]) != dx_bits_of_double(cases64[i % CASES].want))
            failures |= cases64[i % CASES].failure;
    }
    for (int i = 0; i < N; i++) a[i] = b[i] = 0.0f;
    a[5] = -(1.0f + 0x1p-11f), b[5] = 1.0f, a[21] = b[21] = 1.0f + 0x1p-12f; /* one lane: 2^-24 with one rounding */
    if (t->dot16(a, b, N) != 0x1p-24f) failures |= DX_BAD_DOT;
    if (t->dot16(a, b, 22) != 0x1p-24f) failures |= DX_BAD_DOT; /* in the padded tail */
    dx_fp_leave(saved);
    return failures;
}
