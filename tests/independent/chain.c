/* The forward and backward pass over a chain of the page model: docs/numerics.md section 18. */
#include "chain.h"
#include "arithmetic.h"
#include <stdlib.h>


double *doubles(long count) { return calloc((size_t)count + 1, sizeof(double)); }

double power_of_two(long e) { return e < -1022 ? 0.0 : e > 1023 ? 0x1p1023 : number64((uint64_t)(e + 1023) << 52); }

static int exponent(double v) { return (int)(bits64(v) >> 52 & 0x7ff) - 1023; }

double sum4(const double *v, long fields)
{
    double lane[4] = {0};
    for (long k = 0; k < fields; k++)
        lane[k % 4] = lane[k % 4] + v[k];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

void sources(Chain *c, const double *x, const int *e)
{
    for (long m = 0; m < c->masks; m++) {
        c->base[m] = e[m];
        for (int q = 0; q < c->bits; q++)
            if (m >> q & 1 && e[m ^ 1L << q] > c->base[m])
                c->base[m] = e[m ^ 1L << q];
        c->base_scale[m] = power_of_two((long)e[m] - c->base[m]);
        c->own[m] = x[m] * c->base_scale[m];
        for (long k = 0; k < c->fields; k++) {
            double *source = c->source + m * c->fields + k;
            int q = c->bit_of[k];
            if (q < 0)
                *source = c->own[m];
            else
                *source = m >> q & 1 ? x[m ^ 1L << q] * power_of_two((long)e[m ^ 1L << q] - c->base[m]) : 0.0;
        }
    }
}

static void rescale(const Chain *c, double *total, double *rows, int *e, int *common)
{
    int top = 0, any = 0;
    for (long m = 0; m < c->masks; m++)
        if (total[m] != 0.0 && (!any++ || c->base[m] + exponent(total[m]) > top))
            top = c->base[m] + exponent(total[m]);
    if (any && abs(top - *common) > 64)
        *common = top;
    for (long m = 0; m < c->masks; m++) {
        int base = c->base[m], v = exponent(total[m]);
        if (total[m] == 0.0 || base + v >= *common - 256)
            e[m] = *common;
        else
            e[m] = abs(v) <= 64 ? base : base + v;
        if (total[m] == 0.0 || e[m] == base)
            continue;
        total[m] = total[m] * power_of_two((long)base - e[m]);
        for (long k = 0; k < c->fields; k++)
            rows[m * c->fields + k] = rows[m * c->fields + k] * power_of_two((long)base - e[m]);
    }
}

static void run_chain(Chain *c)
{
    long n = c->n, M = c->masks, K = c->fields;
    int common = 0;
    double *begin = doubles(K);
    c->F[0] = 1.0;
    for (long t = 0; t < n; t++) {
        sources(c, c->F + t * M, c->eF + t * M);
        for (long m = 0; m < M; m++) {
            double *next = c->A + ((t + 1) * M + m) * K, *before = c->A + (t * M + m) * K;
            for (long k = 0; k < K; k++)
                next[k] = c->b[t * K + k] * c->source[m * K + k] + c->i[t * K + k] * (before[k] * c->base_scale[m]);
            c->F[(t + 1) * M + m] = c->o[t] * c->own[m] + sum4(next, K);
        }
        rescale(c, c->F + (t + 1) * M, c->A + (t + 1) * M * K, c->eF + (t + 1) * M, &common);
    }
    c->eZ = c->eF[n * M];
    for (long m = 0; m < M; m++)
        c->eZ = c->eF[n * M + m] > c->eZ ? c->eF[n * M + m] : c->eZ;
    c->Z = 0.0;
    for (long m = 0; m < M; m++)
        c->Z = c->Z + c->F[n * M + m] * power_of_two((long)c->eF[n * M + m] - c->eZ);
    common = 0;
    for (long m = 0; m < M; m++)
        c->G[n * M + m] = 1.0;
    for (long t = n - 1; t >= 0; t--) {
        sources(c, c->G + (t + 1) * M, c->eG + (t + 1) * M);
        for (long m = 0; m < M; m++) {
            for (long k = 0; k < K; k++) {
                double rest = c->source[m * K + k] + c->D[((t + 1) * M + m) * K + k] * c->base_scale[m];
                begin[k] = c->b[t * K + k] * rest;
                c->D[(t * M + m) * K + k] = c->i[t * K + k] * rest;
            }
            c->G[t * M + m] = c->o[t] * c->own[m] + sum4(begin, K);
            long left = t * M + M - 1 - m;
            double before = c->F[left] * power_of_two((long)c->eF[left] + c->base[m] - c->eZ);
            for (long k = 0; k < K; k++)
                c->start[t * K + k] = c->start[t * K + k] + before * begin[k];
        }
        for (long k = 0; k < K; k++)
            c->start[t * K + k] = c->start[t * K + k] / c->Z;
        rescale(c, c->G + t * M, c->D + t * M * K, c->eG + t * M, &common);
    }
    free(begin);
}

double log_mass(double v, long e) { return log64(v) + (double)e * 0x1.62e42fefa39efp-1; }

int without(const Chain *c, long m, long k) { return c->bit_of[k] < 0 || !(m >> c->bit_of[k] & 1); }

/* All bits but those of m and of field k. */
long other(const Chain *c, long m, long k)
{
    return c->masks - 1 - m - (c->bit_of[k] < 0 ? 0 : 1L << c->bit_of[k]);
}

double run_mass(const Chain *c, long k, long first, long last, int *ew)
{
    long M = c->masks, any = 0;
    const double *F = c->F + first * M, *G = c->G + (last + 1) * M;
    const int *eF = c->eF + first * M, *eG = c->eG + (last + 1) * M;
    double mass = 0.0;
    for (long m = 0; m < M; m++)
        if (without(c, m, k) && (!any++ || eF[m] + eG[other(c, m, k)] > *ew))
            *ew = eF[m] + eG[other(c, m, k)];
    for (long m = 0; m < M; m++)
        if (without(c, m, k))
            mass = mass + (F[m] * G[other(c, m, k)]) * power_of_two((long)eF[m] + eG[other(c, m, k)] - *ew);
    return mass;
}

double run_level(const Chain *c, long k, long first, long last)
{
    long tags = 1 + 2 * c->fields;
    double level = c->l[first * tags + 1 + 2 * k];
    for (long t = first + 1; t <= last; t++)
        level = level + c->l[t * tags + 2 + 2 * k];
    return level;
}

double absent_mass(const Chain *c, long k, int *ea)
{
    long end = c->n * c->masks, any = 0;
    double mass = 0.0;
    for (long m = 0; m < c->masks; m++)
        if (without(c, m, k) && (!any++ || c->eF[end + m] > *ea))
            *ea = c->eF[end + m];
    for (long m = 0; m < c->masks; m++)
        if (without(c, m, k))
            mass = mass + c->F[end + m] * power_of_two((long)c->eF[end + m] - *ea);
    return mass;
}

Chain page_model(const float *logits, long n, long K)
{
    long tags = 1 + 2 * K;
    Chain c = {.n = n, .fields = K, .l = doubles(n * tags), .o = doubles(n), .b = doubles(n * K), .i = doubles(n * K)};
    for (long t = 0; t < n; t++) {
        double top = logits[t * tags], *l = c.l + t * tags;
        for (long k = 0; k < tags; k++)
            top = logits[t * tags + k] > top ? logits[t * tags + k] : top;
        for (long k = 0; k < tags; k++) {
            double x = (double)logits[t * tags + k] - top;
            l[k] = x > -300.0 ? x : -300.0;
        }
        c.o[t] = exp64(l[0]);
        for (long k = 0; k < K; k++) {
            c.b[t * K + k] = exp64(l[1 + 2 * k]);
            c.i[t * K + k] = exp64(l[2 + 2 * k]);
        }
    }
    return c;
}

void end_model(Chain *c) { free(c->l), free(c->o), free(c->b), free(c->i); }

int is_joint(const int32_t *repeated, long K)
{
    long S = 0;
    for (long k = 0; k < K; k++)
        S += !repeated[k];
    return S <= 8 && (S == 0 || (K + 1) << S <= 4096);
}

void begin_chain(Chain *c)
{
    long n = c->n, M = c->masks = 1L << c->bits, K = c->fields;
    for (long k = 0; k < K; k++)
        c->bit_of[k] = -1;
    for (int q = 0; q < c->bits; q++)
        c->bit_of[c->field_of[q]] = q;
    c->F = doubles((n + 1) * M), c->G = doubles((n + 1) * M), c->start = doubles(n * K);
    c->A = doubles((n + 1) * M * K), c->D = doubles((n + 1) * M * K);
    c->eF = calloc((size_t)((n + 1) * M), sizeof(int)), c->eG = calloc((size_t)((n + 1) * M), sizeof(int));
    c->base = calloc((size_t)M, sizeof(int));
    c->base_scale = doubles(M), c->own = doubles(M), c->source = doubles(M * K);
    run_chain(c);
}

void end_chain(Chain *c)
{
    free(c->F), free(c->G), free(c->A), free(c->D), free(c->eF), free(c->eG), free(c->base), free(c->base_scale);
    free(c->own), free(c->source), free(c->start);
}
