"""A vision transformer: forward for inference and for training, and the exact adjoint (docs/vit.md).

The bits are those of `wiring` on the kernels of `float32`, operation by operation; here the embedding and the stack of
blocks are one kernel call each, with weights packed once.
"""
from dataclasses import dataclass

import numpy as np

from ..below import (
    EncoderGradients,
    EncoderWeights,
    PackedMatrix,
    encoder_backward,
    encoder_forward,
    encoder_saved_floats,
    ieee_mode,
    layer_norm_backward,
    layer_norm_forward,
    linear_backward,
    linear_forward,
    patch_embed_backward,
    patch_embed_forward,
)
from ..threads import on_threads
from ..workspace import Workspace, own_workspace
from ..model_files import load_model, save_model
from .checkpoints import from_checkpoint
from .config import ViTConfig
from .parameters import Gradients, Parameters, initial_parameters

KIND = "vit"
BLOCK_PARTS = ("ln1", "qkv", "proj", "ln2", "fc1", "fc2")


def block_arrays(tensors) -> list[list[np.ndarray]]:
    """The 12 arrays of each block, in the order of the kernels."""
    return [[tensors[f"blocks.{i}.{part}.{kind}"] for part in BLOCK_PARTS for kind in ("weight", "bias")]
            for i in range(tensors.config.num_hidden_layers)]


@dataclass
class Saved:
    """What one training forward keeps for its backward; it lives in its workspace until the next pass there.

    outputs : logits (classes,)"""

    image: np.ndarray
    workspace: Workspace
    outputs: np.ndarray
    arrays: dict


class ViT:
    """A vision transformer over its parameters.

    `parameters` are used in place; after changing them call `repack()`. Several threads may run `forward` at once.
    """

    def __init__(self, parameters: Parameters):
        self.config, self.parameters = parameters.config, parameters
        p, c = parameters, parameters.config
        self.encoder = EncoderWeights(block_arrays(p), heads=c.num_attention_heads, eps=c.layer_norm_eps,
                                      activation=c.hidden_act)
        self._patch = PackedMatrix(p["patch.weight"].reshape(c.hidden_size, -1), transpose_b=True)
        self._head = PackedMatrix(p["head.weight"], transpose_b=True)

    @classmethod
    def initial(cls, config: ViTConfig, seed: int = 0) -> "ViT":
        """A model with the initial weights of a seed; the same everywhere."""
        return cls(initial_parameters(config, seed))

    @classmethod
    def from_pretrained(cls, path, *, digest: str | None = None) -> "ViT":
        """The model of a file, or of the file model.safetensors in a folder. digest: the SHA-256 (hex) it must have.

        Raises ModelFileError, naming file and reason, for a file that is damaged, foreign, newer, or not what its
        config says; OSError. Nothing is filled in, nothing in it is executed.
        """
        return cls(load_model(KIND, ViTConfig, Parameters, path, digest))

    @classmethod
    def from_checkpoint(cls, tensors, **settings) -> "ViT":
        """The model of a checkpoint in the layout of timm or Hugging Face; see `checkpoints.from_checkpoint`."""
        return cls(from_checkpoint(tensors, **settings))

    def save_pretrained(self, folder) -> str:
        """Writes the model to model.safetensors in the folder, which is made if need be, whole or not at all; returns
        the file's SHA-256 (hex). Equal parameters and configs give equal bytes."""
        return save_model(KIND, self.parameters, folder)

    def repack(self) -> None:
        """Takes notice of changed parameters."""
        self.encoder.repack()
        self._patch.repack()
        self._head.repack()

    # --- forward -----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def forward(self, images: np.ndarray) -> np.ndarray:
        """Logits (batch, classes) of images (batch, channels, height, width), both float32. An image's logits depend on
        that image alone. ValueError: a shape or type that is not the model's."""
        c = self.config
        shape = (*np.shape(images)[:1], *c.image_shape)
        check_images(images, shape)
        logits = np.empty((shape[0], c.num_classes), np.float32)

        def one(pair):
            image, row, space = *pair, own_workspace()
            x = self._embed(image, space)
            encoder_forward(self.encoder, x)
            self._classify(x, row[None], space, {})

        on_threads(one, list(zip(np.ascontiguousarray(images), logits, strict=True)))
        return logits

    @ieee_mode()
    def forward_saved(self, image: np.ndarray, workspace: Workspace) -> Saved:
        """As `forward` of one image (channels, height, width), with the same bits, keeping what `backward` needs."""
        c, keep = self.config, {}
        check_images(image, c.image_shape)
        image = np.ascontiguousarray(image)
        x = self._embed(image, workspace)
        keep["encoder"] = workspace.take("encoder", (encoder_saved_floats(self.encoder, len(x)),))
        encoder_forward(self.encoder, x, None, keep["encoder"])
        keep["xhat"], keep["inv"] = workspace.take("xhat", (1, c.hidden_size)), workspace.take("inv", (1,))
        logits = workspace.take("logits", (1, c.num_classes))
        self._classify(x, logits, workspace, keep)
        return Saved(image, workspace, logits[0], keep)

    def _embed(self, image, space):
        p, c = self.parameters, self.config
        x = space.take("x", (c.num_patches + 1, c.hidden_size))
        patch_embed_forward(image, self._patch, p["patch.bias"], p["cls"], p["pos"], x, patch=c.patch_size)
        return x

    def _classify(self, x, logits, space, keep):
        """The classifier on the class token, the only row whose final layer norm is read."""
        p = self.parameters
        n = keep["n"] = space.take("n", (1, self.config.hidden_size))
        layer_norm_forward(x[:1], p["norm.weight"], p["norm.bias"], n, keep.get("xhat"), keep.get("inv"),
                           eps=self.config.layer_norm_eps)
        linear_forward(n, self._head, p["head.bias"], logits)

    # --- backward ----------------------------------------------------------------------------------------------------

    @ieee_mode()
    def backward(self, saved: Saved, dlogits: np.ndarray, gradients: Gradients, *, dimage=None,
                 total: Gradients | None = None) -> None:
        """Gradients of a loss from that of the logits (classes,): assigns every tensor of `gradients`, and dimage
        (channels, height, width) unless None.

        total: a set that all of them are added to, with the bits of `total.add(gradients)` and in less time: the
        blocks' gradients go there at once, so that `gradients` holds the others only.
        """
        p, c, g, a, space = self.parameters, self.config, gradients, saved.arrays, saved.workspace
        dn = space.take("dn", (1, c.hidden_size))
        dx = space.take("dx", (c.num_patches + 1, c.hidden_size))
        linear_backward(dlogits.reshape(1, -1), a["n"], p["head.weight"], dn, g["head.weight"], g["head.bias"])
        dx[1:] = 0
        layer_norm_backward(dn, a["xhat"], a["inv"], p["norm.weight"], dx[:1], g["norm.weight"], g["norm.bias"])
        encoder_backward(self.encoder, a["encoder"], dx, self._blocks(g if total is None else total),
                         accumulate=total is not None)
        patch_embed_backward(dx, saved.image, p["patch.weight"] if dimage is not None else None, dimage,
                             g["patch.weight"], g["patch.bias"], g["cls"], g["pos"], patch=c.patch_size)
        if total is not None:
            total.add_rest(g)

    def _blocks(self, gradients: Gradients) -> EncoderGradients:
        """The blocks' arrays of a set, checked once for each set."""
        if gradients.encoder is None:
            gradients.encoder = EncoderGradients(self.encoder, block_arrays(gradients))
        return gradients.encoder


def check_images(images, shape) -> None:
    """ValueError unless images is a float32 array of the shape."""
    if not isinstance(images, np.ndarray) or images.dtype != np.float32 or images.shape != shape:
        kind = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
        raise ValueError(f"images are {kind}: expected a float32 array {shape}")
