"""Reference of dx_kernels.linear."""
import numpy as np

from ..below import ref as numerics
from . import activations
from .matmul import matmul


def linear_forward(x, weight, bias=None, activation=None, residual=None):
    """(y, pre, saved) for x (rows, in), weight (out, in); saved is the tanh term of gelu_tanh, else None."""
    with np.errstate(all="ignore"):
        pre = matmul(x, weight, transpose_b=True)
        pre = pre if bias is None else pre + bias
        y, saved = pre, None
        if activation == "relu":
            y = activations.relu_forward(pre)
        elif activation == "gelu_tanh":
            y, saved = activations.gelu_tanh_forward(pre)
        elif activation == "gelu_erf":
            y = activations.gelu_erf_forward(pre)
        y = y if residual is None else y + residual
    return y, pre, saved


def linear_backward(dy, x, weight):
    """(dx, dweight, dbias) for dy (rows, out), x (rows, in), weight (out, in)."""
    return matmul(dy, weight), matmul(dy, x, transpose_a=True), numerics.sum16(dy.T)
