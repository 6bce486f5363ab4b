"""Reference of dx_kernels.pair_mlp."""
import numpy as np

from ..below import ref as numerics
from .activations import relu_backward, relu_forward

f32 = np.float32


def _product(a, b):
    """a (rows, k) times b (k, columns), one dot16 over k an element."""
    return numerics.dot16(a[:, None, :], b.T[None, :, :])


def pair_mlp_forward(features, weight1, bias1, weight2, bias2):
    """(y, hidden) for features (inputs, pairs); float32 arrays."""
    with np.errstate(all="ignore"):
        hidden = relu_forward(_product(weight1, features) + bias1[:, None])
        return _product(weight2, hidden) + bias2[:, None], hidden


def pair_mlp_backward(dy, features, hidden, weight2):
    """(dweight1, dbias1, dweight2, dbias2); float32 arrays."""
    dh = relu_backward(_product(weight2.T, dy), hidden)
    return _product(dh, features.T), numerics.sum16(dh), _product(dy, hidden.T), numerics.sum16(dy)
