import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits, torch
from dx_kernels.ref import pair_mlp as ref

f32 = np.float32
# pairs, inputs, units, heads
SHAPES = [(0, 3, 4, 2), (1, 1, 1, 1), (9, 5, 7, 3), (100, 16, 32, 8), (257, 17, 33, 9), (529, 16, 32, 8),
          (1600, 12, 6, 4),
          (300, 20, 32, 4), (273, 20, 7, 6), (40, 20, 5, 8)]  # shapes with loops of their own


def sample(rng, pairs, inputs, units, heads):
    shapes = ((inputs, pairs), (units, inputs), (units,), (heads, units), (heads,), (heads, pairs))
    return [rng.standard_normal(s).astype(f32) for s in shapes]


def empty_gradients(w1, w2):
    return [np.full(s, np.nan, f32) for s in (w1.shape, w1.shape[:1], w2.shape, w2.shape[:1])]


@pytest.mark.parametrize("shape", SHAPES)
def test_bits_equal_reference(path, rng, shape):
    x, w1, b1, w2, b2, dy = sample(rng, *shape)
    want_y, want_hidden = ref.pair_mlp_forward(x, w1, b1, w2, b2)
    want = ref.pair_mlp_backward(dy, x, want_hidden, w2)
    x.setflags(write=False)
    for degree in (1, 2, 3):
        with k.degree(degree):
            y, alone, hidden = np.empty_like(want_y), np.empty_like(want_y), np.empty_like(want_hidden)
            k.pair_mlp_forward(x, w1, b1, w2, b2, y, hidden)
            k.pair_mlp_forward(x, w1, b1, w2, b2, alone)
            assert same_bits(y, want_y) and same_bits(alone, want_y) and same_bits(hidden, want_hidden)
            for saved in (hidden, None):
                got = empty_gradients(w1, w2)
                k.pair_mlp_backward(dy, x, saved, w1, b1, w2, *got)
                assert all(same_bits(a, b) for a, b in zip(got, want, strict=True))


def test_degree_does_not_show_in_a_large_page(path, rng):
    x, w1, b1, w2, b2, dy = sample(rng, 40 * 40 + 3, 16, 32, 8)
    results = []
    for degree in (1, 2, 3, 7):
        with k.degree(degree):
            y, got = np.empty((8, x.shape[1]), f32), empty_gradients(w1, w2)
            k.pair_mlp_forward(x, w1, b1, w2, b2, y)
            k.pair_mlp_backward(dy, x, None, w1, b1, w2, *got)
            results.append([y, *got])
    for other in results[1:]:
        assert all(same_bits(a, b) for a, b in zip(results[0], other, strict=True))


def test_agrees_with_torch_in_float64(rng):
    x, w1, b1, w2, b2, dy = sample(rng, 3000, 16, 32, 8)
    p = [torch.tensor(a.astype(np.float64), requires_grad=True) for a in (w1, b1, w2, b2)]
    z = p[2] @ torch.relu(p[0] @ torch.tensor(x.astype(np.float64)) + p[1][:, None]) + p[3][:, None]
    (z * torch.tensor(dy.astype(np.float64))).sum().backward()
    y, got = np.empty_like(dy), empty_gradients(w1, w2)
    k.pair_mlp_forward(x, w1, b1, w2, b2, y)
    k.pair_mlp_backward(dy, x, None, w1, b1, w2, *got)
    assert np.abs(y - z.detach().numpy()).max() < 1e-4
    for gradient, parameter in zip(got, p, strict=True):
        assert np.abs(gradient - parameter.grad.numpy()).max() < 1e-5 * np.abs(gradient).max()


@pytest.mark.parametrize("inputs, heads", [(20, 4), (20, 6), (20, 8), (3, 5), (16, 16), (24, 1)])
def test_zeros_denormals_infinities(path, rng, inputs, heads):
    """Sums of zeros of both signs and of products that round to -0 come out as if every padding were executed."""
    specials = [np.array(v, f32) for v in ([0.0, -0.0], [-1e-30, -0.0], [-1e-30, 1e-30, 0.0, -0.0, -1e-45, 1.0],
                                           [np.inf, -np.inf, np.nan, 0.0, 1.0, -2e38, 1.0, -1.0])]
    for values in specials:
        x, w1, b1, w2, b2, dy = (rng.choice(values, a.shape) for a in sample(rng, 70, inputs, 9, heads))
        b1[:3] = 1.0  # some hidden values above zero
        with np.errstate(invalid="ignore"):
            want_y, want_hidden = ref.pair_mlp_forward(x, w1, b1, w2, b2)
            want = ref.pair_mlp_backward(dy, x, want_hidden, w2)
        y, hidden, got = np.empty_like(want_y), np.empty_like(want_hidden), empty_gradients(w1, w2)
        k.pair_mlp_forward(x, w1, b1, w2, b2, y, hidden)
        k.pair_mlp_backward(dy, x, None, w1, b1, w2, *got)
        assert same_bits(y, want_y) and same_bits(hidden, want_hidden)
        assert all(same_bits(a, b) for a, b in zip(got, want, strict=True))


def test_nan_stays_in_its_pair(path):
    rng = np.random.default_rng(5)
    x, w1, b1, w2, b2, dy = sample(rng, 300, 5, 6, 3)
    clean, y = np.empty_like(dy), np.empty_like(dy)
    k.pair_mlp_forward(x, w1, b1, w2, b2, clean)
    x[2, 17], x[0, 299] = np.nan, np.inf
    k.pair_mlp_forward(x, w1, b1, w2, b2, y)
    others = np.ones(300, bool)
    others[[17, 299]] = False
    assert np.isnan(y[:, 17]).all() and same_bits(y[:, others], clean[:, others])


def test_wrong_arguments_are_named():
    x, w1, b1, w2, b2, dy = sample(np.random.default_rng(0), 4, 3, 5, 2)
    y, hidden, g = np.empty_like(dy), np.empty((5, 4), f32), empty_gradients(w1, w2)
    for call, message in (
            (lambda: k.pair_mlp_forward(x[:2].copy(), w1, b1, w2, b2, y), r"weight1 has shape \(5, 3\): exp"),
            (lambda: k.pair_mlp_forward(x, w1, b2, w2, b2, y), r"bias1 has shape \(2,\): expected \(5,\)"),
            (lambda: k.pair_mlp_forward(x, w1, b1, w1, b2, y), r"weight2 has shape \(5, 3\): expected \(5, 5\)"),
            (lambda: k.pair_mlp_forward(x, w1, b1, w2, b1, y), r"bias2 has shape \(5,\): expected \(2,\)"),
            (lambda: k.pair_mlp_forward(x, w1, b1, w2, b2, hidden), r"y has shape \(5, 4\): expected \(2, 4\)"),
            (lambda: k.pair_mlp_forward(x, w1, b1, w2, b2, y, y), r"hidden has shape \(2, 4\): expected \(5, 4\)"),
            (lambda: k.pair_mlp_forward(x[:0], w1, b1, w2, b2, y), "the layers have 0 inputs"),
            (lambda: k.pair_mlp_backward(hidden, x, None, w1, b1, w2, *g), r"dy has shape \(5, 4\)"),
            (lambda: k.pair_mlp_backward(dy, x, dy, w1, b1, w2, *g), r"hidden has shape \(2, 4\)"),
            (lambda: k.pair_mlp_backward(dy, x, None, w1, b1, w2, g[2], *g[1:]), r"dweight1 has shape \(2, 5\)")):
        with pytest.raises(ValueError, match=message):
            call()
