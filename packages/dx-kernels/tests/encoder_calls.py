"""Calls of the encoder stack; importing this completes kernel_calls.REGISTRY."""
import numpy as np
from dx_numerics.testing.calls import Built, Out, call, out
from dx_kernels import encoder, post_encoder
from kernel_calls import kernel, mask


def blocks(draw, count, d, inner):
    """Weights of a stack of blocks, small enough that values stay moderate."""
    shapes = ((d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (inner, d), (inner,), (d, inner), (d,))
    return [[draw.real(*s, kind="plain") for s in shapes] for _ in range(count)]


def encoder_weights(*block_list, **options):
    return encoder.EncoderWeights(block_list, **options)


def made_and_used(block_list, x, **options):
    encoder.encoder_forward(encoder.EncoderWeights(block_list, **options), x)


def stack(draw, count=2, d=18, inner=33, **options):
    """An EncoderWeights made anew for every run."""
    made = blocks(draw, count, d, inner)
    return Built(encoder_weights, *made, heads=3, **options), made


@kernel("EncoderWeights", 200)
def encoder_weights_calls(n, draw):
    return [call(made_and_used, blocks(draw, 2, 18, 33), Out(draw.real(n, 18)), heads=3, eps=1e-3, activation=a)
            for a in ("gelu_erf", "gelu_tanh")]


def gradients_made_and_used(block_list, saved, dx, grads, **options):
    weights = encoder.EncoderWeights(block_list, heads=3)
    encoder.encoder_backward(weights, saved, dx, encoder.EncoderGradients(weights, grads), **options)


@kernel("EncoderGradients", 200)
def encoder_gradients_calls(n, draw):
    made = blocks(draw, 2, 18, 33)
    plain = encoder_weights(*made, heads=3)
    saved = np.zeros(encoder.encoder_saved_floats(plain, n), np.float32)
    encoder.encoder_forward(plain, draw.real(n, 18), None, saved)
    grads = [[Out(draw.real(*w.shape)) for w in block] for block in made]
    return [call(gradients_made_and_used, made, saved, Out(draw.real(n, 18)), grads, accumulate=True)]


@kernel("encoder_saved_floats", 200)
def encoder_saved_floats(n, draw):
    return [call(encoder.encoder_saved_floats, stack(draw)[0], n)]


@kernel("encoder_forward", 200)
def encoder_forward(n, draw):
    weights, made = stack(draw)
    saved = encoder.encoder_saved_floats(encoder_weights(*made, heads=3), n)
    return [call(encoder.encoder_forward, weights, Out(draw.real(n, 18)), draw.real(3, n, n), out(saved)),
            call(encoder.encoder_forward, weights, Out(draw.real(n, 18)), mask=mask(draw, n))]


@kernel("encoder_backward", 200)
def encoder_backward(n, draw):
    weights, made = stack(draw)
    plain, bias = encoder_weights(*made, heads=3), draw.real(3, n, n)
    saved = np.zeros(encoder.encoder_saved_floats(plain, n), np.float32)
    encoder.encoder_forward(plain, draw.real(n, 18), bias, saved)
    grads = [[out(*w.shape) for w in block] for block in made]
    return [call(encoder.encoder_backward, weights, saved, Out(draw.real(n, 18)), grads, bias, out(3, n, n))]


@kernel("post_encoder_saved_floats", 200)
def post_encoder_saved_floats(n, draw):
    return [call(post_encoder.post_encoder_saved_floats, stack(draw)[0], n)]


def borders(n):
    """Borders of sequences of 7 rows and a rest."""
    return np.array([*range(0, n, 7), n], np.int64)


@kernel("post_encoder_forward", 200)
def post_encoder_forward(n, draw):
    weights, made = stack(draw)
    saved = post_encoder.post_encoder_saved_floats(encoder_weights(*made, heads=3), n)
    return [call(post_encoder.post_encoder_forward, weights, Out(draw.real(n, 18)), None, out(saved)),
            call(post_encoder.post_encoder_forward, weights, Out(draw.real(n, 18)), borders(n) if n else None)]


@kernel("post_encoder_backward", 200)
def post_encoder_backward(n, draw):
    weights, made = stack(draw)
    plain = encoder_weights(*made, heads=3)
    saved = np.zeros(post_encoder.post_encoder_saved_floats(plain, n), np.float32)
    post_encoder.post_encoder_forward(plain, draw.real(n, 18), None, saved)
    grads = [[out(*w.shape) for w in block] for block in made]
    return [call(post_encoder.post_encoder_backward, weights, saved, Out(draw.real(n, 18)), grads)]
