"""The record of a readout: every field admitted or refused by name, derived fields, identity, migrations."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from dx_model import readout
from dx_model.readout import manifest_fields
from readout_record import CLASSES, FILES, digest_of, record, refused

F32 = np.float32


def test_five_row_fixture():
    """[CLS], two content rows, [SEP], padding: the expected vector is computed from the two selected rows."""
    manifest = readout.Manifest(record())
    table = readout.row_table([1, 1, 1, 1, 0], [1, 0, 0, 1, 1], [None, 0, 0, None, None], [None, 0, 1, None, None],
                              [None, (0, 3), (4, 9), None, None])
    hidden = np.array([[[100, 100], [1, 2], [5, 6], [100, 100], [9, 9]]], F32)
    mask = manifest.row_mask(table)
    assert mask.tolist() == [False, True, True, False, False]
    pooled = manifest.pooling().forward(manifest.layer_choice().forward([hidden])[0], mask[None]).vectors
    selected = (hidden[0, 1] + hidden[0, 2]) / 2
    assert pooled.tolist() == [selected.tolist()] and pooled.shape == manifest.output_shape(1)
    unit, norms = manifest.normalization().forward(pooled)
    assert np.abs(unit[0] - selected / np.sqrt((selected.astype(float) ** 2).sum())).max() < 1e-7
    assert unit.tolist() == [(selected / norms[0]).tolist()] and norms[0] == 5  # of the mean (3, 4)
    assert manifest.changed(readout={"normalize": {"kind": "none"}}, score={"type": "dot"}).normalization() is None
    with pytest.raises(readout.ReadoutError, match="padding"):  # a content mask that selects padding fails closed
        manifest.pooling().forward(hidden, np.array([[0, 1, 1, 0, 1]], bool), attention=table.attention[None])


@pytest.mark.parametrize("part, name", [(p, n) for p, fields in manifest_fields.FIELDS.items() for n in fields])
def test_every_field_is_needed_and_checked(part, name):
    missing, wrong, unknown = record(), record(**{part: {name: object}}), record(**{part: {"typo": 1}})
    del missing[part][name]
    for bad, field in ((missing, f"{part}.{name}"), (wrong, f"{part}.{name}"), (unknown, f"{part}.typo")):
        refused(lambda bad=bad: readout.Manifest(bad), field)


def test_records_are_all_there_and_no_others():
    for part in manifest_fields.FIELDS:
        missing = {name: fields for name, fields in record().items() if name != part}
        for bad in (missing, missing | {part: []}):
            refused(lambda bad=bad: readout.Manifest(bad), part)
    refused(lambda: readout.Manifest(record() | {"extra": {}}), "extra")
    refused(lambda: readout.Manifest([]), "manifest")


def test_artifact_record():
    """A base encoder with the head of another fine-tuning has the same shapes: hashes tell."""
    manifest = readout.Manifest(record(artifact={"head_sha256": digest_of("head")}))
    manifest.check("artifact", backbone_sha256=digest_of("backbone"), head_sha256=digest_of("head"))
    refused(lambda: manifest.check("artifact", head_sha256=digest_of("another head")), "artifact.head_sha256")
    refused(lambda: manifest.check("artifact", adapter=digest_of("lora")), "artifact.adapter")


def test_input_record():
    """Another padding side, truncation or special id points first and last rows at other units."""
    manifest = readout.Manifest(record())
    for name, value in (("padding_side", "left"), ("truncation_side", "left"), ("max_length", 256),
                        ("special_token_ids", {"cls": 1, "sep": 2, "pad": 0}), ("template", "query: {text}"),
                        ("tokenizer_sha256", digest_of("other"))):
        refused(lambda name=name, value=value: manifest.check("input", **{name: value}), f"input.{name}")


def test_row_metadata_record():
    """Padding and special rows stay out of the pool; without the declared metadata there is no mask at all."""
    manifest = readout.Manifest(record(rows={"word_ids_required": True}))
    rows = dict(attention=[1, 1, 0], special=[1, 0, 1], sequence=[None, 0, None])
    offsets = [None, (0, 3), None]
    assert manifest.row_mask(readout.row_table(**rows, word_ids=[None, 0, None], offsets=offsets)).tolist() == [
        False, True, False]
    refused(lambda: manifest.row_mask(readout.row_table(**rows, word_ids=[None, 0, None])), "rows.offsets")
    refused(lambda: manifest.row_mask(readout.row_table(**rows, offsets=offsets)), "rows.word_ids")
    refused(lambda: readout.Manifest(record(rows={"mask_source": "attention_mask"})), "rows.mask_source")
    every = readout.Manifest(record(rows={"mask_source": "attention_mask", "include_special": True,
                                          "include_prompt": True}))
    assert every.row_mask(readout.row_table(**rows, offsets=offsets)).tolist() == [True, True, False]
    prompt = readout.row_table([1, 1, 1], [0, 0, 0], policy=[0, 1, 1], offsets=[(0, 1), (1, 2), (2, 3)])
    assert readout.Manifest(record()).row_mask(prompt).tolist() == [False, True, True]


def test_contextual_state_record():
    """A learned mixture cannot be replaced by the last layer without its name appearing."""
    manifest = readout.Manifest(record(contextual_state={"layers": [1, 2, 3], "layers_kind": "mixture"}))
    refused(lambda: manifest.check("contextual_state", layers=[-1]), "contextual_state.layers")
    states = [np.ones((1, 2, 2), F32)] * 4
    refused(lambda: manifest.layer_choice().forward(states), "parameters.layers.logits")
    refused(lambda: readout.Manifest(record(contextual_state={"layers": [1, 2]})), "contextual_state.layers")


def test_readout_record():
    """The pool has no default, and a padded mean or the first row is not the declared masked mean."""
    manifest = readout.Manifest(record())
    for pooling in (["first"], ["mean_sqrt_length"], ["mean", "max"]):
        refused(lambda pooling=pooling: manifest.check("readout", pooling=pooling), "readout.pooling")
    refused(lambda: readout.Manifest(record(readout={"pooling": []})), "readout.pooling")
    refused(lambda: readout.Manifest(record(readout={"pooling": ["cls"]})), "readout.pooling")
    refused(lambda: readout.Manifest(record(readout={"pooling": ["weighted_mean"]})), "readout.weights")
    refused(lambda: readout.Manifest(record(readout={"weights": "recency"})), "readout.weights")
    refused(lambda: readout.Manifest(record(readout={"pooling": ["attention"]})), "readout.attention")
    projection = {"out_features": 5, "bias": True, "activation": "identity"}
    wider = readout.Manifest(record(readout={"pooling": ["mean", "max"], "projection": projection}))
    assert (wider["readout.pooled_width"], wider["readout.projection.in_features"], wider["output.dimension"]) == (
        4, 4, 5)
    stale = {"projection": projection | {"in_features": 2}}  # of one pool, left behind when there are two
    refused(lambda: wider.changed(readout=stale), "readout.projection.in_features")
    hidden, mask = np.ones((1, 8, 2), F32), np.arange(8)[None] < 2
    assert manifest.pooling().forward(hidden, mask).vectors.tolist() == [[1, 1]]  # a padded mean gives 0.25


def test_output_identity_record():
    """Label ids swapped under the same shape are another identity; the maps are derived and bijective."""
    manifest = readout.Manifest(record(**CLASSES))
    swapped = ["positive", "neutral", "negative"]
    refused(lambda: manifest.check("output", labels=swapped), "output.labels")
    assert manifest.changed(output={"labels": swapped}).content_id != manifest.content_id
    assert manifest["output.label2id"] == {"negative": 0, "neutral": 1, "positive": 2}
    assert manifest["output.id2label"] == {"0": "negative", "1": "neutral", "2": "positive"}
    refused(lambda: manifest.changed(output={"labels": ["a", "b", "a"]}), "output.labels")
    refused(lambda: manifest.changed(output={"labels": None}), "output.labels")
    refused(lambda: manifest.changed(output={"null_label": "none"}), "output.null_label")
    stale = record(**CLASSES)
    stale["output"]["label2id"] = {"negative": 1, "neutral": 0, "positive": 2}
    refused(lambda: readout.Manifest(stale), "output.label2id")


def test_score_record():
    """A cosine threshold is not applied to inner products; none is made up where none is declared."""
    manifest = readout.Manifest(record())
    assert manifest.threshold("cosine") == 0.8
    refused(lambda: manifest.threshold("dot"), "score.type")
    none = {"normalize": {"kind": "none"}}
    refused(lambda: readout.Manifest(record(readout=none)), "score.type")
    readout.Manifest(record(readout=none, score={"normalizes_operands": True}))
    readout.Manifest(record(readout=none, score={"type": "dot"}))
    assert readout.Manifest(record(**CLASSES)).threshold("softmax_probability") is None


def test_runtime_record():
    """What a run measured is compared with what is declared: an exported graph without its mask, another dtype."""
    manifest = readout.Manifest(record())
    manifest.check_observed({"numerics_version": 1, "device": "cpu", "accumulation_dtype": "float32",
                             "inputs": ["input_ids", "attention_mask", "content_mask"], "normalizes": True})
    for name, value, field in (("inputs", ["input_ids", "attention_mask"], "observed.inputs"),
                               ("inputs", ["input_ids"], "observed.inputs"),
                               ("normalizes", False, "observed.normalizes"),
                               ("accumulation_dtype", "float16", "contextual_state.accumulation_dtype"),
                               ("compute_dtype", "bfloat16", "contextual_state.compute_dtype"),
                               ("backend", "eager", "runtime.backend"),
                               ("numerics_version", 2, "runtime.numerics_version"),
                               ("speed", 3, "observed.speed")):
        refused(lambda name=name, value=value: manifest.check_observed({name: value}), field)
        measured = record(runtime={"observed": {name: value}})
        refused(lambda measured=measured: readout.Manifest(measured), field)
    refused(lambda: readout.Manifest(record(runtime={"observed_backend": "eager"})), "runtime.observed_backend")
    refused(lambda: readout.Manifest(record(runtime={"observed": 1})), "runtime.observed")


def test_observed_state_is_evidence_and_not_identity():
    seen = {"accumulation_dtype": "float32", "numerics_version": 1}
    manifest = readout.Manifest(record(runtime={"observed": seen}))
    assert manifest.observed == seen and manifest == readout.Manifest(record())
    assert readout.admit_manifest(manifest.to_json()).observed == seen


def test_release_record():
    """Files changed under an old name, a changed record with an old content id, an undeclared migration."""
    manifest = readout.Manifest(record())
    manifest.check_files(FILES)
    refused(lambda: manifest.check_files(FILES | {"labels.json": b"[ ]"}), "release.files.labels.json")
    refused(lambda: manifest.check_files({"labels.json": b"[]"}), "release.files.model.safetensors")
    refused(lambda: manifest.check_files(FILES | {"new.json": b""}), "release.files.new.json")
    data = manifest.to_json()
    assert readout.admit_manifest(data) == manifest and readout.admit_manifest(data).to_json() == data
    edited = json.loads(data)
    edited["score"]["threshold"] = 0.7
    refused(lambda: readout.admit_manifest(json.dumps(edited)), "release.content_id")
    del edited["release"]["content_id"]
    refused(lambda: readout.admit_manifest(json.dumps(edited)), "release.content_id")
    refused(lambda: readout.Manifest(record(release={"tests": []})), "release.tests")
    refused(lambda: readout.Manifest(record(release={"parent": digest_of("old")})), "release.migration")


def test_widths_are_derived_and_never_typed_twice():
    projected = {"pooling": ["first", "mean", "max"], "projection": {"out_features": 5, "bias": True,
                                                                     "activation": "identity"}}
    manifest = readout.Manifest(record(readout=projected))
    assert (manifest["readout.pooled_width"], manifest["readout.projection.in_features"],
            manifest["output.dimension"]) == (6, 6, 5)
    without = manifest.changed(readout={"pooling": ["mean", "max"]})
    assert without["readout.projection.in_features"] == 4
    hops = manifest.changed(readout={"pooling": ["multi_hop_attention", "mean"], "attention": {"size": 7, "hops": 3}})
    assert hops["readout.pooled_width"] == 8 and hops.pooling().width(2) == 8
    for path, value in (("readout.pooled_width", 4), ("readout.projection.in_features", 4), ("output.dimension", 6)):
        stale = record(readout=projected)
        *names, last = path.split(".")
        target = stale
        for name in names:
            target = target[name]
        target[last] = value  # copied from before a mode was removed
        refused(lambda stale=stale: readout.Manifest(stale), path)
    agreeing = record(readout=projected)
    agreeing["output"]["dimension"], agreeing["readout"]["projection"]["in_features"] = 5, 6
    assert readout.Manifest(agreeing) == manifest and b'"dimension"' not in manifest.to_json()
    meaningless = record(output={"label2id": {}})
    refused(lambda: readout.Manifest(meaningless), "output.label2id")


def test_one_field_more_or_less_is_another_identity():
    base, seen = readout.Manifest(record()), {readout.Manifest(record()).content_id}
    for changes in ({"readout": {"pooling": ["max"]}}, {"input": {"max_length": 256}}, {"score": {"threshold": 0.81}},
                    {"contextual_state": {"final_norm_applied": False}}, {"runtime": {"numerics_version": 2}},
                    {"rows": {"include_prompt": True}}, {"artifact": {"objective": "triplet"}}):
        seen.add(base.changed(**changes).content_id)
    assert len(seen) == 8 and hash(base) == hash(readout.Manifest(record()))


def test_identity_does_not_depend_on_the_process():
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import test_manifest as t; "
            "print(t.readout.Manifest(t.record(**t.CLASSES)).content_id)")
    folder = os.path.dirname(os.path.abspath(__file__))
    ids = {subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("0", "17")}
    assert ids == {readout.Manifest(record(**CLASSES)).content_id + "\n"}


def test_a_manifest_does_not_change():
    given = record()
    manifest = readout.Manifest(given)
    content = manifest.content_id
    given["readout"]["pooling"][0] = "max"
    manifest["readout.pooling"][0] = "first"
    assert manifest["readout.pooling"] == ["mean"] and readout.Manifest(record()).content_id == content
    with pytest.raises(KeyError):
        manifest["readout.typo"]


VECTORS = set(readout.MIGRATION_STATES)
SCORES = {"thresholds", "calibration", "evaluation_baselines"}


@pytest.mark.parametrize("before, after, field, lost", [
    ({}, {"readout": {"pooling": ["first"]}}, "readout.pooling", VECTORS),
    ({"rows": {"include_prompt": True}}, {"rows": {"include_prompt": False}}, "rows.include_prompt", VECTORS),
    ({}, {"contextual_state": {"layers": [1, 2], "layers_kind": "mixture"}}, "contextual_state.layers", VECTORS),
    ({"readout": {"normalize": {"kind": "none"}}, "score": {"type": "dot"}},
     {"readout": {"normalize": {"kind": "l2", "epsilon": 1e-12}}, "score": {"type": "cosine"}}, "readout.normalize",
     VECTORS),
    (CLASSES, {"output": {"labels": ["positive", "neutral", "negative"]}}, "output.labels", SCORES),
    ({}, {"input": {"max_length": 256, "truncation": "only_second"}}, "input.max_length", VECTORS),
    ({"score": {"type": "dot"}}, {"score": {"type": "cosine"}}, "score.type", SCORES),
    ({}, {"score": {"threshold": 0.7}}, "score.threshold", {"evaluation_baselines"}),
    ({}, {"runtime": {"framework_revision": "0.2.0"}}, "runtime.framework_revision", set())])
def test_changes_are_migrations(before, after, field, lost):
    """What a change invalidates cannot be declared valid; the rest can."""
    old = readout.Manifest(record(**before))
    changed = old.changed(**after)
    assert field in readout.manifest_changes(old, changed) and readout.invalidated_states(old, changed) == lost
    valid = {state: state not in lost for state in readout.MIGRATION_STATES}
    readout.check_migration(old, changed.changed(release={"parent": old.content_id, "migration": valid}))
    for state in lost:
        new = changed.changed(release={"parent": old.content_id, "migration": valid | {state: True}})
        refused(lambda new=new: readout.check_migration(old, new), f"release.migration.{state}")
    other = changed.changed(release={"parent": digest_of("other"), "migration": valid})
    refused(lambda: readout.check_migration(old, other), "release.parent")
    undeclared = {state: True for state in list(readout.MIGRATION_STATES)[1:]}
    refused(lambda: changed.changed(release={"parent": old.content_id, "migration": undeclared}),
            f"release.migration.{readout.MIGRATION_STATES[0]}")


def test_document_pooling_invalidates_the_index_though_queries_are_untouched():
    query, document = readout.Manifest(record()), readout.Manifest(record(input={"template": "passage: {text}"}))
    new = document.changed(readout={"pooling": ["max"]})
    assert readout.invalidated_states(query, query) == set()
    assert "document_vectors" in readout.invalidated_states(document, new)
