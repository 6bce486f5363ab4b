/* dx-numerics without Python: the sweep of dx_numerics/sweep.py over every path of this machine. */
#include "report.h"
#include "runtime_impl.h"
#include "table.h"

typedef float (*reduction)(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n);
static float f_dot(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n) { return t->dot16(a, b, n); }
static float f_dot_strided(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n)
{
    return t->dot16_strided(a, 3, b, 2, n);
}
static float f_sum(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n)
{
    (void)b;
    return t->sum16(a, n);
}
static float f_sum_strided(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n)
{
    (void)b;
    return t->sum16_strided(a, 3, n);
}
static float f_mean(const dx_numerics_table *t, const float *a, const float *b, ptrdiff_t n)
{
    (void)b;
    return t->sum16(a, n) / (float)n;
}

static void sums(int path, const char *item, reduction f)
{
    float *a[2] = {between(512, "a", -1, 1), encodings(512, "c")};
    float *b[2] = {between(512, "b", -1, 1), encodings(512, "d")}, out[142];
    for (int k = 0; k < 2; k++) {
        for (ptrdiff_t n = 0; n < 71; n++) out[71 * k + n] = f(dx_numerics_tables[path], a[k] + n, b[k] + n, n);
        free(a[k]);
        free(b[k]);
    }
    report(path, item, 'f', out, 142);
}

static void random_items(int path)
{
    const dx_numerics_table *t = dx_numerics_tables[path];
    static uint64_t u[1000];
    static float f[1000];
    static double d[1000];
    static int64_t p[1000];
    t->random_u64(1000, stream("random_u64"), 0, u);
    report(path, "random_u64", 'b', u, sizeof u);
    t->random_uniform24(1000, stream("random_uniform24"), 0, f);
    report(path, "random_uniform24", 'f', f, 1000);
    t->random_uniform53(1000, stream("random_uniform53"), 0, d);
    report(path, "random_uniform53", 'd', d, 1000);
    t->random_between(1000, stream("random_between"), 0, -0.3, 0.1, f);
    report(path, "random_between", 'f', f, 1000);
    t->random_normal(1000, stream("random_normal"), 0, 0.25, 0.02, f);
    report(path, "random_normal", 'f', f, 1000);
    dx_permutation(stream("permutation"), 1000, p);
    report(path, "permutation", 'b', p, sizeof p);
}

static void half_items(int path)
{
    const dx_numerics_table *t = dx_numerics_tables[path];
    static uint16_t h[65536];
    static float f[65536];
    for (int i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    t->widen_float16(65536, h, f);
    report(path, "widen_float16", 'f', f, 65536);
    t->widen_bfloat16(65536, h, f);
    report(path, "widen_bfloat16", 'f', f, 65536);
    float *e = encodings(2048, "e"), *g = between(2048, "f", -1, 1);
    for (int i = 0; i < 2048; i++) {
        f[i] = e[i] != e[i] ? dx_float_of_bits(0x7FC00000u) : e[i];
        f[2048 + i] = g[i] * 0x1p-14f;
    }
    t->narrow_float16(4096, f, h);
    report(path, "narrow_float16", 'b', h, 8192);
    t->narrow_bfloat16(4096, f, h);
    report(path, "narrow_bfloat16", 'b', h, 8192);
    free(e);
    free(g);
}

static void function_items(int path)
{
    const dx_numerics_table *t = dx_numerics_tables[path];
    static float x[8192], y[8192];
    static double x64[12288], y64[12288];
    float *g = encodings(4096, "g"), *h = between(4096, "h", -16, 16), *j = between(4096, "j", -16, 16);
    memcpy(x, g, 4 * 4096);
    memcpy(x + 4096, h, 4 * 4096);
    for (int i = 0; i < 4096; i++) {
        x64[i] = dx_double_of_bits(dx_random_at(stream("i"), (uint64_t)i));
        x64[4096 + i] = j[i];
        x64[8192 + i] = dx_uniform53(dx_random_at(stream("k"), (uint64_t)i));
    }
#define ITEM32(name) t->name(8192, x, y), report(path, #name, 'f', y, 8192)
#define ITEM64(name) t->name(12288, x64, y64), report(path, #name, 'd', y64, 12288)
    ITEM32(exp32), ITEM32(tanh32), ITEM32(erf32), ITEM32(sigmoid32), ITEM32(rsqrt32);
    ITEM64(exp64), ITEM64(log64), ITEM64(log1p64), ITEM64(softplus64);
    free(g);
    free(h);
    free(j);
}

int main(void)
{
    for (int path = 0; path < DX_PATH_COUNT; path++) {
        if (!dx_numerics_tables[path] || !dx_path_supported(path)) continue;
        if (dx_selfcheck(path)) return 1;
        random_items(path);
        sums(path, "dot16", f_dot);
        sums(path, "dot16_strided", f_dot_strided);
        sums(path, "sum16", f_sum);
        sums(path, "sum16_strided", f_sum_strided);
        sums(path, "mean16", f_mean);
        half_items(path);
        function_items(path);
    }
    return 0;
}
