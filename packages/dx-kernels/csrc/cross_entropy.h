/* Weighted cross-entropy. logits, dlogits (rows, columns); targets (rows), negative: not counted; weight (columns)
 * binary64 or NULL (ones); admit (rows, columns) bytes or NULL (all). losses (rows) binary64: w[t] * nll, +0 where not
 * counted, or NULL; *numerator their sum. counted_weight is the sum of w[t] over the counted rows, in order.
 * dlogits may be NULL (then scale and denominator are not used). */
#define DX_CROSS_ENTROPY(F) \
    F(double, counted_weight, (ptrdiff_t rows, const int32_t *targets, const double *weight)) \
    F(int, cross_entropy, (int degree, ptrdiff_t rows, ptrdiff_t columns, const float *logits, \
                           const int32_t *targets, const double *weight, const unsigned char *admit, double scale, \
                           double denominator, double *losses, double *numerator, float *dlogits))
