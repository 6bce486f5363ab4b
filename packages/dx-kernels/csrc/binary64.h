/* Binary64 sums for calibration (docs/readout.md). z, p (rows, n), log_sum (rows); a (rows, n), b (rows, m), s (n, m). */
#define DX_BINARY64(F) \
    F(int, softmax64, (int degree, ptrdiff_t rows, ptrdiff_t n, const double *z, double *p, double *log_sum)) \
    F(int, products64, (int degree, ptrdiff_t rows, ptrdiff_t n, ptrdiff_t m, const double *a, const double *b, \
                        double *s))
