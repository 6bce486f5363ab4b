/* The best admissible spans of a context (docs/readout.md, "Extractive answers"): first and last row in the context,
 * first <= last, at most max_length rows. Score start[s] + end[e] (+ pair[s][e]) in binary64. Of equal scores the larger
 * first row is better, then the larger last row: the comparison of tuples (score, s, e) with the largest kept. */
#include "table.h"

ptrdiff_t DX_FN(best_spans)(ptrdiff_t n, const float *start, const float *end, const float *pair,
                            const unsigned char *context, ptrdiff_t max_length, ptrdiff_t most, int32_t *found,
                            double *scores)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t s = 0; s < n && most > 0; s++) {
        if (!context[s]) continue;
        const ptrdiff_t stop = max_length < n - s ? s + max_length : n;
        for (ptrdiff_t e = s; e < stop; e++) {
            if (!context[e]) continue;
            double score = 0.0;
            if (start) score = (double)start[s] + (double)end[e];
            if (pair) score = start ? score + (double)pair[s * n + e] : (double)pair[s * n + e];
            /* later spans have the larger (s, e), so an equal score goes before */
            if (count == most && score < scores[most - 1]) continue;
            ptrdiff_t at = count < most ? count++ : most - 1;
            for (; at > 0 && score >= scores[at - 1]; at--) {
                scores[at] = scores[at - 1];
                found[2 * at] = found[2 * at - 2];
                found[2 * at + 1] = found[2 * at - 1];
            }
            scores[at] = score;
            found[2 * at] = (int32_t)s;
            found[2 * at + 1] = (int32_t)e;
        }
    }
    return count;
}
