/* Rounding to bfloat16 values kept as binary32, and the weight gradients of layers whose inputs are rounded so: the sum
 * over the examples of a batch, in example order, of the ordinary gradient of the rounded operands.
 *
 *   linear   x (batch, rows, in), dy (batch, rows, out): dweight (out, in), not rounded again
 *   patch    images (batch, channels, height, width), dy (batch, patches + 1, d): dweight, its sum rounded once more */
#define DX_BFLOAT16(F) \
    F(int, round_bfloat16, (int degree, ptrdiff_t n, const float *x, float *y)) \
    F(int, linear_weight_gradient_bfloat16, (int degree, ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t in, ptrdiff_t out, \
                                             const float *dy, const float *x, float *dweight)) \
    F(int, patch_weight_gradient_bfloat16, (int degree, ptrdiff_t batch, const dx_patch_grid *g, const float *dy, \
                                            const float *images, float *dweight))
