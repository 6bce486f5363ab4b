"""What a change invalidates: the table, the graph behind it, its conditions; migrations."""
import numpy as np
import pytest
from dx_labels.release.graph import CHANGES, INVALID, REUSABLE, STATES, TABLE, UNPROVEN, Parity, below, effect
from dx_labels.release.identity import DEPENDS, PARTS, SemanticTuple, compatibility, effect_between
from dx_labels.release.migration import admit_migration, migration, preconditions, reorder_labels
from dx_labels.release.sources import readout_tuple

from dx_labels.release import ReleaseError

MANIFEST = {
    "artifact": {"architecture": "encoder", "backbone_sha256": "b" * 64, "head_sha256": "c" * 64, "adapter": "none",
                 "task_revision": "r1", "objective": "cross_entropy"},
    "input": {"tokenizer_sha256": "a" * 64, "max_length": 128, "truncation": "longest_first",
              "truncation_side": "right", "padding_side": "right", "special_token_ids": {"cls": 1}, "template": None},
    "rows": {"mask_source": "content_mask", "include_special": False, "include_prompt": False},
    "contextual_state": {"layers": [-1], "layers_kind": "one", "width": 4, "compute_dtype": "float32"},
    "readout": {"family": "single_vector", "pooling": ["mean"], "projection": None, "normalize": {"kind": "none"}},
    "output": {"kind": "classification", "labels": ["no", "yes"], "null_label": None},
    "score": {"type": "logit", "temperature": None, "threshold": 0.5, "tie_rule": "lowest_index"},
    "runtime": {"framework_revision": "1", "numerics_version": 1, "backend": "dx", "device": "cpu"},
    "release": {"files": {}}}


def made(window=None, calibrator=None, **changes):
    record = {part: {**fields, **changes.get(part, {})} for part, fields in MANIFEST.items()}
    return readout_tuple(record, window, calibrator)


BASE = made()
KEPT = {name: tuple(effect_between(BASE, other)[s] for s in STATES) for name, other in {
    "tokenizer": made(input={"tokenizer_sha256": "f" * 64}), "template": made(input={"template": "query: {}"}),
    "positions": made(input={"position_ids": "shifted"}), "stride": made(window={"policy": "overlap", "overlap": 8}),
    "backbone": made(artifact={"backbone_sha256": "f" * 64}), "adapter": made(artifact={"adapter": "e" * 64}),
    "layer": made(contextual_state={"layers": [-2]}), "pool": made(readout={"pooling": ["max"]}),
    "projection": made(readout={"projection": {"out_features": 2}}),
    "normalization": made(readout={"normalize": {"kind": "l2", "epsilon": 1e-12}}),
    "head": made(artifact={"head_sha256": "f" * 64}), "labels": made(output={"labels": ["yes", "no"]}),
    "calibrator": made(calibrator={"kind": "temperature", "value": 2.0}),
    "threshold": made(score={"threshold": 0.6}), "tie": made(score={"tie_rule": "first_span"}),
    "backend": made(runtime={"backend": "onnx"}), "dtype": made(contextual_state={"compute_dtype": "float16"}),
}.items()}
ALL = (INVALID,) * 5


def test_tokenizer_template_or_positions():
    assert {KEPT[n] for n in ("tokenizer", "template", "positions", "stride")} == {ALL}


def test_backbone_or_internal_adapter():
    assert KEPT["backbone"] == KEPT["adapter"] == ALL


def test_layer_pool_projection_or_normalization():
    for name in ("pool", "projection", "normalization"):
        assert KEPT[name] == (REUSABLE, *ALL[1:])  # the same layer's rows are those that are kept
    assert KEPT["layer"] == ALL  # the rows that were kept are of another layer
    both = made(contextual_state={"layers": [-1, -2]})
    one_of_them = effect_between(both, made(contextual_state={"layers": [-2]}))
    assert one_of_them["contextual_cache"] == REUSABLE and one_of_them["vector_cache"] == INVALID
    assert effect(["readout"])["contextual_cache"] == INVALID  # nothing is known of the rows


def test_head_weights_or_label_map():
    assert KEPT["head"] == KEPT["labels"] == (REUSABLE, REUSABLE, INVALID, INVALID, INVALID)
    rows = {"readout": {"pooling": []}}  # a token head reads rows: no vector is there to keep
    assert effect_between(made(**rows), made(**rows, artifact={"head_sha256": "f" * 64}))["vector_cache"] == INVALID


def test_calibrator():
    assert KEPT["calibrator"] == (REUSABLE, REUSABLE, REUSABLE, INVALID, INVALID)


def test_threshold_tie_or_abstention():
    assert KEPT["threshold"] == KEPT["tie"] == (REUSABLE, REUSABLE, REUSABLE, REUSABLE, INVALID)


def test_backend_dtype_or_export():
    assert KEPT["backend"] == KEPT["dtype"] == (UNPROVEN,) * 5
    old, new = BASE, made(runtime={"backend": "onnx"})
    a, b = old.part_digest("runtime"), new.part_digest("runtime")
    assert set(effect_between(old, new, Parity(a, b, 9, 1e-6, 1e-5)).values()) == {REUSABLE}
    for weak in (Parity(a, b, 9, 1e-4, 1e-5), Parity(a, b, 0, 0.0, 1e-5), Parity(b, a, 9, 0.0, 1e-5),
                 Parity(a, b, 9, float("nan"), 1e-5)):
        assert set(effect_between(old, new, weak).values()) == {UNPROVEN}


def test_the_table_is_the_graph_with_its_conditions():
    """Every unconditional entry follows from: a change invalidates its own layer and everything below it."""
    for change, layer in CHANGES.items():
        if layer is None:
            continue
        gone = below("contextual" if layer == "source" else layer)
        for state, entry in zip(STATES, TABLE[change]):
            assert (entry == INVALID) == (state in gone) or entry.startswith("reusable if"), (change, state)
    assert [TABLE[c][i] for c, i in (("readout", 0), ("head", 1))] == [
        "reusable if the contextual identity matches", "reusable if the head reads vectors"]


def test_several_changes_take_the_worst_and_none_keeps_all():
    assert effect(["calibrator", "decision"]) == effect(["calibrator"]) and set(effect([]).values()) == {REUSABLE}
    both = effect(["decision", "runtime"])
    assert both["decisions"] == INVALID and both["raw_scores"] == UNPROVEN
    with pytest.raises(ReleaseError, match="change 'weights'"):
        effect(["weights"])


def test_namespaces_move_exactly_with_what_they_depend_on():
    for part in PARTS:
        parts = {**BASE.parts, part: {**BASE.parts[part], "moved": True}}
        old, new = BASE.namespaces(), SemanticTuple("readout", parts).namespaces()
        assert [s for s in STATES if old[s] != new[s]] == [s for s in STATES if part in DEPENDS[s]]


def test_a_tuple_is_whole_or_refused():
    for part in PARTS:
        with pytest.raises(ReleaseError, match=f"parts.{part}"):
            SemanticTuple("readout", {k: v for k, v in BASE.parts.items() if k != part})
    with pytest.raises(ReleaseError, match="parts.weights"):
        SemanticTuple("readout", {**BASE.parts, "weights": {"a": 1}})
    again = {k: v for k, v in MANIFEST.items() if k != "score"}
    with pytest.raises(ReleaseError, match="manifest.score"):
        readout_tuple(again)


def test_derived_fields_and_evidence_are_no_identity():
    more = made(output={"dimension": 2, "label2id": {"no": 0, "yes": 1}}, runtime={"observed": {"device": "cpu"}})
    assert more.digest == BASE.digest


def moved(old, new, **more):
    return migration(old, new, source=old.digest, target=new.digest, rollback_to="r" * 64,
                     tests=[("probe", True)], **more)


def test_reordered_labels_move_with_their_rows_or_are_refused():
    swapped = made(output={"labels": ["yes", "no"]})
    with pytest.raises(ReleaseError, match="reordered labels move with the head's rows"):
        admit_migration(moved(BASE, swapped), BASE, swapped)
    both = made(output={"labels": ["yes", "no"]}, artifact={"head_sha256": "d" * 64})
    admit_migration(moved(BASE, both), BASE, both)
    rows = np.arange(4.0).reshape(2, 2)
    assert reorder_labels({"w": rows}, ["no", "yes"], ["yes", "no"])["w"].tolist() == [[2, 3], [0, 1]]
    with pytest.raises(ReleaseError, match="need a new head"):
        reorder_labels({"w": rows}, ["no", "yes"], ["no", "maybe"])


def test_a_new_label_needs_a_new_head():
    wider = made(output={"labels": ["no", "yes", "maybe"]})
    assert [c.name for c in preconditions(BASE, wider) if not c.holds] == ["another width needs a new head"]


def test_a_concatenated_pool_changes_the_heads_input():
    same_head = made(readout={"pooling": ["mean", "max"]})
    with pytest.raises(ReleaseError, match="another width of the readout needs a new head: 4 to 8"):
        admit_migration(moved(BASE, same_head), BASE, same_head)
    new_head = {"head_sha256": "d" * 64}
    wide = made(readout={"pooling": ["mean", "max"]}, output={"in_features": 4}, artifact=new_head)
    with pytest.raises(ReleaseError, match="head takes 4, readout gives 8"):
        admit_migration(moved(BASE, wide), BASE, wide)
    right = made(readout={"pooling": ["mean", "max"]}, output={"in_features": 8}, artifact=new_head)
    admit_migration(moved(BASE, right), BASE, right)


def test_a_record_that_leaves_out_an_invalidation_or_a_test_is_refused():
    new = made(calibrator={"kind": "temperature", "value": 2.0})
    record = moved(BASE, new)
    kept = {**record["invalidation"]["keep"], "decisions": BASE.namespaces()["decisions"]}
    for change, words in (({"invalidation": {**record["invalidation"], "keep": kept}}, "invalidation"),
                          ({"parity_tests": []}, "parity_tests is empty"), ({"rollback_to": None}, "rollback_to"),
                          ({"parity_tests": [{"name": "probe", "passed": False}]}, "probe did not pass"),
                          ({"transformed": []}, "transformed")):
        with pytest.raises(ReleaseError, match=words):
            admit_migration({**record, **change}, BASE, new)
    assert compatibility(BASE, new)["fields"] == ["calibrator.fitted", "calibrator.kind"]
