"""Parameters and gradients of a BERT-family encoder; q, k and v of a block also as one matrix."""
import numpy as np

from ..below import embedding_backward, ieee_mode, normal32, substream
from ..tensors import GradientSet, TensorSet
from .config import BertConfig, tensor_table

TABLES = ("word", "token_type", "position")  # in the order they are added


class BertTensors(TensorSet):
    """Besides the tensors of the table, `[...]` gives blocks.{i}.qkv.weight (3 d, d) and blocks.{i}.qkv.bias (3 d,):
    views of q, k and v one after the other. The config is the encoder's, or has it as `encoder`."""

    table = staticmethod(tensor_table)

    def __init__(self, config):
        super().__init__(config)
        d = self.sizes.hidden_size
        for i in range(self.sizes.num_hidden_layers):
            for kind, shape in (("weight", (3 * d, d)), ("bias", (3 * d,))):
                if f"blocks.{i}.q.{kind}" in self.offsets:
                    begin, end = self.offsets[f"blocks.{i}.q.{kind}"][0], self.offsets[f"blocks.{i}.v.{kind}"][1]
                    self._views[f"blocks.{i}.qkv.{kind}"] = self.flat[begin:end].reshape(shape)

    @property
    def sizes(self) -> BertConfig:
        """The encoder's config."""
        return getattr(self.config, "encoder", self.config)


class Parameters(BertTensors):
    """An encoder's weights, with blocks.{i}.qkv as views."""


class Gradients(BertTensors, GradientSet):
    """Gradients of a loss with respect to every weight, laid out as Parameters."""

    def scatter(self, name: str, drows: np.ndarray, ids: np.ndarray) -> None:
        """Assigns the gradient of embeddings.{name}: the rows of drows added by id, in row order, from +0."""
        embedding_backward(drows, ids, self[f"embeddings.{name}"])


class RowGradients(Gradients):
    """Gradients whose embedding tables cost what their used rows cost: the other rows are +0 and are neither written
    nor read. The bits are those of whole tables: a row's sum starts at +0, so it is never -0, and adding +0 to it
    changes nothing. Of the tables only `scatter` may write."""

    def __init__(self, config):
        super().__init__(config)
        self._used = {name: np.zeros(len(self[f"embeddings.{name}"]), np.bool_) for name in TABLES
                      if f"embeddings.{name}" in self.offsets}
        ends = [self.offsets[f"embeddings.{name}"][1] for name in self._used]
        self._rest = max(ends, default=0)  # the tables come first in the order of tensors

    def scatter(self, name, drows, ids):
        table, used = self[f"embeddings.{name}"], self._used[name]
        table[used] = 0.0
        used[:] = False
        used[ids] = True
        rows = np.flatnonzero(used)
        found = np.empty((len(rows), table.shape[1]), np.float32)
        embedding_backward(drows, np.searchsorted(rows, ids).astype(np.int32), found)
        table[rows] = found

    @ieee_mode()
    def add(self, other: "RowGradients") -> None:
        for name, used in self._used.items():
            rows = np.flatnonzero(other._used[name])
            self[f"embeddings.{name}"][rows] += other[f"embeddings.{name}"][rows]
            used |= other._used[name]
        np.add(self.flat[self._rest:], other.flat[self._rest:], out=self.flat[self._rest:])


def initial_parameters(config: BertConfig, seed: int = 0) -> Parameters:
    """Parameters whose tensors hold the normal numbers of the stream `substream(seed, name)` times the tensor's
    deviation. A tensor depends on seed, name and shape alone. seed: 0 to 2**64 - 1."""
    parameters = Parameters(config)
    fill(parameters, seed)
    return parameters


def fill(parameters: TensorSet, seed: int) -> None:
    """Initial values of every tensor of a set."""
    for spec in parameters.specs:
        if spec.init == "ones":
            parameters[spec.name][...] = 1.0
        elif spec.init != "zeros":
            normal32(substream(seed, spec.name), parameters[spec.name], deviation=spec.init)
