/* The run loss: docs/backward-numerics.md section 10 over the page model of docs/numerics.md section 18. */
#include "model.h"
#include "arithmetic.h"
#include <stdlib.h>

/* The exclusive fields of a chain are bits of a mask; tables are [boundary][mask] and [boundary][mask][field]. */
typedef struct {
    long n, fields, masks;
    int bits, field_of[16], bit_of[64];                 /* bit -1: the field is not exclusive */
    const double *l, *o, *b, *i;
    double *F, *A, *G, *D, Z;
    int *eF, *eG, eZ;
    double *base_scale, *own, *source;                  /* of one boundary: [mask], [mask], [mask][field] */
    int *base;
} Chain;

static double *doubles(long count) { return calloc((size_t)count + 1, sizeof(double)); }

static double power(long e) { return e < -1022 ? 0.0 : e > 1023 ? 0x1p1023 : number64((uint64_t)(e + 1023) << 52); }

static int exponent(double v) { return (int)(bits64(v) >> 52 & 0x7ff) - 1023; }

static double sum4(const double *v, long fields)
{
    double lane[4] = {0};
    for (long k = 0; k < fields; k++)
        lane[k % 4] = lane[k % 4] + v[k];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

static void sources(Chain *c, const double *x, const int *e)
{
    for (long m = 0; m < c->masks; m++) {
        c->base[m] = e[m];
        for (int q = 0; q < c->bits; q++)
            if (m >> q & 1 && e[m ^ 1L << q] > c->base[m])
                c->base[m] = e[m ^ 1L << q];
        c->base_scale[m] = power((long)e[m] - c->base[m]);
        c->own[m] = x[m] * c->base_scale[m];
        for (long k = 0; k < c->fields; k++) {
            double *source = c->source + m * c->fields + k;
            int q = c->bit_of[k];
            if (q < 0)
                *source = c->own[m];
            else
                *source = m >> q & 1 ? x[m ^ 1L << q] * power((long)e[m ^ 1L << q] - c->base[m]) : 0.0;
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
        total[m] = total[m] * power((long)base - e[m]);
        for (long k = 0; k < c->fields; k++)
            rows[m * c->fields + k] = rows[m * c->fields + k] * power((long)base - e[m]);
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
        }
        rescale(c, c->G + t * M, c->D + t * M * K, c->eG + t * M, &common);
    }
    c->eZ = c->eF[n * M];
    for (long m = 0; m < M; m++)
        c->eZ = c->eF[n * M + m] > c->eZ ? c->eF[n * M + m] : c->eZ;
    c->Z = 0.0;
    for (long m = 0; m < M; m++)
        c->Z = c->Z + c->F[n * M + m] * power((long)c->eF[n * M + m] - c->eZ);
    free(begin);
}

static double log_mass(double v, long e) { return log64(v) + (double)e * 0x1.62e42fefa39efp-1; }

static int without(const Chain *c, long m, long k) { return c->bit_of[k] < 0 || !(m >> c->bit_of[k] & 1); }

/* m' of the text: all masks' bits but those of m and of field k. */
static long other(const Chain *c, long m, long k)
{
    return c->masks - 1 - m - (c->bit_of[k] < 0 ? 0 : 1L << c->bit_of[k]);
}

/* One term; returns its loss and subtracts its part of the shares. */
static double term(Chain *c, long k, const int32_t *places, long count, double *SF, double *SG, double *dB, double *dI)
{
    long n = c->n, M = c->masks, K = c->fields, last_row = n * M;
    if (count == 0) {
        int ea = 0, any = 0;
        double mass = 0.0;
        for (long m = 0; m < M; m++)
            if (without(c, m, k) && (!any++ || c->eF[last_row + m] > ea))
                ea = c->eF[last_row + m];
        for (long m = 0; m < M; m++)
            if (without(c, m, k))
                mass = mass + c->F[last_row + m] * power((long)c->eF[last_row + m] - ea);
        for (long m = 0; m < M; m++)
            if (without(c, m, k))
                SF[last_row + m] -= c->F[last_row + m] * power((long)c->eF[last_row + m] - ea) / mass;
        double loss = log_mass(c->Z, c->eZ) - log_mass(mass, ea);
        return loss > 0.0 ? loss : 0.0;
    }
    double *v = doubles(count), *mass = doubles(count), largest = -INFINITY, sum = 0.0;
    int *ew = calloc((size_t)count, sizeof *ew);
    for (long y = 0; y < count; y++) {
        long first = places[3 * y + 1], last = places[3 * y + 2], any = 0;
        const double *F = c->F + first * M, *G = c->G + (last + 1) * M;
        const int *eF = c->eF + first * M, *eG = c->eG + (last + 1) * M;
        for (long m = 0; m < M; m++)
            if (without(c, m, k) && (!any++ || eF[m] + eG[other(c, m, k)] > ew[y]))
                ew[y] = eF[m] + eG[other(c, m, k)];
        for (long m = 0; m < M; m++)
            if (without(c, m, k))
                mass[y] = mass[y] + (F[m] * G[other(c, m, k)]) * power((long)eF[m] + eG[other(c, m, k)] - ew[y]);
        double level = c->l[first * (1 + 2 * K) + 1 + 2 * k];
        for (long t = first + 1; t <= last; t++)
            level = level + c->l[t * (1 + 2 * K) + 2 + 2 * k];
        v[y] = log_mass(mass[y], ew[y]) + level;
        largest = v[y] > largest ? v[y] : largest;
    }
    for (long y = 0; y < count; y++)
        sum = sum + exp64(v[y] - largest);
    double log_term = log64(sum) + largest;
    for (long y = 0; y < count; y++) {
        long first = places[3 * y + 1], last = places[3 * y + 2];
        double part = 1.0 * exp64(v[y] - log_term);
        for (long m = 0; m < M; m++) {
            long f = first * M + m, g = (last + 1) * M + other(c, m, k);
            if (!without(c, m, k))
                continue;
            double share = part * ((c->F[f] * c->G[g]) * power((long)c->eF[f] + c->eG[g] - ew[y]) / mass[y]);
            SF[f] -= share;
            SG[g] -= share;
        }
        dB[first * K + k] -= part;
        for (long t = first + 1; t <= last; t++)
            dI[t * K + k] -= part;
    }
    double loss = log_mass(c->Z, c->eZ) - log_term;
    free(v), free(mass), free(ew);
    return loss > 0.0 ? loss : 0.0;
}

/* Hands the shares of the boundaries before each word on ("Before" in the text). */
static void hand_back(Chain *c, double *SF, double *dB, double *dI)
{
    long n = c->n, M = c->masks, K = c->fields;
    double *carry = doubles(M * K), *free_begins = doubles(K), *begun = doubles(K);
    for (long t = n; t >= 1; t--) {
        long u = t - 1;
        sources(c, c->F + u * M, c->eF + u * M);
        for (long m = 0; m < M; m++) {
            double F = c->F[t * M + m], part = F == 0.0 ? 0.0 : SF[t * M + m] / F;
            double outside = ((part * power((long)c->base[m] - c->eF[t * M + m])) * c->o[u]) * c->own[m];
            for (long k = 0; k < K; k++) {
                double begins = c->b[u * K + k] * c->source[m * K + k];
                double goes_on = c->i[u * K + k] * (c->A[(u * M + m) * K + k] * c->base_scale[m]);
                double divisor = begins + goes_on;
                double share = (carry[m * K + k] + part * c->A[(t * M + m) * K + k]) / divisor;
                share = divisor == 0.0 ? 0.0 : share;
                begins = share * begins;
                goes_on = share * goes_on;
                dB[u * K + k] += begins;
                dI[u * K + k] += goes_on;
                carry[m * K + k] = goes_on;
                begun[k] = begins;
                free_begins[k] = c->bit_of[k] < 0 ? begins : 0.0;
            }
            SF[u * M + m] = SF[u * M + m] + (outside + sum4(free_begins, K));
            for (int q = 0; q < c->bits; q++)
                if (m >> q & 1)
                    SF[u * M + (m ^ 1L << q)] += begun[c->field_of[q]];
        }
    }
    free(carry), free(free_begins), free(begun);
}

/* The same for the boundaries after each word. */
static void hand_on(Chain *c, double *SG, double *dB, double *dI)
{
    long n = c->n, M = c->masks, K = c->fields;
    double *carry = doubles(M * K), *free_ends = doubles(K), *ended = doubles(K);
    for (long t = 0; t < n; t++) {
        sources(c, c->G + (t + 1) * M, c->eG + (t + 1) * M);
        for (long m = 0; m < M; m++) {
            double part = (SG[t * M + m] / c->G[t * M + m]) * power((long)c->base[m] - c->eG[t * M + m]);
            double outside = (part * c->o[t]) * c->own[m];
            for (long k = 0; k < K; k++) {
                double goes_on = c->D[((t + 1) * M + m) * K + k] * c->base_scale[m];
                double rest = c->source[m * K + k] + goes_on, begins = part * (c->b[t * K + k] * rest);
                dB[t * K + k] += begins;
                dI[t * K + k] += carry[m * K + k];
                double share = rest == 0.0 ? 0.0 : (begins + carry[m * K + k]) / rest;
                carry[m * K + k] = share * goes_on;
                ended[k] = share * c->source[m * K + k];
                free_ends[k] = c->bit_of[k] < 0 ? ended[k] : 0.0;
            }
            SG[(t + 1) * M + m] = SG[(t + 1) * M + m] + (outside + sum4(free_ends, K));
            for (int q = 0; q < c->bits; q++)
                if (m >> q & 1)
                    SG[(t + 1) * M + (m ^ 1L << q)] += ended[c->field_of[q]];
        }
    }
    free(carry), free(free_ends), free(ended);
}

/* The terms of one chain; exclusive: its fields, `answers`: 1 for the fields whose terms it takes. */
static int chain_terms(Chain *c, const int *answers, const int32_t *term_field, long terms, const int32_t *places,
                       long place_count, double *loss, double *dB_sum, double *dI_sum)
{
    long n = c->n, M, K = c->fields, used = 0;
    for (long s = 0; s < terms; s++)
        used += answers[term_field[s]];
    if (!used)
        return 0;
    M = c->masks = 1L << c->bits;
    for (long k = 0; k < K; k++)
        c->bit_of[k] = -1;
    for (int q = 0; q < c->bits; q++)
        c->bit_of[c->field_of[q]] = q;
    c->F = doubles((n + 1) * M), c->G = doubles((n + 1) * M);
    c->A = doubles((n + 1) * M * K), c->D = doubles((n + 1) * M * K);
    c->eF = calloc((size_t)((n + 1) * M), sizeof(int)), c->eG = calloc((size_t)((n + 1) * M), sizeof(int));
    c->base = calloc((size_t)M, sizeof(int));
    c->base_scale = doubles(M), c->own = doubles(M), c->source = doubles(M * K);
    run_chain(c);
    double *SF = doubles((n + 1) * M), *SG = doubles((n + 1) * M), *dB = doubles(n * K), *dI = doubles(n * K);
    for (long s = 0, y = 0; s < terms; s++) {
        long first = y;
        while (y < place_count && places[3 * y] == s)
            y++;
        if (answers[term_field[s]])
            loss[s] = term(c, term_field[s], places + 3 * first, y - first, SF, SG, dB, dI);
    }
    for (long m = 0; m < M; m++)
        SF[n * M + m] += (double)used * (c->F[n * M + m] * power((long)c->eF[n * M + m] - c->eZ) / c->Z);
    hand_back(c, SF, dB, dI);
    hand_on(c, SG, dB, dI);
    for (long x = 0; x < n * K; x++) {
        dB_sum[x] += dB[x];
        dI_sum[x] += dI[x];
    }
    free(c->F), free(c->G), free(c->A), free(c->D), free(c->eF), free(c->eG), free(c->base), free(c->base_scale);
    free(c->own), free(c->source), free(SF), free(SG), free(dB), free(dI);
    return 1;
}

double run_loss(const float *logits, long n, long K, const int32_t *repeated, const int32_t *term_field, long terms,
                const int32_t *places, long place_count, double scale, float *dlogits)
{
    long tags = 1 + 2 * K, S = 0;
    double *l = doubles(n * tags), *o = doubles(n), *b = doubles(n * K), *i = doubles(n * K), *loss = doubles(terms);
    double *dB = doubles(n * K), *dI = doubles(n * K), numerator = 0.0;
    int answers[64];
    Chain c = {.n = n, .fields = K, .l = l, .o = o, .b = b, .i = i};
    for (long t = 0; t < n; t++) {
        double top = logits[t * tags];
        for (long k = 0; k < tags; k++)
            top = logits[t * tags + k] > top ? logits[t * tags + k] : top;
        for (long k = 0; k < tags; k++) {
            double x = (double)logits[t * tags + k] - top;
            l[t * tags + k] = x > -300.0 ? x : -300.0;
        }
        o[t] = exp64(l[t * tags]);
        for (long k = 0; k < K; k++) {
            b[t * K + k] = exp64(l[t * tags + 1 + 2 * k]);
            i[t * K + k] = exp64(l[t * tags + 2 + 2 * k]);
        }
    }
    for (long k = 0; k < K; k++)
        S += !repeated[k];
    if (S <= 8 && (S == 0 || (K + 1) << S <= 4096)) {
        for (long k = 0; k < K; k++) {
            answers[k] = 1;
            if (!repeated[k])
                c.field_of[c.bits++] = (int)k;
        }
        chain_terms(&c, answers, term_field, terms, places, place_count, loss, dB, dI);
    } else {
        for (long k = 0; k < K; k++) {
            if (repeated[k])
                continue;
            for (long j = 0; j < K; j++)
                answers[j] = j == k;
            c.bits = 1;
            c.field_of[0] = (int)k;
            chain_terms(&c, answers, term_field, terms, places, place_count, loss, dB, dI);
        }
        for (long j = 0; j < K; j++)
            answers[j] = repeated[j] != 0;
        c.bits = 0;
        chain_terms(&c, answers, term_field, terms, places, place_count, loss, dB, dI);
    }
    for (long s = 0; s < terms; s++)
        numerator = numerator + loss[s];
    scale = scale / (double)terms;
    for (long t = 0; t < n; t++) {
        double out = 0.0;
        for (long k = 0; k < K; k++) {
            out = (out - dB[t * K + k]) - dI[t * K + k];
            dlogits[t * tags + 1 + 2 * k] = (float)(scale * dB[t * K + k]);
            dlogits[t * tags + 2 + 2 * k] = (float)(scale * dI[t * K + k]);
        }
        dlogits[t * tags] = (float)(scale * out);
    }
    free(l), free(o), free(b), free(i), free(loss), free(dB), free(dI);
    return terms ? numerator / (double)terms : 0.0;
}
