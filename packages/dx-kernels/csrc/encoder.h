/* A stack of pre-norm transformer blocks over n rows, in one call: no return to Python between kernels.
 *
 *   a = layer_norm(x, ln1)     qkv = linear(a, qkv)     x = linear(attention(qkv, bias), proj) + x
 *   b = layer_norm(x, ln2)     x = linear(activation(linear(b, fc1)), fc2) + x
 *
 * weights: 12 pointers a block, DX_BLOCK_LN1_W …; packed: 4 a block (qkv, proj, fc1, fc2), each the weight packed as B
 * of x * weight^T in forward and of dy * weight in backward. bias (heads, n, n) or NULL. mask (n) bytes or NULL admits
 * keys; with causal, row i admits keys 0..i. activation: DX_LINEAR_GELU_TANH or DX_LINEAR_GELU_ERF. x (n, d) is read and replaced.
 *
 * saved: encoder_saved_floats floats that forward fills for backward, or NULL (inference; the bits are the same).
 * Backward replaces dx (gradient of the output) by the gradient of the input; grads: 12 pointers a block, assigned, or
 * with add each finished gradient added to what is there; dbias (heads, n, n), assigned: the blocks' bias gradients added from the last block to the first; or NULL. */
#ifndef DX_ENCODER_H
#define DX_ENCODER_H

enum { DX_BLOCK_LN1_W, DX_BLOCK_LN1_B, DX_BLOCK_QKV_W, DX_BLOCK_QKV_B, DX_BLOCK_PROJ_W, DX_BLOCK_PROJ_B,
       DX_BLOCK_LN2_W, DX_BLOCK_LN2_B, DX_BLOCK_FC1_W, DX_BLOCK_FC1_B, DX_BLOCK_FC2_W, DX_BLOCK_FC2_B,
       DX_BLOCK_TENSORS };

typedef struct {
    ptrdiff_t blocks, n, d, heads, inner;
    float eps;
    int activation, causal;
    const float *const *weights, *const *packed;
    const float *bias;
    const unsigned char *mask;
} dx_encoder;

#endif

#define DX_ENCODER(F) \
    F(ptrdiff_t, encoder_saved_floats, (const dx_encoder *e)) \
    F(int, encoder_forward, (int degree, const dx_encoder *e, float *x, float *saved)) \
    F(int, encoder_backward, (int degree, const dx_encoder *e, const float *saved, float *dx, int add, \
                              float *const *grads, float *dbias))
