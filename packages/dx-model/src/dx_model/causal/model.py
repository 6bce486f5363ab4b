"""The small token encoder: embeddings, pre-norm blocks, final layer norm; forward and adjoint for one sequence."""
import hashlib

import numpy as np

from ..below import embedding_backward, embedding_sum_forward, ieee_mode, normal32, substream
from ..canonical_json import canonical
from ..readout.errors import require
from .config import CausalConfig
from .rows import Blocks

EMBEDDINGS = ("token_emb.weight", "position_emb.weight")


def initial_tensors(table: dict[str, tuple], seed: int = 0) -> dict[str, np.ndarray]:
    """name → float32 array for a table name → (shape, start), e.g. CausalConfig.tensors(); normal numbers come from the
    stream substream(seed, name), so a tensor depends on seed, name and shape alone."""
    tensors = {}
    for name, (shape, start) in table.items():
        tensors[name] = np.zeros(shape, np.float32)
        if start == "ones":
            tensors[name][...] = 1.0
        elif start != "zeros":
            normal32(substream(seed, name), tensors[name], deviation=start)
    return tensors


class CausalEncoder:
    """Contextual rows of one sequence of token ids.

    config : CausalConfig without mixtures (MixtureEncoder adds them) · tensors : name → float32 array as
    config.tensors() says; kept and read, call repack() after changing them in place

    A sequence runs alone and without padding, so its rows cannot depend on what it is batched with; under causal
    visibility row t is a function of tokens 0..t, bit for bit.
    """

    def __init__(self, config: CausalConfig, tensors: dict[str, np.ndarray]):
        table = config.tensors()
        for name, (shape, _) in table.items():
            require(name in tensors, f"tensors.{name}", None, f"float32 {shape}")
            array = tensors[name]
            require(array.shape == shape and array.dtype == np.float32, f"tensors.{name}",
                    (array.shape, array.dtype.name), f"float32 {shape}")
        for name in tensors:
            require(name in table, f"tensors.{name}", "there", "no such tensor in this model")
        self.config, self.tensors, self.blocks = config, tensors, Blocks(config, tensors)

    def part(self, first: int = 0, last: int | None = None, norm: bool = True) -> Blocks:
        """Some of the blocks, e.g. to put something between two of them."""
        return Blocks(self.config, self.tensors, first, last, norm)

    def repack(self) -> None:
        """Takes in the tensors' present values."""
        self.blocks.repack()

    def digest(self) -> str:
        """SHA-256 (hex) over configuration, names and bytes: the identity of the encoder, visibility included."""
        h = hashlib.sha256(canonical(self.config.to_json()))
        for name in self.config.tensors():
            h.update(name.encode() + b"\0" + self.tensors[name].astype("<f4").tobytes())
        return h.hexdigest()

    @ieee_mode()
    def embed(self, ids) -> np.ndarray:
        """float32 (S, hidden): token plus position rows. ReadoutError: no token, or more than there are positions."""
        ids = np.asarray(ids, np.int32)
        require(ids.ndim == 1 and 0 < len(ids) <= self.config.positions, "ids", ids.shape,
                f"1 to {self.config.positions} token ids")
        x = np.empty((len(ids), self.config.hidden), np.float32)
        places = np.arange(len(ids), dtype=np.int32)
        embedding_sum_forward([self.tensors[name] for name in EMBEDDINGS], np.stack([ids, places]), x)
        return x

    def forward(self, ids) -> np.ndarray:
        """float32 (S, hidden): the contextual rows, after the final layer norm."""
        return self.blocks.forward(self.embed(ids))

    def forward_saved(self, ids):
        """(rows, what backward needs); the bits of forward."""
        return self.blocks.forward_saved(self.embed(ids))

    @ieee_mode()
    def backward(self, ids, kept, drows: np.ndarray) -> dict[str, np.ndarray]:
        """name → gradient of every tensor, in the fixed order, from the gradient of the rows."""
        gradients, dx = self.blocks.backward(kept, drows)
        return self.embedding_gradients(ids, dx) | gradients

    def embedding_gradients(self, ids, dx: np.ndarray) -> dict[str, np.ndarray]:
        """The embeddings' part of `backward`, from the gradient of the embedded rows."""
        ids, found = np.asarray(ids, np.int32), {}
        for name, rows in zip(EMBEDDINGS, (ids, np.arange(len(ids), dtype=np.int32))):
            found[name] = np.empty_like(self.tensors[name])
            embedding_backward(dx, rows, found[name])
        return found
