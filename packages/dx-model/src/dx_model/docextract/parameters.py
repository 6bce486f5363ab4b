"""Parameters and gradients of docextract.

The runtime layout equals the container's except for char_conv.weight, which is (out, tap, channel) here, so that one
convolution output is one dot16 over (tap, channel), and (out, channel, tap) in a file.
"""
import numpy as np

from ..below import ieee_mode
from ..tensors import GradientSet, TensorSet
from .config import DocExtractConfig, tensor_table

CONV = "char_conv.weight"


class _Tensors(TensorSet):
    table = staticmethod(tensor_table)

    @staticmethod
    def to_runtime(name, array):
        return array.transpose(0, 2, 1) if name == CONV else array

    to_file = to_runtime


class Parameters(_Tensors):
    """A model's weights."""


class Gradients(_Tensors, GradientSet):
    """Gradients of a loss with respect to every weight, laid out as Parameters."""

    def __init__(self, config: DocExtractConfig):
        super().__init__(config)
        self.encoder = None  # the model's EncoderGradients over this set, once it needs it
        self._blocks = self._range([spec.name for spec in self.specs if spec.name.startswith("blocks.")])
        self._heads = self._range([spec.name for spec in self.specs if spec.group == "head"])

    def _range(self, names: list[str]) -> tuple[int, int]:
        """Where tensors that follow one another lie in the flat buffer."""
        return (self.offsets[names[0]][0], self.offsets[names[-1]][1]) if names else (0, 0)

    @ieee_mode()
    def add_rest(self, other: "Gradients", heads_only: bool = False) -> None:
        """`add` of every tensor but the encoder's blocks, or of the heads' tensors only."""
        ranges = [self._heads] if heads_only else [(0, self._blocks[0]), (self._blocks[1], len(self.flat))]
        for begin, end in ranges:
            np.add(self.flat[begin:end], other.flat[begin:end], out=self.flat[begin:end])
