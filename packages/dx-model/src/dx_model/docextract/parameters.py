"""Parameters and gradients of docextract.

The runtime layout equals the container's except for char_conv.weight, which is (out, tap, channel) here, so that one
convolution output is one dot16 over (tap, channel), and (out, channel, tap) in a file.
"""
from ..tensors import GradientSet, TensorSet
from .config import tensor_table

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
