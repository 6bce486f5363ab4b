/* Chains of the page model: docs/numerics.md section 18. */
#ifndef DX_INDEPENDENT_CHAIN_H
#define DX_INDEPENDENT_CHAIN_H
#include <stdint.h>

/* The exclusive fields of a chain are bits of a mask; tables are [boundary][mask] and [boundary][mask][field]. */
typedef struct {
    long n, fields, masks;
    int bits, field_of[16], bit_of[64];                 /* bit -1: the field is not exclusive */
    double *l, *o, *b, *i;
    double *F, *A, *G, *D, Z, *start;                   /* start: [word][field] */
    int *eF, *eG, eZ;
    double *base_scale, *own, *source;                  /* of one boundary: [mask], [mask], [mask][field] */
    int *base;
} Chain;

/* Logits as l, o, b and i of the text; the chain's fields and memory come with `begin_chain`. */
Chain page_model(const float *logits, long n, long fields);
void end_model(Chain *c);
/* 1 where one chain answers for all fields. */
int is_joint(const int32_t *repeated, long fields);
/* The exclusive fields are those of field_of[0 .. bits-1]. */
void begin_chain(Chain *c);
void end_chain(Chain *c);
double *doubles(long count);
double power_of_two(long e);
double sum4(const double *v, long fields);
void sources(Chain *c, const double *x, const int *e);
double log_mass(double v, long e);
/* m is a mask without field k (any mask, if k is not exclusive); other: m' of the text. */
int without(const Chain *c, long m, long k);
long other(const Chain *c, long m, long k);
/* The mass of the run of k over first .. last, at the exponent that is put into ew; its level. */
double run_mass(const Chain *c, long k, long first, long last, int *ew);
double run_level(const Chain *c, long k, long first, long last);
/* The mass of the taggings without a run of k, at the exponent ea. */
double absent_mass(const Chain *c, long k, int *ea);
#endif
