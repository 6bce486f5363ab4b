"""docextract-v0: forward for inference and for training, and the exact adjoint (docs/docextract-v0.md)."""
from dataclasses import dataclass

import numpy as np

from ..below import (
    EncoderGradients,
    EncoderWeights,
    PackedMatrix,
    char_conv_backward,
    char_conv_forward,
    embedding_backward,
    embedding_sum_forward,
    encoder_backward,
    encoder_forward,
    encoder_saved_floats,
    ieee_mode,
    layer_norm_backward,
    layer_norm_forward,
    linear_backward,
    linear_forward,
    pair_bias_backward,
    pair_bias_forward,
    pair_features,
    pointer_backward,
    pointer_forward,
)
from ..workspace import Workspace, own_workspace
from .config import POSITION_TABLES, DocExtractConfig
from .initial import initial_parameters
from .model_file import load_parameters, save_parameters
from .parameters import Gradients, Parameters

BLOCK_PARTS = ("ln1", "qkv", "proj", "ln2", "fc1", "fc2")
HEADS = ("tag", "role", "doc", "pointer")
_LINEAR = {"tag": "tag_head", "role": "role_head", "doc": "doc_head"}


def _block_tensors(tensors) -> list:
    """Each block's arrays in the order of the encoder kernels."""
    return [[tensors[f"blocks.{i}.{part}.{kind}"] for part in BLOCK_PARTS for kind in ("weight", "bias")]
            for i in range(tensors.config.num_hidden_layers)]


@dataclass
class Outputs:
    """Logits of one window; a head that was not asked for is None.

    tag (n, 1 + 2 fields), role (n, 1 + 2 roles), doc (doc types,), item and key_value (n, n): word i points at word j.
    All float32.
    """

    tag: np.ndarray | None = None
    role: np.ndarray | None = None
    doc: np.ndarray | None = None
    item: np.ndarray | None = None
    key_value: np.ndarray | None = None


@dataclass
class Saved:
    """What one training forward keeps for its backward; it lives in its workspace until the next pass there."""

    page: object
    workspace: Workspace
    heads: tuple[str, ...]
    outputs: Outputs
    arrays: dict


class DocExtract:
    """A docextract model over its parameters.

    `parameters` are used in place; after changing them call `repack()`. Several threads may run `forward` at once.
    """

    def __init__(self, parameters: Parameters):
        self.config, self.parameters = parameters.config, parameters
        p, c = parameters, parameters.config
        self.encoder = EncoderWeights(_block_tensors(p), heads=c.num_attention_heads, eps=c.layer_norm_eps)
        names = ("char_proj", "feat_proj", "tag_head", "role_head", "doc_head", "rel_q", "rel_k")
        self._packed = {name: PackedMatrix(p[f"{name}.weight"], transpose_b=True) for name in names}

    @classmethod
    def initial(cls, config: DocExtractConfig, seed: int = 0) -> "DocExtract":
        """A model with the initial weights of a seed; the same everywhere."""
        return cls(initial_parameters(config, seed))

    @classmethod
    def from_pretrained(cls, path, *, fields=None, digest: str | None = None) -> "DocExtract":
        """The model of a file, or of the file model.safetensors in a folder.

        fields: the names that the caller expects, in order · digest: the SHA-256 (hex) that the file must have

        Raises ModelFileError, naming file and reason, for a file that is damaged, foreign, newer, or not what is
        expected; OSError. Nothing is filled in: a file lacking anything is refused. Nothing in it is executed.
        """
        return cls(load_parameters(path, fields, digest))

    def save_pretrained(self, folder) -> str:
        """Writes the model to model.safetensors in the folder, which is made if need be, whole or not at all; returns
        the file's SHA-256 (hex). Equal parameters and configs give equal bytes."""
        return save_parameters(self.parameters, folder)

    def repack(self) -> None:
        """Takes notice of changed parameters."""
        self.encoder.repack()
        for packed in self._packed.values():
            packed.repack()

    # --- forward -----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def forward(self, page, heads=("tag", "role", "doc")) -> Outputs:
        """Logits of one encoded window for the named heads ("tag", "role", "doc", "pointer").

        page: an EncodedPage. ValueError when its sizes are not the model's. A window without words gives empty logits.
        """
        space = own_workspace()
        x = self._encode(page, space, None)
        return self._heads(x, heads, lambda name, shape: np.empty(shape, np.float32))

    @ieee_mode()
    def forward_saved(self, page, workspace: Workspace, heads=HEADS) -> Saved:
        """As `forward`, with the same bits, keeping in `workspace` what `backward` needs."""
        arrays: dict = {}
        x = self._encode(page, workspace, arrays)
        outputs = self._heads(x, heads, workspace.take, arrays)
        return Saved(page, workspace, tuple(heads), outputs, arrays)

    def _encode(self, page, space: Workspace, saved: dict | None) -> np.ndarray:
        """final_ln's output (n, d)."""
        p, c = self.parameters, self.config
        n, d, eps = len(page.features), c.hidden_size, c.layer_norm_eps
        self._check(page)
        words = len(page.characters)
        pooled = space.take("pooled", (words, c.char_channels))
        argmax = None if saved is None else space.take("argmax", (words, c.char_channels), np.int32)
        char_conv_forward(p["char_emb.weight"], page.characters, p["char_conv.weight"], p["char_conv.bias"], pooled,
                          argmax)
        projected = space.take("projected", (words, d))
        linear_forward(pooled, self._packed["char_proj"], p["char_proj.bias"], projected)
        x = space.take("x", (n, d))
        linear_forward(page.features, self._packed["feat_proj"], p["feat_proj.bias"], x)
        tables = [projected] + [p[f"{name}.weight"] for name in POSITION_TABLES]
        ids = page.table_ids
        embedding_sum_forward(tables, ids, x, x)
        bias = space.take("bias", (c.num_attention_heads, n, n))
        self.pair_bias(page, bias)
        if saved is None:
            layer_norm_forward(x, p["emb_ln.weight"], p["emb_ln.bias"], x, eps=eps)
            encoder_forward(self.encoder, x, bias)
            layer_norm_forward(x, p["final_ln.weight"], p["final_ln.bias"], x, eps=eps)
            return x
        keep = saved
        keep.update(pooled=pooled, argmax=argmax, bias=bias)
        keep["emb_xhat"], keep["emb_inv"] = space.take("emb_xhat", (n, d)), space.take("emb_inv", (n,))
        layer_norm_forward(x, p["emb_ln.weight"], p["emb_ln.bias"], x, keep["emb_xhat"], keep["emb_inv"], eps=eps)
        keep["encoder"] = space.take("encoder", (encoder_saved_floats(self.encoder, n),))
        encoder_forward(self.encoder, x, bias, keep["encoder"])
        keep["xhat"], keep["inv"] = space.take("final_xhat", (n, d)), space.take("final_inv", (n,))
        layer_norm_forward(x, p["final_ln.weight"], p["final_ln.bias"], x, keep["xhat"], keep["inv"], eps=eps)
        keep["f"] = x
        return x

    def pair_bias(self, page, out: np.ndarray) -> None:
        """Attention bias (heads, n, n) of a page's pairs of words."""
        p = self.parameters
        pair_bias_forward(page.real, page.whole, p["pair1.weight"], p["pair1.bias"], p["pair2.weight"], p["pair2.bias"],
                          out)

    def pair_bias_gradients(self, page, dbias: np.ndarray, gradients: Gradients) -> None:
        """Assigns the gradients of pair1 and pair2 from that of the attention bias (heads, n, n)."""
        p, g = self.parameters, gradients
        pair_bias_backward(dbias, page.real, page.whole, p["pair1.weight"], p["pair1.bias"], p["pair2.weight"],
                           g["pair1.weight"], g["pair1.bias"], g["pair2.weight"], g["pair2.bias"])

    def pair_features(self, page, out: np.ndarray) -> None:
        """Pair features (P, n, n) of a page: to look at; forward and backward make them in passing, tile by tile."""
        pair_features(page.real, page.whole, out)

    def _check(self, page) -> None:
        c = self.config
        for name, got, want in (("word features", page.features.shape[1], c.word_features),
                                ("characters a word", page.characters.shape[1], c.max_chars)):
            if got != want:
                raise ValueError(f"the page has {got} {name}: expected {want}, as the model")
        if len(page.features) > c.max_words:
            raise ValueError(f"the window has {len(page.features)} words: expected at most max_words = {c.max_words}")

    def _heads(self, f, heads, take, saved: dict | None = None) -> Outputs:
        p, c, n = self.parameters, self.config, len(f)
        out = Outputs()
        unknown = [name for name in heads if name not in HEADS]
        if unknown:
            raise ValueError(f"heads has {unknown[0]!r}: expected some of {', '.join(HEADS)}")
        for name, rows in (("tag", c.num_tags), ("role", c.num_role_tags)):
            if name in heads:
                y = take(name, (n, rows))
                linear_forward(f, self._packed[_LINEAR[name]], p[f"{_LINEAR[name]}.bias"], y)
                setattr(out, name, y)
        if "doc" in heads:
            y = take("doc", (1, c.num_doc_types))
            mean = take("mean", (1, c.hidden_size))
            linear_backward(f, None, None, dbias=mean[0])  # the sum16 of every column
            if n:
                np.divide(mean, np.float32(n), out=mean)
            linear_forward(mean, self._packed["doc_head"], p["doc_head.bias"], y)
            out.doc = y[0]
            if saved is not None:
                saved["mean"] = mean
        if "pointer" in heads:
            q, k = (take(name, (n, 2 * c.relation_size)) for name in ("rel_q", "rel_k"))
            linear_forward(f, self._packed["rel_q"], p["rel_q.bias"], q)
            linear_forward(f, self._packed["rel_k"], p["rel_k.bias"], k)
            scores = take("pointer", (2, n, n))
            pointer_forward(q, k, scores, parts=2)
            out.item, out.key_value = scores[0], scores[1]
            if saved is not None:
                saved.update(q=q, k=k)
        return out

    # --- backward ----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def backward(self, saved: Saved, douts: Outputs, gradients: Gradients, *, backbone: bool = True,
                 total: Gradients | None = None) -> None:
        """Gradients of a loss from those of the logits: assigns every tensor of `gradients`.

        douts: gradients of the outputs; None for a head the loss does not reach, whose tensors get zeros.
        backbone False: the heads' tensors only (a head-only run); the others are left as they are.
        total: a set that all of them are added to, with the bits of `total.add(gradients)`, in less time: the blocks'
        gradients go there at once, and `gradients` holds the others only.
        """
        p, c, g, a, space = self.parameters, self.config, gradients, saved.arrays, saved.workspace
        page, n, d = saved.page, len(saved.page.features), self.config.hidden_size
        df = self._backward_heads(saved, douts, g)
        if not backbone:
            if total is not None:
                total.add_rest(g, heads_only=True)
            return
        dx = space.take("dx", (n, d))
        layer_norm_backward(df, a["xhat"], a["inv"], p["final_ln.weight"], dx, g["final_ln.weight"],
                            g["final_ln.bias"])
        dbias = space.take("dbias", a["bias"].shape)
        encoder_backward(self.encoder, a["encoder"], dx, self._block_gradients(g if total is None else total),
                         a["bias"], dbias, accumulate=total is not None)
        self.pair_bias_gradients(page, dbias, g)
        layer_norm_backward(dx, a["emb_xhat"], a["emb_inv"], p["emb_ln.weight"], dx, g["emb_ln.weight"],
                            g["emb_ln.bias"])
        for row, name in enumerate(POSITION_TABLES, start=1):
            embedding_backward(dx, page.table_ids[row], g[f"{name}.weight"])
        linear_backward(dx, page.features, None, None, g["feat_proj.weight"], g["feat_proj.bias"])
        words = len(page.characters)
        dprojected = space.take("dprojected", (words, d))
        embedding_backward(dx, page.table_ids[0], dprojected)
        dpooled = space.take("dpooled", (words, c.char_channels))
        linear_backward(dprojected, a["pooled"], p["char_proj.weight"], dpooled, g["char_proj.weight"],
                        g["char_proj.bias"])
        char_conv_backward(dpooled, a["pooled"], a["argmax"], p["char_emb.weight"], page.characters,
                           p["char_conv.weight"], g["char_emb.weight"], g["char_conv.weight"], g["char_conv.bias"])
        if total is not None:
            total.add_rest(g)

    def _block_gradients(self, gradients: Gradients) -> EncoderGradients:
        """The blocks' arrays of a set, checked once for each set."""
        if gradients.encoder is None:
            gradients.encoder = EncoderGradients(self.encoder, _block_tensors(gradients))
        return gradients.encoder

    def _backward_heads(self, saved: Saved, douts: Outputs, g: Gradients) -> np.ndarray:
        """Gradient of final_ln's output: the heads' parts added in the order tag, role, doc, rel_q, rel_k."""
        p, c, a, space = self.parameters, self.config, saved.arrays, saved.workspace
        f = a["f"]
        df, part = space.take("df", f.shape), space.take("df_part", f.shape)
        df[...] = 0
        for name in ("tag", "role"):
            dy = getattr(douts, name)
            head = _LINEAR[name]
            if dy is None:
                g[f"{head}.weight"][...] = g[f"{head}.bias"][...] = 0
                continue
            linear_backward(dy, f, p[f"{head}.weight"], part, g[f"{head}.weight"], g[f"{head}.bias"])
            np.add(df, part, out=df)
        if douts.doc is None:
            g["doc_head.weight"][...] = g["doc_head.bias"][...] = 0
        else:
            dmean = space.take("dmean", (1, c.hidden_size))
            linear_backward(douts.doc.reshape(1, -1), a["mean"], p["doc_head.weight"], dmean, g["doc_head.weight"],
                            g["doc_head.bias"])
            if len(f):
                np.add(df, dmean / np.float32(len(f)), out=df)
        if douts.item is None and douts.key_value is None:
            for name in ("rel_q", "rel_k"):
                g[f"{name}.weight"][...] = g[f"{name}.bias"][...] = 0
            return df
        n = len(f)
        dscores = space.take("dpointer", (2, n, n))
        for row, d in enumerate((douts.item, douts.key_value)):
            dscores[row] = 0 if d is None else d
        dq, dk = space.take("dq", a["q"].shape), space.take("dk", a["k"].shape)
        pointer_backward(dscores, a["q"], a["k"], dq, dk, parts=2)
        for name, dy in (("rel_q", dq), ("rel_k", dk)):
            linear_backward(dy, f, p[f"{name}.weight"], part, g[f"{name}.weight"], g[f"{name}.bias"])
            np.add(df, part, out=df)
        return df
