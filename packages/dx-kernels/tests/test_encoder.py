import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.encoder import BLOCK_TENSORS
from dx_kernels.ref import encoder as ref


def random_blocks(rng, count, d, inner):
    shapes = ((d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (inner, d), (inner,), (d, inner), (d,))
    return [[(rng.standard_normal(s) / np.sqrt(s[-1]) + (s == (d,) and i in (0, 6))).astype(np.float32)
             for i, s in enumerate(shapes)] for _ in range(count)]


def run(weights, x, bias, dy, mask=None, causal=False):
    """(output, saved, dx, grads, dbias) of the kernels."""
    y, saved = x.copy(), np.empty(k.encoder_saved_floats(weights, len(x)), np.float32)
    k.encoder_forward(weights, y, bias, saved, mask=mask, causal=causal)
    dx = dy.copy()
    grads = [[np.full_like(w, np.nan) for w in block] for block in weights.blocks]
    dbias = None if bias is None else np.full_like(bias, np.nan)
    k.encoder_backward(weights, saved, dx, grads, bias, dbias, mask=mask)
    return y, saved, dx, grads, dbias


@pytest.mark.parametrize("n, d, heads, inner, count", [(1, 4, 1, 4, 1), (5, 8, 2, 12, 2), (19, 32, 4, 40, 2),
                                                       (33, 16, 1, 64, 3)])
@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_erf"])
def test_bits_equal_reference(path, rng, n, d, heads, inner, count, activation):
    blocks = random_blocks(rng, count, d, inner)
    x, dy = rng.standard_normal((2, n, d)).astype(np.float32)
    bias = rng.standard_normal((heads, n, n)).astype(np.float32)
    mask = (rng.random(n) < 0.8).astype(np.uint8) if n > 10 else None
    want, kept = ref.encoder_forward(blocks, x, heads, bias, mask, activation=activation)
    want_dx, want_grads, want_dbias = ref.encoder_backward(blocks, kept, dy, activation)
    weights = k.EncoderWeights(blocks, heads=heads, activation=activation)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y, _, dx, grads, dbias = run(weights, x, bias, dy, mask)
            plain = x.copy()
            k.encoder_forward(weights, plain, bias, mask=mask)
        assert same_bits(y, want) and same_bits(plain, want)
        assert same_bits(dx, want_dx) and same_bits(dbias, want_dbias)
        for got_block, want_block in zip(grads, want_grads):
            for name, got, expected in zip(BLOCK_TENSORS, got_block, want_block):
                assert same_bits(got, expected), name


def test_causal_rows(path, rng):
    """Bits equal the reference; a later row changes no earlier row's bits and gets no gradient from it."""
    blocks = random_blocks(rng, 2, 16, 24)
    weights = k.EncoderWeights(blocks, heads=2)
    x, dy = rng.standard_normal((2, 37, 16)).astype(np.float32)
    want, kept = ref.encoder_forward(blocks, x, 2, causal=True)
    want_dx, want_grads, _ = ref.encoder_backward(blocks, kept, dy)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y, _, dx, grads, _ = run(weights, x, None, dy, causal=True)
        assert same_bits(y, want) and same_bits(dx, want_dx)
        assert all(same_bits(a, b) for g, w in zip(grads, want_grads) for a, b in zip(g, w))
    for length in (1, 15, 16, 17, 36):
        short = x[:length].copy()
        k.encoder_forward(weights, short, causal=True)
        assert same_bits(short, np.ascontiguousarray(y[:length]))
    dy[20:] = 0
    assert not run(weights, x, None, dy, causal=True)[2][20:].any()


@pytest.mark.parametrize("n", [0, 1, 21, 40])
def test_accumulate_is_assigning_then_adding(path, rng, n):
    """Into lists and into EncoderGradients, at every degree: the bits of the gradients added by numpy."""
    blocks = random_blocks(rng, 2, 24, 70)  # 70: a ragged last panel
    x, dy = rng.standard_normal((2, n, 24)).astype(np.float32)
    weights = k.EncoderWeights(blocks, heads=2)
    _, saved, want_dx, alone, _ = run(weights, x, None, dy)
    before = [[rng.standard_normal(w.shape).astype(np.float32) for w in block] for block in blocks]
    before[0][0][:2] = -0.0
    want = [[b + g for b, g in zip(*pair)] for pair in zip(before, alone)]
    for degree in (1, 2, 3):
        for made in (lambda grads: grads, lambda grads: k.EncoderGradients(weights, grads)):
            got, dx = [[b.copy() for b in block] for block in before], dy.copy()
            with k.degree(degree):
                k.encoder_backward(weights, saved, dx, made(got), accumulate=True)
            assert same_bits(dx, want_dx)
            assert all(same_bits(a, b) for pair in zip(got, want) for a, b in zip(*pair))


def test_without_bias_and_after_repack(path, rng):
    blocks = random_blocks(rng, 1, 16, 32)
    x = rng.standard_normal((7, 16)).astype(np.float32)
    weights = k.EncoderWeights(blocks, heads=2)
    first = run(weights, x, None, x)[0]
    blocks[0][2] *= 2
    assert same_bits(run(weights, x, None, x)[0], first)  # the packed values still hold
    weights.repack()
    want, _ = ref.encoder_forward(blocks, x, 2)
    assert same_bits(run(weights, x, None, x)[0], want)


def test_a_change_of_path_and_repack_between_calls(rng):
    """What is prepared once for a path and direction follows both."""
    blocks = random_blocks(rng, 2, 16, 32)
    x = rng.standard_normal((9, 16)).astype(np.float32)
    weights = k.EncoderWeights(blocks, heads=2)
    for factor in (1, 2, 3):
        blocks[1][8] *= factor
        weights.repack()
        want = run(k.EncoderWeights(blocks, heads=2), x, None, x)
        for path in (*k.available_paths(), *k.available_paths()[::-1]):
            with k.kernel_path(path):
                got = run(weights, x, None, x)
                assert same_bits(got[0], want[0]) and same_bits(got[2], want[2])
                assert all(same_bits(a, b) for g, w in zip(got[3], want[3]) for a, b in zip(g, w))


def test_empty_and_wrong(rng):
    blocks = random_blocks(rng, 2, 8, 8)
    weights = k.EncoderWeights(blocks, heads=2)
    x = np.zeros((0, 8), np.float32)
    _, _, _, grads, _ = run(weights, x, None, x)
    assert all((g == 0).all() for block in grads for g in block)
    none = k.EncoderWeights([], heads=1)
    y = rng.standard_normal((3, 8)).astype(np.float32)
    z = y.copy()
    k.encoder_forward(none, z)
    assert same_bits(y, z)
    with pytest.raises(ValueError, match=r"bias has shape \(2, 3, 4\): expected \(2, 3, 3\)"):
        k.encoder_forward(weights, y, np.zeros((2, 3, 4), np.float32))
    with pytest.raises(ValueError, match=r"x has shape \(3, 4\): expected rows of 8"):
        k.encoder_forward(weights, y[:, :4].copy())
    with pytest.raises(ValueError, match="saved has shape"):
        k.encoder_forward(weights, y, None, np.zeros(3, np.float32))
    bad = [list(block) for block in blocks]
    bad[1][4] = bad[1][4][:, :4]
    with pytest.raises(ValueError, match=r"block 1 proj.weight has shape \(8, 4\)"):
        k.EncoderWeights(bad, heads=2)
    with pytest.raises(ValueError, match="heads = 3"):
        k.EncoderWeights(blocks, heads=3)
    with pytest.raises(TypeError, match="expected EncoderWeights"):
        k.encoder_forward(blocks, y)


def test_wrong_objects(rng):
    """Arrays, blocks and counts of a wrong kind are named, before anything is written."""
    blocks = random_blocks(rng, 2, 8, 12)
    weights = k.EncoderWeights(blocks, heads=2)
    for n in (-1, 2**24 + 1):
        with pytest.raises(ValueError, match=r"n = -?\d+: expected 0 to 2\^24 rows"):
            k.encoder_saved_floats(weights, n)
    with pytest.raises(TypeError, match="weights is int: expected EncoderWeights"):
        k.encoder_saved_floats(3, 1)
    with pytest.raises(TypeError, match="block 1 qkv.bias is NoneType: expected a float32 array"):
        k.EncoderWeights([blocks[0], [None if i == 3 else a for i, a in enumerate(blocks[1])]], heads=2)
    with pytest.raises(ValueError, match="block 0 has 11 arrays: expected 12"):
        k.EncoderWeights([blocks[0][:-1]], heads=2)
    with pytest.raises(ValueError, match=r"activation = \['gelu_erf'\]"):
        k.EncoderWeights(blocks, heads=2, activation=["gelu_erf"])
    saved, dx = np.zeros(k.encoder_saved_floats(weights, 3), np.float32), np.ones((3, 8), np.float32)
    grads = [[np.ones_like(a) for a in block] for block in blocks]
    grads[1][4] = list(grads[1][4])
    with pytest.raises(TypeError, match="grads 1 proj.weight is list: expected a float32 array"):
        k.encoder_backward(weights, saved, dx, grads)
    assert (dx == 1).all()
    with pytest.raises(TypeError, match="grads 1 proj.weight is list: expected a float32 array"):
        k.EncoderGradients(weights, grads)
    with pytest.raises(ValueError, match="grads has 1 blocks: expected 2"):
        k.EncoderGradients(weights, blocks[:1])
    with pytest.raises(TypeError, match="weights is list: expected EncoderWeights"):
        k.EncoderGradients(blocks, blocks)
    fixed = [[a.copy() for a in block] for block in blocks]
    fixed[0][3].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        k.EncoderGradients(weights, fixed)
    other = random_blocks(rng, 2, 8, 16)
    others = k.EncoderGradients(k.EncoderWeights(other, heads=2), other)
    with pytest.raises(ValueError, match=r"fc1.weight \(16, 8\): expected 2, \(24, 8\), \(12, 8\)"):
        k.encoder_backward(weights, saved, dx, others)
    assert (dx == 1).all()
