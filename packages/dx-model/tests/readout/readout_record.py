"""A record for the tests of manifests, and the check that a refusal names its field."""
import copy
import hashlib

import pytest
from dx_model import readout


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


FILES = {"model.safetensors": b"weights", "labels.json": b"[]"}


def record(**changes):
    """A sentence-embedding readout; changes: record=fields."""
    made = {
        "artifact": {"architecture": "encoder", "backbone_sha256": digest_of("backbone"), "head_sha256": None,
                     "adapter": "none", "task_revision": "sentences-1", "objective": "contrastive"},
        "input": {"tokenizer_sha256": digest_of("tokenizer"), "max_length": 512, "truncation": "longest_first",
                  "truncation_side": "right", "padding_side": "right",
                  "special_token_ids": {"cls": 101, "sep": 102, "pad": 0}, "template": None},
        "rows": {"mask_source": "content_mask", "mask_polarity": "one_keeps", "include_special": False,
                 "include_prompt": False, "offsets_required": True, "word_ids_required": False, "pieces": None},
        "contextual_state": {"layers": [-1], "layers_kind": "one", "axes": ["batch", "row", "channel"], "width": 2,
                             "final_norm_applied": True, "parameter_dtype": "float32", "compute_dtype": "float32",
                             "accumulation_dtype": "float32"},
        "readout": {"family": "single_vector", "pooling": ["mean"], "weights": None, "attention": None,
                    "empty": "reject", "projection": None, "dropout": 0.0,
                    "normalize": {"kind": "l2", "epsilon": 1e-12}},
        "output": {"kind": "embedding", "labels": None, "null_label": None},
        "score": {"type": "cosine", "normalizes_operands": False, "temperature": None, "threshold": 0.8,
                  "tie_rule": "lowest_index"},
        "runtime": {"framework_revision": "0.1.0", "numerics_version": 1, "backend": "dx", "device": "cpu",
                    "export_format": "safetensors+json"},
        "release": {"schema": readout.MANIFEST_SCHEMA, "tests": ["five rows"], "parent": None, "migration": None,
                    "files": {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()},
                    "rollback_to": []}}
    made = copy.deepcopy(made)
    for part, fields in changes.items():
        made[part] |= fields
    return made


CLASSES = {"output": {"kind": "classification", "labels": ["negative", "neutral", "positive"]},
           "score": {"type": "softmax_probability", "threshold": None}}


def refused(call, field):
    with pytest.raises(readout.ReadoutError) as caught:
        call()
    assert caught.value.field == field, str(caught.value)
    assert str(caught.value).startswith(field)
