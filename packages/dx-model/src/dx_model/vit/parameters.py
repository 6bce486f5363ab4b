"""Parameters and gradients of a vision transformer; q, k and v of a block also as one matrix."""
from ..below import normal32, substream
from ..tensors import GradientSet, TensorSet
from .config import ViTConfig, tensor_table


def _join(tensors, kind):
    """The views blocks.{i}.qkv.{kind} over q, k and v, which lie next to each other."""
    views, d = {}, tensors.config.hidden_size
    for i in range(tensors.config.num_hidden_layers):
        begin, end = tensors.offsets[f"blocks.{i}.q.{kind}"][0], tensors.offsets[f"blocks.{i}.v.{kind}"][1]
        views[f"blocks.{i}.qkv.{kind}"] = tensors.flat[begin:end].reshape(3 * d, -1)
    return views


class _Tensors(TensorSet):
    """Besides the tensors of the table, `[...]` gives blocks.{i}.qkv.weight (3 d, d) and blocks.{i}.qkv.bias (3 d,):
    views of q, k and v one after the other."""

    table = staticmethod(tensor_table)

    def __init__(self, config: ViTConfig):
        super().__init__(config)
        self._views |= _join(self, "weight")
        self._views |= {name: view.reshape(-1) for name, view in _join(self, "bias").items()}


class Parameters(_Tensors):
    """A model's weights, with blocks.{i}.qkv as views."""


class Gradients(_Tensors, GradientSet):
    """Gradients of a loss with respect to every weight, laid out as Parameters."""


def initial_parameters(config: ViTConfig, seed: int = 0) -> Parameters:
    """Parameters as docs/vit.md says: each tensor's values are the normal numbers of the stream `substream(seed, name)`
    times the tensor's deviation. A tensor depends on seed, name and shape alone. seed: 0 to 2**64 - 1."""
    parameters = Parameters(config)
    for spec in parameters.specs:
        if spec.init == "ones":
            parameters[spec.name][...] = 1.0
        elif spec.init != "zeros":
            normal32(substream(seed, spec.name), parameters[spec.name], deviation=spec.init)
    return parameters
