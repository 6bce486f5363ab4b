"""Parameters and gradients: one flat float32 buffer each, with a named view per tensor in the model's fixed order.

The flat buffer makes sums over examples, norms and optimizer steps single passes in parameter order. The runtime layout
equals the container's except for char_conv.weight, which is (out, tap, channel) here, so that one convolution output is
one dot16 over (tap, channel), and (out, channel, tap) in a file.
"""
import hashlib

import numpy as np

from ..below import ieee_mode
from .config import CONV_TAPS, DocExtractConfig, TensorSpec, tensor_table

CONV = "char_conv.weight"


def runtime_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Shape of a tensor in memory."""
    return (spec.shape[0], CONV_TAPS, spec.shape[1]) if spec.name == CONV else spec.shape


class TensorSet:
    """Named float32 tensors of one model in its fixed order, over one flat buffer.

    Attributes
    ----------
    config : the model's DocExtractConfig
    specs : list of TensorSpec, the order of everything
    flat : float32 array (size,), every tensor one after the other in runtime layout
    offsets : dict name → (begin, end) in flat
    """

    def __init__(self, config: DocExtractConfig):
        self.config = config
        self.specs = tensor_table(config)
        self.offsets, self._views, at = {}, {}, 0
        for spec in self.specs:
            self.offsets[spec.name] = (at, at + spec.size)
            at += spec.size
        self.flat = np.zeros(at, np.float32)
        for spec in self.specs:
            begin, end = self.offsets[spec.name]
            self._views[spec.name] = self.flat[begin:end].reshape(runtime_shape(spec))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._views[name]

    def __iter__(self):
        return iter(spec.name for spec in self.specs)

    def __len__(self):
        return len(self.specs)

    def items(self):
        """(name, runtime view) in the fixed order."""
        return [(spec.name, self._views[spec.name]) for spec in self.specs]

    def to_container(self) -> dict[str, np.ndarray]:
        """name → contiguous array in the container's layout, in the fixed order."""
        return {name: np.ascontiguousarray(view.transpose(0, 2, 1) if name == CONV else view)
                for name, view in self.items()}

    def load_container(self, tensors: dict[str, np.ndarray]) -> None:
        """Copies container-layout tensors in. ValueError names a missing, extra, misshapen or non-float32 tensor."""
        names = [spec.name for spec in self.specs]
        for name in names:
            if name not in tensors:
                raise ValueError(f"tensor {name} is missing")
        for name in sorted(tensors):
            if name not in self.offsets:
                raise ValueError(f"tensor {name} does not belong to this model")
        for spec in self.specs:
            array = np.asarray(tensors[spec.name])
            if array.shape != spec.shape:
                raise ValueError(f"tensor {spec.name} has shape {array.shape}: expected {spec.shape}")
            if array.dtype != np.float32:
                raise ValueError(f"tensor {spec.name} has type {array.dtype}: expected float32")
        for spec in self.specs:
            array = np.asarray(tensors[spec.name])
            self._views[spec.name][...] = array.transpose(0, 2, 1) if spec.name == CONV else array

    def copy(self):
        """An independent set with the same values."""
        other = type(self)(self.config)
        other.flat[:] = self.flat
        return other

    def digest(self) -> str:
        """SHA-256 (hex) over every tensor's name, shape and container-layout bytes, in the fixed order."""
        h = hashlib.sha256()
        for name, array in self.to_container().items():
            h.update(f"{name} {'x'.join(map(str, array.shape))}\n".encode())
            h.update(array.astype("<f4").tobytes())
        return h.hexdigest()


class Parameters(TensorSet):
    """A model's weights."""


class Gradients(TensorSet):
    """Gradients of a loss with respect to every weight, laid out as Parameters."""

    def zero(self) -> None:
        self.flat[:] = 0.0

    @ieee_mode()
    def add(self, other: "Gradients") -> None:
        """Adds another set elementwise: one plain binary32 addition each, so the order of calls is the order of the
        sum (numerics.md rule 4: example order)."""
        np.add(self.flat, other.flat, out=self.flat)
