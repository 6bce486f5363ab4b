"""Semantic tuples of what dx makes: docextract projects and readouts."""
import hashlib
from collections.abc import Mapping

import numpy as np

from ..below import NUMERICS_VERSION, DocExtract
from ..schema import Schema
from .graph import ReleaseError
from .identity import SemanticTuple

HEAD_TENSORS = ("tag_head.", "role_head.", "doc_head.", "rel_q.", "rel_k.")
INPUT_KEYS = ("max_chars", "char_vocab", "position_buckets", "word_features", "pair_features", "cut", "keep_file_order",
              "columns", "feature_version")
HEAD_KEYS = ("fields", "roles", "doc_types", "relation_size")


def tensors_digest(tensors: Mapping) -> str:
    """SHA-256 (hex) of named float32 tensors: name, shape and little-endian bytes of each, sorted by name."""
    whole = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name]).astype("<f4", copy=False)
        whole.update(f"{name} {list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def docextract_tuple(model: DocExtract, schema: Schema, thresholds: Mapping, version: str,
                     calibrator: Mapping | None = None) -> SemanticTuple:
    """The tuple of a docextract model as it answers: weights, schema, thresholds (field → float or None)."""
    config = model.config.to_json()
    if tuple(schema.names) != tuple(model.config.fields):
        raise ReleaseError(f"schema fields {list(schema.names)}: expected {list(model.config.fields)}, the order of "
                           "the model's tag head")
    if set(thresholds) != set(schema.names):
        raise ReleaseError(f"thresholds of {sorted(thresholds)}: expected one for each of {list(schema.names)}")
    sides = {True: {}, False: {}}
    for name in model.parameters:
        sides[name.startswith(HEAD_TENSORS)][name] = model.parameters[name]
    used = {*INPUT_KEYS, *HEAD_KEYS, "max_words", "repeated"}
    return SemanticTuple("docextract", {
        "input": {"source": "words and boxes", **{key: config[key] for key in INPUT_KEYS}},
        "window": {"max_words": config["max_words"], "owner": "the window where a word is farthest from a cut"},
        "backbone": {"architecture": "docextract-v0", "adapter": "none", "tensors": tensors_digest(sides[False]),
                     "config": {key: value for key, value in config.items() if key not in used}},
        "layer": {"layers": ["last"], "final_norm_applied": True},
        "readout": {"gives": "rows", "rows": "words", "document": "mean of the words", "normalize": "none"},
        "head": {"tensors": tensors_digest(sides[True]), "labels": model.config.tag_names(), "null_label": "O",
                 "score_type": "logit", **{key: config[key] for key in HEAD_KEYS}},
        "calibrator": dict(calibrator or {"kind": "none", "probability": "posterior under the constrained tags"}),
        "decision": {"thresholds": {name: thresholds[name] for name in schema.names}, "repeated": config["repeated"],
                     "normal_forms": {f.name: [f.type, f.decimal, f.date_order] for f in schema.fields},
                     "tie": "the earlier run", "abstention": "below the threshold: unsure"},
        "runtime": {"format": "dx container 1", "dtype": "float32", "numerics_version": NUMERICS_VERSION,
                    "framework_revision": version}})


# A readout's record → parts. A field that is not named goes with its record.
_RECORDS = {"artifact": "backbone", "input": "input", "rows": "readout", "contextual_state": "layer",
            "readout": "readout", "output": "head", "score": "decision", "runtime": "runtime"}
_FIELDS = {"artifact.head_sha256": "head", "score.type": "head", "score.normalizes_operands": "head",
           "score.temperature": "calibrator", "contextual_state.parameter_dtype": "runtime",
           "contextual_state.compute_dtype": "runtime", "contextual_state.accumulation_dtype": "runtime",
           "artifact.task_revision": "head", "artifact.objective": "head"}
# Evidence, and what follows from other fields and may or may not be repeated: no identity.
_NOT_PART = ("runtime.observed", "readout.pooled_width", "output.dimension", "output.label2id", "output.id2label")


def readout_tuple(record: Mapping, window: Mapping | None = None, calibrator: Mapping | None = None) -> SemanticTuple:
    """The tuple of a readout from its manifest (plain JSON), its window policy and its calibrator's record.

    Evidence (runtime.observed) and the release record are no part of the identity: they name it.
    """
    if not isinstance(record, Mapping):
        raise ReleaseError("manifest: expected an object")
    parts = {"window": dict(window or {"policy": "none: longer sources are refused"}),
             "calibrator": {"kind": "none"} if calibrator is None else {"fitted": dict(calibrator)}}
    for part, fields in record.items():
        if part in ("release", "schema"):
            continue
        if part not in _RECORDS or not isinstance(fields, Mapping):
            raise ReleaseError(f"manifest.{part}: expected one of the records {', '.join(_RECORDS)}, an object each")
        for name, value in fields.items():
            where = f"{part}.{name}"
            if where == "readout.projection" and isinstance(value, Mapping):
                value = {key: one for key, one in value.items() if key != "in_features"}
            if where not in _NOT_PART:
                parts.setdefault(_FIELDS.get(where, _RECORDS[part]), {})[where] = value
    layers = parts.setdefault("layer", {})
    layers["layers"] = layers.get("contextual_state.layers") or [layers.get("contextual_state.layer", -1)]
    readout = parts.setdefault("readout", {})
    readout["gives"] = "vectors" if readout.get("readout.pooling") else "rows"
    missing = [part for part in _RECORDS if part not in record]
    if missing:
        raise ReleaseError(f"manifest.{missing[0]}: expected this record to be there")
    return SemanticTuple("readout", parts)
