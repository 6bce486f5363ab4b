/* Decoding (docs/numerics.md). logits (n, 1 + 2 fields) row-major, finite; repeated (fields): 1 if the field may have
 * several runs. tags (n): legal BIO tags, assigned. score: log of the tagging's probability over that of all O.
 * bound >= score: no legal tagging scores more; *exact = 1: score is the best. */
#define DX_DECODE(F) \
    F(int, decode_tags, (int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits, \
                         const unsigned char *repeated, int32_t *tags, double *score, double *bound, int *exact))
