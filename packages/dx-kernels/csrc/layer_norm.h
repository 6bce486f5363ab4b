/* Layer normalisation. x, xhat, y, dy, dx are (rows, d) row-major; weight, bias, dweight, dbias (d); inv (rows).
 * weight and bias may be NULL (1 and 0). Backward assigns its outputs, or with add adds to dweight and dbias; any may be
 * NULL. */
#define DX_LAYER_NORM(F) \
    F(int, layer_norm_forward, (int degree, ptrdiff_t rows, ptrdiff_t d, const float *x, const float *weight, \
                                const float *bias, float eps, float *y, float *xhat, float *inv)) \
    F(int, layer_norm_backward, (int degree, ptrdiff_t rows, ptrdiff_t d, const float *dy, const float *xhat, \
                                 const float *inv, const float *weight, float *dx, int add, float *dweight, \
                                 float *dbias))
