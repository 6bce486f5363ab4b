"""Reference of dx_kernels.pair_bias."""
import numpy as np

from .pair_mlp import pair_mlp_backward, pair_mlp_forward
from .pairs import pair_features


def pair_bias_forward(real, whole, weight1, bias1, weight2, bias2):
    """float32 (heads, n, n): the pair MLP of the pair features."""
    n = real.shape[1]
    return pair_mlp_forward(_features(real, whole), weight1, bias1, weight2, bias2)[0].reshape(len(weight2), n, n)


def pair_bias_backward(dy, real, whole, weight1, bias1, weight2):
    """(dweight1, dbias1, dweight2, dbias2); float32 arrays."""
    features = _features(real, whole)
    _, hidden = pair_mlp_forward(features, weight1, bias1, weight2, np.zeros(len(weight2), np.float32))
    return pair_mlp_backward(dy.reshape(len(dy), -1), features, hidden, weight2)


def _features(real, whole):
    features = pair_features(real, whole)
    return features.reshape(len(features), -1)
