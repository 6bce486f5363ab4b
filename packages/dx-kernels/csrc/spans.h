/* Best admissible spans (docs/readout.md). start, end (n) and pair (n, n) binary32 or NULL; context (n) bytes; most
 * spans, the best first: found (most, 2), scores (most). Returns how many there are, never a status. */
#define DX_SPANS(F) \
    F(ptrdiff_t, best_spans, (ptrdiff_t n, const float *start, const float *end, const float *pair, \
                              const unsigned char *context, ptrdiff_t max_length, ptrdiff_t most, int32_t *found, \
                              double *scores))
