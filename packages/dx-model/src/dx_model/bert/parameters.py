"""Parameters and gradients of a BERT-family encoder; q, k and v of a block also as one matrix."""
from ..below import normal32, substream
from ..tensors import GradientSet, TensorSet
from .config import BertConfig, tensor_table


class _Tensors(TensorSet):
    """Besides the tensors of the table, `[...]` gives blocks.{i}.qkv.weight (3 d, d) and blocks.{i}.qkv.bias (3 d,):
    views of q, k and v one after the other."""

    table = staticmethod(tensor_table)

    def __init__(self, config: BertConfig):
        super().__init__(config)
        d = config.hidden_size
        for i in range(config.num_hidden_layers):
            for kind, shape in (("weight", (3 * d, d)), ("bias", (3 * d,))):
                begin, end = self.offsets[f"blocks.{i}.q.{kind}"][0], self.offsets[f"blocks.{i}.v.{kind}"][1]
                self._views[f"blocks.{i}.qkv.{kind}"] = self.flat[begin:end].reshape(shape)


class Parameters(_Tensors):
    """An encoder's weights, with blocks.{i}.qkv as views."""


class Gradients(_Tensors, GradientSet):
    """Gradients of a loss with respect to every weight, laid out as Parameters."""


def initial_parameters(config: BertConfig, seed: int = 0) -> Parameters:
    """Parameters whose tensors hold the normal numbers of the stream `substream(seed, name)` times the tensor's
    deviation. A tensor depends on seed, name and shape alone. seed: 0 to 2**64 - 1."""
    parameters = Parameters(config)
    for spec in parameters.specs:
        if spec.init == "ones":
            parameters[spec.name][...] = 1.0
        elif spec.init != "zeros":
            normal32(substream(seed, spec.name), parameters[spec.name], deviation=spec.init)
    return parameters
