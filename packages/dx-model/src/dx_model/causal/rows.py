"""Pre-norm blocks over rows, with or without a final layer norm: forward and adjoint."""
import numpy as np

from ..below import (EncoderWeights, encoder_backward, encoder_forward, encoder_saved_floats, ieee_mode,
                     layer_norm_backward, layer_norm_forward)
from .config import CausalConfig

BLOCK = ("ln1.weight", "ln1.bias", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias", "ln2.weight", "ln2.bias",
         "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")


def block_tensors(config: CausalConfig, first: int = 0, last: int | None = None) -> list[str]:
    """Names of the tensors of blocks first up to last (exclusive; None: all)."""
    last = config.blocks if last is None else last
    return [f"blocks.{i}.{part}" for i in range(first, last) for part in BLOCK]


class Blocks:
    """Some of an encoder's blocks over rows (S, hidden).

    config : sizes and visibility · tensors : name → float32 array; those of the blocks are kept and read, call repack()
    after changing them in place · first, last : which blocks (last exclusive, None: all) · norm : with the final layer
    norm ln.weight, ln.bias
    """

    def __init__(self, config: CausalConfig, tensors, first: int = 0, last: int | None = None, norm: bool = True):
        self.config, self.names = config, block_tensors(config, first, last)
        self._ln = (tensors["ln.weight"], tensors["ln.bias"]) if norm else None
        arrays = [tensors[name] for name in self.names]
        self._shapes = [a.shape for a in arrays]
        self._weights = EncoderWeights([arrays[i:i + len(BLOCK)] for i in range(0, len(arrays), len(BLOCK))],
                                       heads=config.heads, eps=config.eps)

    def repack(self) -> None:
        """Takes in the tensors' present values."""
        self._weights.repack()

    @ieee_mode()
    def forward(self, x: np.ndarray) -> np.ndarray:
        """float32 (S, hidden) from rows (S, hidden)."""
        return self._norm(self._stack(x, None))[0]

    @ieee_mode()
    def forward_saved(self, x: np.ndarray):
        """(rows, what backward needs); the bits of forward."""
        saved = np.empty(encoder_saved_floats(self._weights, len(x)), np.float32)
        y, *kept = self._norm(self._stack(x, saved))
        return y, (saved, *kept)

    def _stack(self, x, saved):
        x = x.copy()
        encoder_forward(self._weights, x, None, saved, causal=self.config.visibility == "causal")
        return x

    def _norm(self, x):
        if self._ln is None:
            return x, None, None
        y, xhat, inv = np.empty_like(x), np.empty_like(x), np.empty(len(x), np.float32)
        layer_norm_forward(x, *self._ln, y, eps=self.config.eps, xhat=xhat, inv=inv)
        return y, xhat, inv

    @ieee_mode()
    def backward(self, kept, drows: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """(name → gradient of every tensor, gradient of the input rows) from the gradient of the output rows."""
        saved, xhat, inv = kept
        gradients = {name: np.empty(shape, np.float32) for name, shape in zip(self.names, self._shapes)}
        dx = np.array(drows, np.float32, order="C")
        if self._ln is not None:
            drows, dx = dx, np.empty_like(dx)
            dweight, dbias = (np.empty_like(v) for v in self._ln)
            layer_norm_backward(drows, xhat, inv, self._ln[0], dx, dweight, dbias)
        grads = list(gradients.values())
        encoder_backward(self._weights, saved, dx, [grads[i:i + len(BLOCK)] for i in range(0, len(grads), len(BLOCK))])
        return gradients | ({} if self._ln is None else {"ln.weight": dweight, "ln.bias": dbias}), dx
