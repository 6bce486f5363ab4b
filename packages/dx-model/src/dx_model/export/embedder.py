"""The manifest of a folder of sentence-transformers, and its embedder as ONNX."""
from pathlib import Path

from .. import __version__ as VERSION
from ..below import NUMERICS_VERSION
from ..bert.embedder import LEAST_NORM, Embedder
from ..container import file_digest
from ..readout.manifest import Manifest
from ..readout.manifest_fields import MANIFEST_SCHEMA
from .onnx_file import Exported
from .readouts import export_readout

FILES = ("config.json", "model.safetensors", "tokenizer.json")


def embedder_manifest(folder, embedder: Embedder) -> Manifest:
    """The record of what `Embedder.from_pretrained(folder)` computes: every visible row is pooled, vectors have the
    declared length, similarity is the cosine (or the dot where nothing is normalised)."""
    folder = Path(folder)
    files = {name: file_digest(folder / name) for name in FILES}
    normalize = {"kind": "l2", "epsilon": LEAST_NORM} if embedder.normalize else {"kind": "none"}
    return Manifest({
        "artifact": {"architecture": "encoder", "backbone_sha256": embedder.model.parameters.digest(),
                     "head_sha256": None, "adapter": "none", "task_revision": "sentence embeddings",
                     "objective": "as trained by its source"},
        "input": {"tokenizer_sha256": files["tokenizer.json"], "max_length": embedder.max_length,
                  "truncation": "refuse, or the end when asked for", "truncation_side": "right",
                  "padding_side": "right", "special_token_ids": {}, "template": None},
        "rows": {"mask_source": "attention_mask", "mask_polarity": "one_keeps", "include_special": True,
                 "include_prompt": True, "offsets_required": False, "word_ids_required": False, "pieces": None},
        "contextual_state": {"layers": [-1], "layers_kind": "one", "axes": ["batch", "row", "channel"],
                             "width": embedder.width, "final_norm_applied": True, "parameter_dtype": "float32",
                             "compute_dtype": "float32", "accumulation_dtype": "float32"},
        "readout": {"family": "single_vector", "pooling": [embedder.pooling], "weights": None, "attention": None,
                    "empty": "reject", "projection": None, "dropout": 0.0, "normalize": normalize},
        "output": {"kind": "embedding", "labels": None, "null_label": None},
        "score": {"type": "cosine" if embedder.normalize else "dot", "normalizes_operands": False, "temperature": None,
                  "threshold": None, "tie_rule": "lowest_index"},
        "runtime": {"framework_revision": VERSION, "numerics_version": NUMERICS_VERSION, "backend": "onnx",
                    "device": "cpu", "export_format": "onnx"},
        "release": {"schema": MANIFEST_SCHEMA, "files": files, "tests": ["onnxruntime against dx, 1e-5"],
                    "parent": None, "migration": None, "rollback_to": []}})


def export_embedder(folder) -> Exported:
    """The embedder of a folder as ONNX: token ids and masks to vectors; the tokenizer stays beside it."""
    embedder = Embedder.from_pretrained(folder)
    return export_readout(embedder.model, embedder_manifest(folder, embedder))
