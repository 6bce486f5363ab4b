/* Losses of real targets (docs/readout.md). prediction, dprediction, mean, log_variance and their gradients binary32,
 * target binary64, counted bytes or NULL (all), all (count); kind 0 squared, 1 absolute, 2 Huber with delta.
 * losses (count) binary64, +0 where not counted, or NULL; *numerator their sum, *total how many are counted.
 * Gradients (both or neither) are scaled by scale / denominator and may be NULL. */
#define DX_REGRESSION(F) \
    F(int, regression, (int degree, ptrdiff_t count, int kind, double delta, const float *prediction, \
                        const double *target, const unsigned char *counted, double scale, double denominator, \
                        double *losses, double *numerator, float *dprediction)) \
    F(int, gaussian_nll, (int degree, ptrdiff_t count, const float *mean, const float *log_variance, \
                          const double *target, const unsigned char *counted, double scale, double denominator, \
                          double *losses, double *numerator, float *dmean, float *dlog_variance))
