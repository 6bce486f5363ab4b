"""binary32 bit by bit: every primitive one rounding at a time, in the kernels' order, by the packages' readable
references. With it the compositions of `ops` must give the bits of the compiled kernels."""
import numpy as np

from ...below import numerics_ref, references
from .arrays import Arrays

f32 = np.float32
AT_ONCE = 2**20  # products: what bounds the memory of a matrix product
SMALLEST_NORMAL = f32(2.0**-126)
CONSTANTS = {"one": f32(1), "half": f32(0.5), "three": f32(3)}


class Emulated(Arrays):
    """float32 arrays; sums are dot16 and sum16 of emulated fused multiply-adds."""

    def __init__(self, config, parameters):
        super().__init__(config, parameters)
        self.activations = references().activations
        self.constants = CONSTANTS | {"eps": f32(config.layer_norm_eps), "c0": self.activations.GELU_C0,
                                      "c1": self.activations.GELU_C1}

    def constant(self, name):
        return self.constants[name]

    def div(self, a, b):
        return a / b

    def over(self, x, n):
        return x / f32(n)

    def root(self, n):
        return np.sqrt(f32(n))

    def inverse_root(self, x):
        return f32(1) / np.sqrt(x)

    def exp(self, x):
        return self.normal(numerics_ref.exp32(x))

    def tanh(self, x):
        return numerics_ref.tanh32(x)

    def shifted(self, x):
        return x - np.max(x, axis=-1, keepdims=True)

    def normal(self, x):
        return np.where(x < SMALLEST_NORMAL, f32(0), x)

    def where_not_zero(self, s, x):
        return np.where(s == 0, f32(0), x)

    def matmul(self, a, b, transpose_a=False, transpose_b=False):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        b = b if transpose_b else np.swapaxes(b, -1, -2)
        rows = max(1, AT_ONCE // max(1, b.size))
        parts = [numerics_ref.dot16(a[..., i:i + rows, None, :], b[..., None, :, :])
                 for i in range(0, max(1, a.shape[-2]), rows)]
        return np.concatenate(parts, axis=-2)

    def row_sum(self, x):
        return numerics_ref.sum16(x)

    def row_dot(self, a, b):
        return numerics_ref.dot16(a, b)

    def gelu(self, x):
        if self.config.hidden_act == "gelu_erf":  # the kernel works in binary64 and rounds once
            return self.activations.gelu_erf_forward(x), (x, None)
        return super().gelu(x)

    def gelu_backward(self, dy, saved):
        if self.config.hidden_act == "gelu_erf":
            return self.activations.gelu_erf_backward(dy, saved[0])
        return super().gelu_backward(dy, saved)

    def cross_entropy_gradient(self, logits, label):
        """In binary64, rounded once, as the kernel."""
        reference = references().cross_entropy
        return reference.cross_entropy_backward(logits, np.array([label]))
