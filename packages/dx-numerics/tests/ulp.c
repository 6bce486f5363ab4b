/* Measures the functions of dx_numerics/math32.h over binary32 encodings, and those of math64.h over samples, against
 * the C library's binary64 or long double functions.
 *
 *     ulp NAME stride|samples limit
 *
 * Binary32: every stride-th of the 2^32 encodings (1: all). Binary64: that many samples, fixed by their number.
 * Prints the first result that is wrong in kind (NaN, infinity, sign of zero) or off by limit ulp or more, if any, and
 * ends with 1; then "NAME worst W at X wrong N of M": see the headers. Two threads, chunks of 2^20 inputs. */
#include <dx_numerics/math32.h>
#include <dx_numerics/math64.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CHUNK (1u << 20)
#define BLOCK 1024

typedef struct { double worst, at; uint64_t order, wrong, count; char failure[512]; } result;

static const char *name;
static uint64_t step; /* stride, or number of samples */
static double limit;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_chunk, chunks;
static result total;

/* ---- binary32 ---- */

#define FUNCTIONS32(F) F(exp32) F(tanh32) F(erf32) F(sigmoid32) F(rsqrt32)
#define DEFINE32(f) \
    static void run_##f(const float *x, float *y) { for (int i = 0; i < BLOCK; i++) y[i] = dx_##f(x[i]); }
FUNCTIONS32(DEFINE32)

static double double_exp32(double x) { return exp(x); }
static double double_tanh32(double x) { return tanh(x); }
static double double_erf32(double x) { return erf(x); }
/* Near 0 it is 1/2 + x/4 - x^3/48: the cubic term decides ties but does not show in binary64. */
static double double_sigmoid32(double x)
{
    return fabs(x) < 0x1p-12 && x != 0 ? nextafter(0.5 + 0.25 * x, 0.5) : 1.0 / (1.0 + exp(-x));
}
static double double_rsqrt32(double x) { return 1.0 / sqrt(x); }
static long double long_exp32(long double x) { return expl(x); }
static long double long_tanh32(long double x) { return tanhl(x); }
static long double long_erf32(long double x) { return erfl(x); }
static long double long_sigmoid32(long double x)
{
    return fabsl(x) < 0x1p-12L ? (long double)double_sigmoid32((double)x) : 1.0L / (1.0L + expl(-x));
}
static long double long_rsqrt32(long double x) { return 1.0L / sqrtl(x); }

typedef struct {
    const char *name;
    void (*run)(const float *x, float *y);
    double (*exact)(double x);
    long double (*exacter)(long double x);
} function32;
#define ENTRY32(f) {#f, run_##f, double_##f, long_##f},
static const function32 functions32[] = {FUNCTIONS32(ENTRY32) {0}};
static const function32 *f32;

static double ulp_of(double exact, int bits, int smallest)
{
    int e;
    frexp(exact, &e);
    return ldexp(1.0, e - bits < smallest ? smallest : e - bits);
}

/* The correctly rounded result; the C library's error is well below 2^-50. */
static float rounded32(double exact, float x)
{
    float low = (float)(exact * (1.0 - 0x1p-50)), high = (float)(exact * (1.0 + 0x1p-50));
    return low == high ? (float)exact : (float)f32->exacter((long double)x);
}

static void look32(result *r, uint64_t order, float x, float y)
{
    double exact = f32->exact((double)x);
    float want = isnan(exact) ? NAN : rounded32(exact, x);
    r->count++;
    if (isnan(want) && isnan(y)) return;
    r->wrong += dx_bits_of_float(want) != dx_bits_of_float(y);
    int kind = isnan(want) != isnan(y) || isinf(want) != isinf(y) || signbit(want) != signbit(y);
    double error = kind ? INFINITY : isinf(want) ? 0.0 : fabs((double)y - exact) / ulp_of(exact, 24, -149);
    if (error >= limit && !r->failure[0])
        snprintf(r->failure, sizeof r->failure, "%s(0x%08x %a %.9g) = 0x%08x %a %.9g, correctly rounded 0x%08x %a %.9g",
                 name, dx_bits_of_float(x), x, x, dx_bits_of_float(y), y, y, dx_bits_of_float(want), want, want);
    if (error > r->worst) { r->worst = error; r->at = x; r->order = order; }
}

static void chunk32(result *r, uint64_t chunk)
{
    float x[BLOCK], y[BLOCK];
    for (uint64_t block = 0; block < CHUNK / BLOCK; block++) {
        uint64_t first = chunk * CHUNK + block * BLOCK;
        for (int i = 0; i < BLOCK; i++) x[i] = dx_float_of_bits((uint32_t)((first + i) * step));
        f32->run(x, y);
        for (int i = 0; i < BLOCK && (first + i) * step < 1ull << 32; i++) look32(r, first + i, x[i], y[i]);
    }
}

/* ---- binary64 ---- */

#define FUNCTIONS64(F) F(exp64) F(log64) F(log1p64) F(softplus64)
#define DEFINE64(f) \
    static void run_##f(const double *x, double *y) { for (int i = 0; i < BLOCK; i++) y[i] = dx_##f(x[i]); }
FUNCTIONS64(DEFINE64)

static long double long_exp64(long double x) { return expl(x); }
static long double long_log64(long double x) { return logl(x); }
static long double long_log1p64(long double x) { return log1pl(x); }
static long double long_softplus64(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }

static uint64_t random64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static double uniform(uint64_t *s, double a, double b) { return a + (b - a) * (double)(random64(s) >> 11) * 0x1p-53; }
/* A number with a uniform exponent from low to high - 1, either sign. */
static double spread(uint64_t *s, int low, int high)
{
    double m = uniform(s, 1, 2);
    m = ldexp(m, low + (int)(random64(s) % (uint64_t)(high - low)));
    return random64(s) & 1 ? -m : m;
}
static int below(uint64_t *s, int n) { return (int)(random64(s) % (uint64_t)n); }
/* Near (or on) the number c, which must not draw from s itself (C does not say in which order). */
static double near(uint64_t *s, double c) { return c * (1.0 + spread(s, -54, -8)); }

static double sample_exp64(uint64_t *s, int kind)
{
    double edge = (below(s, 2048) - 1023.5) * 0.6931471805599453;
    return kind == 0 ? uniform(s, -745.2, 709.8) : kind == 1 ? spread(s, -60, 9) : kind == 2 ? uniform(s, -1, 1)
           : near(s, edge);
}
static double sample_log64(uint64_t *s, int kind)
{
    double edge = ldexp(1.4142135623730951, below(s, 20) - 10);
    return kind == 0 ? dx_double_of_bits(random64(s) % 0x7ff0000000000000u) : kind == 1 ? near(s, 1.0)
           : kind == 2 ? uniform(s, 0.5, 2.0) : near(s, edge);
}
static double sample_log1p64(uint64_t *s, int kind)
{
    double edge = below(s, 2) ? 0.41421356237309503 : -0.2928932188134525;
    double x = kind == 0 ? spread(s, -1022, 1023) : kind == 1 ? uniform(s, -1.0, 1.5) : kind == 2 ? spread(s, -56, 2)
               : near(s, edge);
    return x > -1.0 ? x : -1.0 / (x + x); /* -1 or less: some number in (-1/2, 0) */
}
static double sample_softplus64(uint64_t *s, int kind)
{
    return kind == 0 ? uniform(s, -745, 745) : kind == 1 ? uniform(s, -40, 40) : kind == 2 ? uniform(s, -2, 2)
           : spread(s, -60, 8);
}

typedef struct {
    const char *name;
    void (*run)(const double *x, double *y);
    long double (*exact)(long double x);
    double (*sample)(uint64_t *state, int kind);
} function64;
#define ENTRY64(f) {#f, run_##f, long_##f, sample_##f},
static const function64 functions64[] = {FUNCTIONS64(ENTRY64) {0}};
static const function64 *f64;

static void look64(result *r, uint64_t order, double x, double y)
{
    long double exact = f64->exact((long double)x);
    double want = (double)exact;
    r->count++;
    r->wrong += dx_bits_of_double(want) != dx_bits_of_double(y);
    int kind = isnan(want) != isnan(y) || isinf(want) != isinf(y) || signbit(want) != signbit(y);
    double error = kind ? INFINITY : isinf(want) ? 0.0 : (double)(fabsl(y - exact) / ulp_of(want, 53, -1074));
    if (error >= limit && !r->failure[0])
        snprintf(r->failure, sizeof r->failure, "%s(0x%016llx %a %.17g) = 0x%016llx %a %.17g, correctly rounded %a", name,
                 (unsigned long long)dx_bits_of_double(x), x, x, (unsigned long long)dx_bits_of_double(y), y, y, want);
    if (error > r->worst) { r->worst = error; r->at = x; r->order = order; }
}

static void chunk64(result *r, uint64_t chunk)
{
    double x[BLOCK], y[BLOCK];
    uint64_t state = chunk;
    for (uint64_t block = 0; block < CHUNK / BLOCK; block++) {
        uint64_t first = chunk * CHUNK + block * BLOCK;
        for (int i = 0; i < BLOCK; i++) x[i] = f64->sample(&state, i & 3);
        f64->run(x, y);
        for (int i = 0; i < BLOCK && first + i < step; i++) look64(r, first + i, x[i], y[i]);
    }
}

/* ---- both ---- */

static void *work(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        uint64_t chunk = next_chunk++;
        pthread_mutex_unlock(&lock);
        if (chunk >= chunks) return unused;
        result r = {0};
        if (f32) chunk32(&r, chunk); else chunk64(&r, chunk);
        pthread_mutex_lock(&lock);
        if (r.worst > total.worst || (r.worst == total.worst && r.order < total.order)) {
            total.worst = r.worst; total.at = r.at; total.order = r.order;
        }
        total.wrong += r.wrong;
        total.count += r.count;
        if (r.failure[0] && !total.failure[0]) memcpy(total.failure, r.failure, sizeof r.failure);
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: ulp NAME stride|samples limit\n"), 2;
    name = argv[1];
    step = strtoull(argv[2], 0, 10);
    limit = atof(argv[3]);
    for (const function32 *f = functions32; f->name; f++) if (!strcmp(f->name, name)) f32 = f;
    for (const function64 *f = functions64; f->name; f++) if (!strcmp(f->name, name)) f64 = f;
    if ((!f32 && !f64) || step < 1) return fprintf(stderr, "no function %s, or no inputs\n", name), 2;
    uint64_t inputs = f32 ? ((1ull << 32) + step - 1) / step : step;
    chunks = (inputs + CHUNK - 1) / CHUNK;
    pthread_t other;
    int threads = pthread_create(&other, 0, work, 0) == 0;
    work(0);
    if (threads) pthread_join(other, 0);
    if (total.failure[0]) printf("%s\n", total.failure);
    printf("%s worst %.5f at %a wrong %llu of %llu\n", name, total.worst, total.at, (unsigned long long)total.wrong,
           (unsigned long long)total.count);
    return total.failure[0] != 0;
}
