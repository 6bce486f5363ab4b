/* Linear layers: x (rows, in), weight (out, in), y, residual, pre, saved, dy (rows, out), all row-major; ldx and ldy are
 * the row strides of x and of y. packed: the weight packed as B of x * weight^T (K = in, N = out), or NULL. bias,
 * residual, pre and saved may be NULL. pre receives what the activation is applied to, saved the tanh term of gelu_tanh.
 * Backward assigns its outputs, or with add adds to dweight and dbias; any may be NULL. packed there: the weight as B of
 * dy * weight (K = out, N = in). */
enum { DX_LINEAR_PLAIN, DX_LINEAR_RELU, DX_LINEAR_GELU_TANH, DX_LINEAR_GELU_ERF };

#define DX_LINEAR(F) \
    F(int, linear_forward, (int degree, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, const float *x, ptrdiff_t ldx, \
                            const float *weight, const float *packed, const float *bias, int activation, \
                            const float *residual, float *pre, float *saved, float *y, ptrdiff_t ldy)) \
    F(int, linear_backward, (int degree, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, const float *dy, ptrdiff_t lddy, \
                             const float *x, ptrdiff_t ldx, const float *weight, const float *packed, float *dx, \
                             ptrdiff_t lddx, int add, float *dweight, float *dbias))
