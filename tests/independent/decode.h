/* Posteriors and the best tagging: docs/numerics.md section 18. */
#ifndef DX_INDEPENDENT_DECODE_H
#define DX_INDEPENDENT_DECODE_H
#include <stdint.h>

typedef struct { double score, bound; int exact; } Best;

/* absent (fields); runs of probability >= floor into run (most, 3) and p (most); returns how many. */
long posteriors(const float *logits, long n, long fields, const int32_t *repeated, double floor, double *absent,
                int32_t *run, double *p, long most);
Best best_tagging(const float *logits, long n, long fields, const int32_t *repeated, int32_t *tags);
#endif
