/* Posteriors of runs under the page model (page_model.h). logits (n, 1 + 2 fields) finite; repeated (fields).
 * absent (fields): probability that the field has no run; 0 for a repeated field. given (q, 3): field, first, last word;
 * given_p (q), assigned. found (capacity, 3) and found_p: the runs of probability >= floor, by field, first, last; as
 * many as fit; *count: how many there are. */
#define DX_POSTERIORS(F) \
    F(int, run_posteriors, (int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits, \
                            const unsigned char *repeated, double *absent, ptrdiff_t q, const int32_t *given, \
                            double *given_p, double floor, ptrdiff_t capacity, int32_t *found, double *found_p, \
                            ptrdiff_t *count))
