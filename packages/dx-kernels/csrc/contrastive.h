/* Multi-positive contrastive loss over rows of scores. scores, dscores (rows, columns); positive, admit (rows, columns)
 * bytes, admit NULL: all; weight (rows, columns) binary64 or NULL (ones). losses (rows) binary64 or NULL; *numerator
 * their sum. dscores may be NULL (then scale and denominator are not used). Every row has a positive, every positive is
 * admitted and has a weight above 0. */
#define DX_CONTRASTIVE(F) \
    F(int, contrastive, (int degree, ptrdiff_t rows, ptrdiff_t columns, const float *scores, \
                         const unsigned char *positive, const unsigned char *admit, const double *weight, \
                         double temperature, double scale, double denominator, double *losses, double *numerator, \
                         float *dscores))
