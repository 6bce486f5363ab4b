"""The stack of post-norm blocks: bits of the reference, packed sequences, gradients, what is refused."""
import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.encoder import BLOCK_TENSORS
from dx_kernels.ref import post_encoder as ref
from test_encoder import random_blocks


def backward(weights, saved, dy, **options):
    dx, grads = dy.copy(), [[np.full_like(w, np.nan) for w in block] for block in weights.blocks]
    k.post_encoder_backward(weights, saved, dx, grads, **options)
    return dx, grads


@pytest.mark.parametrize("n, d, heads, inner, count", [(1, 4, 1, 4, 1), (5, 8, 2, 12, 2), (19, 32, 4, 40, 2),
                                                       (33, 16, 1, 64, 3)])
@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf"])
def test_bits_equal_reference(path, rng, n, d, heads, inner, count, activation):
    blocks = random_blocks(rng, count, d, inner)
    x, dy = rng.standard_normal((2, n, d)).astype(np.float32)
    want, kept = ref.post_encoder_forward(blocks, x, heads, eps=1e-12, activation=activation)
    want_dx, want_grads = ref.post_encoder_backward(blocks, kept, dy, activation)
    weights = k.EncoderWeights(blocks, heads=heads, eps=1e-12, activation=activation)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y, plain = x.copy(), x.copy()
            saved = np.empty(k.post_encoder_saved_floats(weights, n), np.float32)
            k.post_encoder_forward(weights, y, None, saved)
            k.post_encoder_forward(weights, plain)
            dx, grads = backward(weights, saved, dy)
        assert same_bits(y, want) and same_bits(plain, want) and same_bits(dx, want_dx)
        for got_block, want_block in zip(grads, want_grads):
            for name, got, expected in zip(BLOCK_TENSORS, got_block, want_block):
                assert same_bits(got, expected), name


def test_a_sequence_alone_and_among_others_has_the_same_bits(path, rng):
    blocks = random_blocks(rng, 2, 32, 48)
    weights = k.EncoderWeights(blocks, heads=4, eps=1e-12, activation="gelu_erf")
    lengths = [1, 17, 2, 40, 1, 5]
    starts = np.array([sum(lengths[:i]) for i in range(len(lengths) + 1)], np.int64)
    x = rng.standard_normal((starts[-1], 32)).astype(np.float32)
    want, _ = ref.post_encoder_forward(blocks, x, 4, starts)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y = x.copy()
            k.post_encoder_forward(weights, y, starts)
            assert same_bits(y, want)
            for first, end in zip(starts, starts[1:]):
                alone = x[first:end].copy()
                k.post_encoder_forward(weights, alone)
                assert same_bits(alone, want[first:end])


def test_gradients_against_differences_in_binary64(rng):
    """Central differences of the same blocks in binary64, with numpy's operations, for every tensor and the input."""
    from math import erf
    blocks = random_blocks(rng, 2, 8, 12)
    x, dy = rng.standard_normal((2, 5, 8)).astype(np.float32)

    def norm(v, w, b):
        c = v - v.mean(1, keepdims=True)
        return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-12) * w + b

    def loss(arrays, v):
        for w in arrays:
            q, key, value = np.split(v @ w[2].T + w[3], 3, axis=1)
            heads = []
            for h in (slice(0, 4), slice(4, 8)):
                s = np.exp(q[:, h] @ key[:, h].T / 2)
                heads.append(s / s.sum(1, keepdims=True) @ value[:, h])
            a = norm(np.concatenate(heads, 1) @ w[4].T + w[5] + v, w[0], w[1])
            hidden = a @ w[8].T + w[9]
            hidden = hidden * (1 + np.vectorize(erf)(hidden / np.sqrt(2))) / 2
            v = norm(hidden @ w[10].T + w[11] + a, w[6], w[7])
        return (v * dy).sum()

    weights = k.EncoderWeights(blocks, heads=2, eps=1e-12, activation="gelu_erf")
    y, saved = x.copy(), np.empty(k.post_encoder_saved_floats(weights, 5), np.float32)
    k.post_encoder_forward(weights, y, None, saved)
    dx, grads = backward(weights, saved, dy)
    arrays, v = [[w.astype(np.float64) for w in block] for block in blocks], x.astype(np.float64)
    assert abs(loss(arrays, v) - (y * dy).sum()) < 1e-4
    for array, gradient in [(v, dx), *((w, g) for block, own in zip(arrays, grads) for w, g in zip(block, own))]:
        for at in rng.choice(array.size, min(array.size, 6), replace=False):
            kept, values = array.flat[at], []
            for step in (1e-5, -1e-5):
                array.flat[at] = kept + step
                values.append(loss(arrays, v))
            array.flat[at] = kept
            assert abs((values[0] - values[1]) / 2e-5 - gradient.flat[at]) < 2e-4 * max(1, np.abs(gradient).max())


def test_accumulated_gradients_are_one_addition_each(rng):
    blocks = random_blocks(rng, 2, 8, 12)
    weights = k.EncoderWeights(blocks, heads=2)
    x, dy = rng.standard_normal((2, 7, 8)).astype(np.float32)
    saved = np.empty(k.post_encoder_saved_floats(weights, 7), np.float32)
    k.post_encoder_forward(weights, x.copy(), None, saved)
    _, grads = backward(weights, saved, dy)
    sums = [[rng.standard_normal(g.shape).astype(np.float32) for g in block] for block in grads]
    want = [[s + g for s, g in zip(a, b)] for a, b in zip(sums, grads)]
    k.post_encoder_backward(weights, saved, dy.copy(), k.EncoderGradients(weights, sums), accumulate=True)
    assert all(same_bits(s, w) for a, b in zip(sums, want) for s, w in zip(a, b))


def test_empty_and_wrong(rng):
    blocks = random_blocks(rng, 2, 8, 8)
    weights = k.EncoderWeights(blocks, heads=2)
    empty = np.zeros((0, 8), np.float32)
    k.post_encoder_forward(weights, empty)
    _, grads = backward(weights, np.empty(k.post_encoder_saved_floats(weights, 0), np.float32), empty)
    assert all((g == 0).all() for block in grads for g in block)
    x = rng.standard_normal((6, 8)).astype(np.float32)
    kept = x.copy()
    k.post_encoder_forward(k.EncoderWeights([], heads=1), x)
    assert same_bits(x, kept)
    for starts in ([0, 3], [1, 6], [], [0, 3, 3, 6], [0, 7, 6]):
        with pytest.raises(ValueError, match="starts"):
            k.post_encoder_forward(weights, x, np.array(starts, np.int64))
    saved = np.empty(k.post_encoder_saved_floats(weights, 6), np.float32)
    with pytest.raises(ValueError, match="saved with 2 sequences"):
        k.post_encoder_forward(weights, x, np.array([0, 2, 6], np.int64), saved)
    with pytest.raises(ValueError, match="saved has shape"):
        k.post_encoder_forward(weights, x, None, saved[1:])
    with pytest.raises(ValueError, match=r"x has shape \(6, 4\): expected rows of 8"):
        k.post_encoder_forward(weights, x[:, :4].copy())
    with pytest.raises(TypeError, match="expected EncoderWeights"):
        k.post_encoder_forward(blocks, x)
    with pytest.raises(ValueError, match="n = -1"):
        k.post_encoder_saved_floats(weights, -1)
    assert same_bits(x, kept)


def test_not_a_number_stays_in_its_sequence(path, rng):
    weights = k.EncoderWeights(random_blocks(rng, 2, 16, 16), heads=2)
    x = rng.standard_normal((9, 16)).astype(np.float32)
    clean = x.copy()
    starts = np.array([0, 4, 9], np.int64)
    k.post_encoder_forward(weights, clean, starts)
    x[6, 3] = np.nan
    k.post_encoder_forward(weights, x, starts)
    assert same_bits(x[:4], clean[:4]) and np.isnan(x[4:]).all()
