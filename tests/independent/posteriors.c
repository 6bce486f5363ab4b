/* Probabilities of runs and of their absence: docs/numerics.md section 18, "Posteriors". */
#include "decode.h"
#include "chain.h"
#include "arithmetic.h"
#include <stdlib.h>

typedef struct { double floor, *absent, *p; int32_t *run; long count, most; } Found;

/* Z of a forward pass in which field k, which is not exclusive, cannot begin. */
static double mass_without(const Chain *c, long k, int *e)
{
    Chain other = *c;
    other.b = doubles(c->n * c->fields);
    for (long t = 0; t < c->n; t++)
        for (long j = 0; j < c->fields; j++)
            other.b[t * c->fields + j] = j == k ? 0.0 : c->b[t * c->fields + j];
    begin_chain(&other);
    double mass = other.Z;
    *e = other.eZ;
    end_chain(&other);
    free(other.b);
    return mass;
}

static void one_field(const Chain *c, long k, Found *found)
{
    int ea = 0;
    double mass = c->bit_of[k] >= 0 ? absent_mass(c, k, &ea) : mass_without(c, k, &ea);
    double share = mass * power_of_two((long)ea - c->eZ) / c->Z;
    found->absent[k] = share < 1.0 ? share : 1.0;
    for (long first = 0; first < c->n; first++) {
        double left = c->start[first * c->fields + k];
        for (long last = first; last < c->n && left >= found->floor; last++) {
            int ew = 0;
            double mass = run_mass(c, k, first, last, &ew);
            double p = exp64((log_mass(mass, ew) + run_level(c, k, first, last)) - log_mass(c->Z, c->eZ));
            p = p < 1.0 ? p : 1.0;
            left = left - p;
            if (p < found->floor || found->count == found->most)
                continue;
            int32_t *run = found->run + 3 * found->count;
            run[0] = (int32_t)k, run[1] = (int32_t)first, run[2] = (int32_t)last;
            found->p[found->count++] = p;
        }
    }
}

long posteriors(const float *logits, long n, long K, const int32_t *repeated, double floor, double *absent,
                int32_t *run, double *p, long most)
{
    Chain c = page_model(logits, n, K);
    Found found = {floor, absent, p, run, 0, most};
    int joint = is_joint(repeated, K);
    for (long k = 0; joint && k < K; k++)
        if (!repeated[k])
            c.field_of[c.bits++] = (int)k;
    if (joint)
        begin_chain(&c);
    for (long k = 0; k < K; k++) {
        if (!joint) {
            c.bits = !repeated[k];
            c.field_of[0] = (int)k;
            begin_chain(&c);
        }
        one_field(&c, k, &found);
        if (!joint)
            end_chain(&c);
    }
    if (joint)
        end_chain(&c);
    end_model(&c);
    return found.count;
}
