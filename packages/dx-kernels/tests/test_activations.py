import dx_kernels as k
import numpy as np
import pytest
from conftest import same_bits
from dx_kernels.ref import activations as ref

f32, f64 = np.float32, np.float64
SIZES = [0, 1, 3, 16, 17, 1000, 70001]
EDGES = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e-45, -1e-45, 1e30, -1e30, 3.4e38, -3.4e38,
                  10, -10, 15, -15, 14.2, -14.2, -14.5, -0.7517916], f32)


def values(rng, n):
    x = (rng.standard_normal(n) * 4).astype(f32)
    x[:min(n, len(EDGES))] = EDGES[:n]
    return x


def call(function, *inputs):
    """function(*inputs, out) with its output."""
    out = np.empty_like(inputs[0])
    function(*inputs, out)
    return out


def gelu_tanh(x):
    y, t = np.empty_like(x), np.empty_like(x)
    k.gelu_tanh_forward(x, y, t)
    return y, t


@pytest.mark.parametrize("n", SIZES)
def test_bits_equal_reference(path, rng, n):
    x, dy = values(rng, n), rng.standard_normal(n).astype(f32)
    for degree in (1, 2, 3):
        with k.degree(degree):
            assert same_bits(call(k.relu_forward, x), ref.relu_forward(x))
            assert same_bits(call(k.relu_backward, dy, x), ref.relu_backward(dy, x))
            assert same_bits(call(k.relu_backward, dy, ref.relu_forward(x)), ref.relu_backward(dy, x))
            y = call(k.tanh_forward, x)
            assert same_bits(y, ref.tanh_forward(x))
            assert same_bits(call(k.tanh_backward, dy, y), ref.tanh_backward(dy, y))
            y = call(k.sigmoid_forward, x)
            assert same_bits(y, ref.sigmoid_forward(x))
            assert same_bits(call(k.sigmoid_backward, dy, y), ref.sigmoid_backward(dy, y))
            y, t = gelu_tanh(x)
            want_y, want_t = ref.gelu_tanh_forward(x)
            assert same_bits(t, want_t) and same_bits(y, want_y)
            assert same_bits(call(k.gelu_tanh_forward, x), y)
            dx = np.empty_like(x)
            k.gelu_tanh_backward(dy, x, t, dx)
            assert same_bits(dx, ref.gelu_tanh_backward(dy, x, t))
            assert same_bits(call(k.gelu_erf_forward, x), ref.gelu_erf_forward(x))
            assert same_bits(call(k.gelu_erf_backward, dy, x), ref.gelu_erf_backward(dy, x))
