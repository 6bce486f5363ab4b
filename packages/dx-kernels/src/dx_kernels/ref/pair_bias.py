"""Reference of dx_kernels.pair_bias."""
from .pair_mlp import pair_mlp_forward
from .pairs import pair_features


def pair_bias_forward(real, whole, weight1, bias1, weight2, bias2):
    """float32 (heads, n, n): the pair MLP of the pair features."""
    features = pair_features(real, whole)
    n = features.shape[1]
    y, _ = pair_mlp_forward(features.reshape(len(features), n * n), weight1, bias1, weight2, bias2)
    return y.reshape(len(weight2), n, n)
