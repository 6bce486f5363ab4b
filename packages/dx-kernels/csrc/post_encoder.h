/* A stack of post-norm transformer blocks (BERT's) over n rows, in one call: no return to Python between kernels.
 *
 *   a = layer_norm(linear(attention(linear(x, qkv)), proj) + x, ln1)
 *   x = layer_norm(linear(activation(linear(a, fc1)), fc2) + a, ln2)
 *
 * The rows are those of `sequences` sequences, one after the other: sequence s is rows starts[s] .. starts[s + 1] - 1,
 * and attention stays within it; nothing else mixes rows. weights, packed: as encoder.h. activation:
 * DX_LINEAR_GELU_TANH or DX_LINEAR_GELU_ERF. x (n, d) is read and replaced.
 *
 * saved: post_encoder_saved_floats floats that forward fills for backward, of one sequence, or NULL (inference; the bits
 * are the same). Backward replaces dx (gradient of the output) by the gradient of the input; grads: 12 pointers a
 * block, assigned, or with `add` added to in one rounded addition each. */
#ifndef DX_POST_ENCODER_H
#define DX_POST_ENCODER_H

#include "encoder.h"

typedef struct {
    ptrdiff_t blocks, n, d, heads, inner, sequences;
    float eps;
    int activation;
    const float *const *weights, *const *packed;
    const long long *starts;
} dx_post_encoder;

#endif

#define DX_POST_ENCODER(F) \
    F(ptrdiff_t, post_encoder_saved_floats, (const dx_post_encoder *e)) \
    F(int, post_encoder_forward, (int degree, const dx_post_encoder *e, float *x, float *saved)) \
    F(int, post_encoder_backward, (int degree, const dx_post_encoder *e, const float *saved, float *dx, \
                                   int add, float *const *grads))
