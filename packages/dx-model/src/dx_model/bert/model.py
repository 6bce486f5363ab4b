"""A BERT-family encoder: token ids to contextual rows, and the exact adjoint (docs/encoder.md).

Rows of several sequences are packed one after the other; there is no padding inside, so a sequence's rows have the same
bits alone, in any batch, and under padding on either side. The position of a row is its rank among the visible rows of
its sequence.
"""
from dataclasses import dataclass

import numpy as np

from ..below import (
    EncoderWeights,
    embedding_sum_forward,
    ieee_mode,
    layer_norm_backward,
    layer_norm_forward,
    post_encoder_backward,
    post_encoder_forward,
    post_encoder_saved_floats,
)
from ..model_files import load_model, save_model
from ..workspace import Workspace, own_workspace
from .checkpoints import read_checkpoint
from .config import BertConfig
from .parameters import TABLES, Gradients, Parameters, initial_parameters

KIND = "bert"
BLOCK_PARTS = ("ln1", "qkv", "proj", "ln2", "fc1", "fc2")


def block_arrays(tensors) -> list[list[np.ndarray]]:
    """The 12 arrays of each block, in the order of the kernels."""
    return [[tensors[f"blocks.{i}.{part}.{kind}"] for part in BLOCK_PARTS for kind in ("weight", "bias")]
            for i in range(tensors.sizes.num_hidden_layers)]


@dataclass
class Saved:
    """What one training forward keeps for its backward; it lives in its workspace until the next pass there.

    rows : contextual rows (n, hidden_size)"""

    ids: np.ndarray
    workspace: Workspace
    rows: np.ndarray
    arrays: dict


class Bert:
    """An encoder over its parameters.

    `parameters` are used in place; after changing them call `repack()`. Several threads may run `forward` at once.
    """

    def __init__(self, parameters: Parameters):
        self.config, self.parameters = parameters.sizes, parameters
        c = parameters.sizes
        self.encoder = EncoderWeights(block_arrays(parameters), heads=c.num_attention_heads, eps=c.layer_norm_eps,
                                      activation=c.hidden_act)

    @classmethod
    def initial(cls, config: BertConfig, seed: int = 0) -> "Bert":
        """A model with the initial weights of a seed; the same everywhere."""
        return cls(initial_parameters(config, seed))

    @classmethod
    def from_pretrained(cls, path, *, digest: str | None = None) -> "Bert":
        """The model of a file of ours, or of the file model.safetensors in a folder. digest: the SHA-256 (hex) it must
        have. Raises ModelFileError, naming file and reason; OSError."""
        return cls(load_model(KIND, BertConfig, Parameters, path, digest))

    @classmethod
    def from_checkpoint(cls, folder) -> "Bert":
        """The model of a folder in Hugging Face's layout (config.json, model.safetensors). Raises ModelFileError."""
        return cls(read_checkpoint(folder)[0])

    def save_pretrained(self, folder) -> str:
        """Writes the model to model.safetensors in the folder, whole or not at all; returns the file's SHA-256 (hex).
        Equal parameters and configs give equal bytes."""
        return save_model(KIND, self.parameters, folder)

    def repack(self) -> None:
        """Takes notice of changed parameters."""
        self.encoder.repack()

    # --- forward -----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def forward(self, ids: np.ndarray, starts: np.ndarray, type_ids: np.ndarray | None = None) -> np.ndarray:
        """Contextual rows (n, hidden_size), float32, of packed sequences.

        Parameters
        ----------
        ids : (n,) token ids of the sequences, one after the other
        starts : (sequences + 1,) borders: sequence s is ids[starts[s]:starts[s + 1]], at least one id
        type_ids : (n,) token types, or None: all 0

        Raises ValueError: an id outside its table, a sequence longer than max_position_embeddings, borders that do not
        fit.
        """
        space = own_workspace()
        starts = np.ascontiguousarray(starts, np.int64)
        x = np.empty((len(ids), self.config.hidden_size), np.float32)
        self._embed(self._table_ids(ids, starts, type_ids, space), x, space, {})
        post_encoder_forward(self.encoder, x, starts)
        return x

    def forward_padded(self, input_ids, attention_mask, token_type_ids=None) -> np.ndarray:
        """Contextual rows (batch, length, hidden_size) of padded sequences, +0 where attention_mask is 0.

        The visible rows are gathered in order, so that padding on the left, on the right or in between changes no bit
        of them. Arrays (batch, length) of whole numbers; every sequence has a visible row, otherwise ValueError."""
        input_ids, mask = np.asarray(input_ids), np.asarray(attention_mask) != 0
        if input_ids.ndim != 2 or mask.shape != input_ids.shape:
            raise ValueError(f"attention_mask has shape {mask.shape}: expected that of input_ids {input_ids.shape}, "
                             "(batch, length)")
        counts = np.count_nonzero(mask, axis=1)
        for row in np.flatnonzero(counts == 0):
            raise ValueError(f"attention_mask[{row}] is all 0: expected at least one visible row")
        starts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])  # exact: whole numbers
        types = None if token_type_ids is None else np.asarray(token_type_ids)[mask]
        rows = np.zeros((*mask.shape, self.config.hidden_size), np.float32)
        rows[mask] = self.forward(input_ids[mask], starts, types)
        return rows

    @ieee_mode()
    def forward_saved(self, ids: np.ndarray, workspace: Workspace, type_ids: np.ndarray | None = None) -> Saved:
        """As `forward` of one sequence, with the same bits, keeping what `backward` needs."""
        n, d, keep = len(ids), self.config.hidden_size, {}
        keep["xhat"], keep["inv"] = workspace.take("xhat", (n, d)), workspace.take("inv", (n,))
        keep["encoder"] = workspace.take("encoder", (post_encoder_saved_floats(self.encoder, n),))
        table_ids = self._table_ids(ids, np.array([0, n], np.int64), type_ids, workspace).copy()
        x = workspace.take("rows", (n, d))
        self._embed(table_ids, x, workspace, keep)
        post_encoder_forward(self.encoder, x, None, keep["encoder"])
        return Saved(table_ids, workspace, x, keep)

    def _table_ids(self, ids, starts, type_ids, space):
        """(3, n) int32: for each row its id in the tables of TABLES."""
        n, most = len(ids), self.config.max_position_embeddings
        found = space.take("table_ids", (3, n), np.int32)
        for row, name, values in ((0, "ids", ids), (1, "type_ids", np.zeros(n, np.int32) if type_ids is None else
                                                    type_ids)):
            values = np.asarray(values)
            size = len(self.parameters[f"embeddings.{TABLES[row]}"])
            if values.shape != (n,) or values.dtype.kind not in "iu":
                raise ValueError(f"{name} has shape {values.shape}, type {values.dtype}: expected ({n},) whole numbers")
            wrong = np.flatnonzero((values < 0) | (values >= size))
            if len(wrong):
                raise ValueError(f"{name}[{wrong[0]}] = {values[wrong[0]]}: expected 0 to {size - 1}")
            found[row] = values
        if starts.ndim != 1 or len(starts) < 1 or starts[0] != 0 or starts[-1] != n:
            raise ValueError(f"starts: expected borders from 0 to {n}")
        for s, (first, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            if end - first > most:
                raise ValueError(f"sequence {s} has {end - first} rows: expected at most {most} (choose what to do "
                                 "with longer ones: truncate or use windows)")
            if end <= first:
                raise ValueError(f"starts[{s + 1}] = {end}: expected more than {first}: a sequence has a row or more")
            found[2, first:end] = np.arange(end - first, dtype=np.int32)
        return found

    def _embed(self, table_ids, x, space, keep):
        p = self.parameters
        total = space.take("embedded", x.shape)
        embedding_sum_forward([p[f"embeddings.{name}"] for name in TABLES], table_ids, total)
        layer_norm_forward(total, p["embeddings.norm.weight"], p["embeddings.norm.bias"], x, keep.get("xhat"),
                           keep.get("inv"), eps=self.config.layer_norm_eps)

    # --- backward ----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def backward(self, saved: Saved, drows: np.ndarray, gradients: Gradients, *, embeddings: bool = True) -> None:
        """Gradients of a loss from that of the contextual rows (n, hidden_size): assigns every tensor of `gradients`
        but the pooler's, which belongs to the readout; without `embeddings` those of the blocks only."""
        p, g, a = self.parameters, gradients, saved.arrays
        dx = np.array(drows, np.float32, order="C")
        post_encoder_backward(self.encoder, a["encoder"], dx, block_arrays(g))
        if not embeddings:
            return
        layer_norm_backward(dx, a["xhat"], a["inv"], p["embeddings.norm.weight"], dx, g["embeddings.norm.weight"],
                            g["embeddings.norm.bias"])
        for row, name in enumerate(TABLES):
            g.scatter(name, dx, saved.ids[row])
