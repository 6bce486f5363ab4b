/* Independent labels (docs/readout.md). logits, dlogits (rows, columns); targets (rows, columns) 0, 1, or -1: not counted;
 * positive, negative (columns) binary64 weights or NULL (ones); gamma >= 0 the focal exponent. losses (rows, columns)
 * binary64 or NULL; *numerator their sum; dlogits or NULL. */
#define DX_BINARY_CROSS_ENTROPY(F) \
    F(int, binary_cross_entropy, (int degree, ptrdiff_t rows, ptrdiff_t columns, const float *logits, \
                                  const int32_t *targets, const double *positive, const double *negative, \
                                  double gamma, double scale, double denominator, double *losses, \
                                  double *numerator, float *dlogits))
