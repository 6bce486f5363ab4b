/* Run loss (docs/backward-numerics.md). logits (n, 1 + 2 fields) finite; repeated (fields). Term x: field term[x],
 * places begin[x]..begin[x + 1] - 1 of places (first, last), none: the field has no value; weight (terms) or NULL: 1.
 * losses (terms), assigned. dlogits (n, 1 + 2 fields), assigned, or NULL. */
#define DX_RUN_LOSS(F) \
    F(int, run_loss, (int degree, ptrdiff_t n, ptrdiff_t fields, const float *logits, const unsigned char *repeated, \
                      ptrdiff_t terms, const int32_t *term, const int32_t *begin, const int32_t *places, \
                      const double *weight, double scale, double *losses, float *dlogits))
