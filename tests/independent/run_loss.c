/* The run loss: docs/backward-numerics.md section 10 over the chains of docs/numerics.md section 18. */
#include "model.h"
#include "chain.h"
#include "arithmetic.h"
#include <stdlib.h>

/* One term; returns its loss and subtracts its part of the shares. */
static double term(Chain *c, long k, const int32_t *places, long count, double *SF, double *SG, double *dB, double *dI)
{
    long n = c->n, M = c->masks, K = c->fields, last_row = n * M;
    if (count == 0) {
        int ea = 0;
        double mass = absent_mass(c, k, &ea);
        for (long m = 0; m < M; m++)
            if (without(c, m, k))
                SF[last_row + m] -= c->F[last_row + m] * power_of_two((long)c->eF[last_row + m] - ea) / mass;
        double loss = log_mass(c->Z, c->eZ) - log_mass(mass, ea);
        return loss > 0.0 ? loss : 0.0;
    }
    double *v = doubles(count), *mass = doubles(count), largest = -INFINITY, sum = 0.0;
    int *ew = calloc((size_t)count, sizeof *ew);
    for (long y = 0; y < count; y++) {
        mass[y] = run_mass(c, k, places[3 * y + 1], places[3 * y + 2], &ew[y]);
        v[y] = log_mass(mass[y], ew[y]) + run_level(c, k, places[3 * y + 1], places[3 * y + 2]);
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
            double share = part * ((c->F[f] * c->G[g]) * power_of_two((long)c->eF[f] + c->eG[g] - ew[y]) / mass[y]);
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

static double lift(double divisor) { return divisor < 0x1p-900 ? 0x1p200 : 1.0; }

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
            double outside = ((part * power_of_two((long)c->base[m] - c->eF[t * M + m])) * c->o[u]) * c->own[m];
            for (long k = 0; k < K; k++) {
                double begins = c->b[u * K + k] * c->source[m * K + k];
                double goes_on = c->i[u * K + k] * (c->A[(u * M + m) * K + k] * c->base_scale[m]);
                double up = lift(begins + goes_on), divisor;
                begins = begins * up;
                goes_on = goes_on * up;
                divisor = begins + goes_on;
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
            double part = (SG[t * M + m] / c->G[t * M + m]) * power_of_two((long)c->base[m] - c->eG[t * M + m]);
            double outside = (part * c->o[t]) * c->own[m];
            for (long k = 0; k < K; k++) {
                double goes_on = c->D[((t + 1) * M + m) * K + k] * c->base_scale[m];
                double rest = c->source[m * K + k] + goes_on, begins = part * (c->b[t * K + k] * rest);
                dB[t * K + k] += begins;
                dI[t * K + k] += carry[m * K + k];
                double up = lift(rest), starts = c->source[m * K + k] * up;
                goes_on = goes_on * up;
                double share = rest == 0.0 ? 0.0 : (begins + carry[m * K + k]) / (starts + goes_on);
                carry[m * K + k] = share * goes_on;
                ended[k] = share * starts;
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

/* The terms of one chain; `answers`: 1 for the fields whose terms it takes. */
static void chain_terms(Chain *c, const int *answers, const int32_t *term_field, long terms, const int32_t *places,
                       long place_count, double *loss, double *dB_sum, double *dI_sum)
{
    long n = c->n, M = 1L << c->bits, K = c->fields, used = 0;
    for (long s = 0; s < terms; s++)
        used += answers[term_field[s]];
    if (!used)
        return;
    begin_chain(c);
    double *SF = doubles((n + 1) * M), *SG = doubles((n + 1) * M), *dB = doubles(n * K), *dI = doubles(n * K);
    for (long s = 0, y = 0; s < terms; s++) {
        long first = y;
        while (y < place_count && places[3 * y] == s)
            y++;
        if (answers[term_field[s]])
            loss[s] = term(c, term_field[s], places + 3 * first, y - first, SF, SG, dB, dI);
    }
    for (long m = 0; m < M; m++)
        SF[n * M + m] += (double)used * (c->F[n * M + m] * power_of_two((long)c->eF[n * M + m] - c->eZ) / c->Z);
    hand_back(c, SF, dB, dI);
    hand_on(c, SG, dB, dI);
    for (long x = 0; x < n * K; x++) {
        dB_sum[x] += dB[x];
        dI_sum[x] += dI[x];
    }
    free(SF), free(SG), free(dB), free(dI);
    end_chain(c);
}

double run_loss(const float *logits, long n, long K, const int32_t *repeated, const int32_t *term_field, long terms,
                const int32_t *places, long place_count, double scale, float *dlogits)
{
    long tags = 1 + 2 * K;
    double *loss = doubles(terms), *dB = doubles(n * K), *dI = doubles(n * K), numerator = 0.0;
    int answers[64];
    Chain c = page_model(logits, n, K);
    if (is_joint(repeated, K)) {
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
    end_model(&c);
    free(loss), free(dB), free(dI);
    return terms ? numerator / (double)terms : 0.0;
}
