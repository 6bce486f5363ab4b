"""Layered keys: what a change moves, and what it leaves."""
from dataclasses import fields, replace

from dx_model.readout import BiEncoderRelease, CrossEncoderRelease, LateInteractionRelease, Manifest
from dx_model.readout.manifest_fields import FIELDS
from dx_model.runtime import (
    LAYERS,
    ContextualRelease,
    LayeredRelease,
    VectorRelease,
    admit_document_state,
    invalidated_layers,
    layered_release,
)
from readout_record import CLASSES, digest_of, record, refused


def layers(manifest=None, **options):
    return layered_release(Manifest(record()) if manifest is None else manifest, **options)


def moved(**changes):
    return invalidated_layers(layers(), layers(Manifest(record()).changed(**changes)))


def test_a_change_moves_its_layer_and_those_above():
    everything = LAYERS
    assert invalidated_layers(layers(), layers()) == ()
    assert invalidated_layers(layers(), layers(calibrator="c1")) == ("decision",)
    assert moved(score={"threshold": 0.7}) == ("decision",)
    assert moved(score={"type": "dot"}) == ("score", "decision")
    assert invalidated_layers(layers(), layers(aggregation="mean_logits")) == ("score", "decision")
    assert moved(artifact={"head_sha256": digest_of("head")}) == ("score", "decision")
    assert moved(readout={"pooling": ["first"]}) == ("vector", "score", "decision")
    assert moved(readout={"normalize": {"kind": "l2", "epsilon": 1e-9}}) == ("vector", "score", "decision")
    assert moved(rows={"include_special": True}) == ("vector", "score", "decision")
    for change in ({"artifact": {"adapter": digest_of("adapter")}}, {"artifact": {"backbone_sha256": digest_of("b2")}},
                   {"input": {"tokenizer_sha256": digest_of("t2")}}, {"input": {"template": "query: {text}"}},
                   {"contextual_state": {"layers": [-2]}}, {"contextual_state": {"compute_dtype": "float16"}}):
        assert moved(**change) == everything, change
    assert invalidated_layers(layers(), layers(positions="windows:1")) == everything


def test_every_field_that_decides_a_result_is_in_a_layer():
    """Changing a single field of the record moves a key, but for the padding side, on which no result depends."""
    plain = record()
    other = {"input.truncation": "only_first", "input.truncation_side": "left", "input.special_token_ids": {"cls": 1},
             "rows.offsets_required": False, "rows.word_ids_required": True, "rows.pieces": "first",
             "contextual_state.width": 3, "contextual_state.final_norm_applied": False, "rows.include_prompt": True,
             "contextual_state.parameter_dtype": "float16", "contextual_state.accumulation_dtype": "float64",
             "contextual_state.layers_kind": "mean", "artifact.task_revision": "2", "artifact.objective": "mlm",
             "readout.family": "other", "readout.empty": "zero", "readout.dropout": 0.1, "input.max_length": 64,
             "readout.projection": {"out_features": 3, "bias": True, "activation": "tanh"},
             "score.normalizes_operands": True}
    for name, value in other.items():
        part, field = name.split(".")
        changed = record(**{part: {field: value}})
        if name == "contextual_state.layers_kind":
            changed["contextual_state"]["layers"] = [-1, -2]
        assert field in FIELDS[part] and plain[part][field] != value
        assert invalidated_layers(layers(), layers(Manifest(changed))), name
    assert moved(input={"padding_side": "left"}) == ()
    plain, warm = (Manifest(record(**CLASSES)).changed(score={"temperature": t}) for t in (None, 2.0))
    assert invalidated_layers(layers(plain), layers(warm)) == ("score", "decision")


def test_a_cached_vector_of_another_readout_has_another_key():
    """The dimension is the same, the space is not: the key says so before a shape could."""
    old, new = layers(), layers(Manifest(record()).changed(readout={"pooling": ["first"]}))
    source = digest_of("document")
    assert old.vector.key(source) != new.vector.key(source)
    assert old.contextual.key(source) == new.contextual.key(source) != old.vector.key(source)
    assert old.vector.key(source) != old.vector.key(digest_of("document 2"))
    assert len({old.of(name).key(source) for name in LAYERS}) == 4


def test_layers_hold_the_digest_of_the_one_below():
    release = layers()
    refused(lambda: LayeredRelease(replace(release.contextual, adapter="a"), release.vector, release.score,
                                   release.decision), "vector.contextual")
    refused(lambda: release.of("state"), "layer")
    refused(lambda: release.vector.key(""), "vector.source")
    for kind in (ContextualRelease, VectorRelease):
        given = {f.name: "x" for f in fields(kind)}
        for f in fields(kind):
            refused(lambda given=given, f=f, kind=kind: kind(**{**given, f.name: ""}), f"{kind.layer}.{f.name}")


def test_what_can_be_kept_of_a_document_follows_from_the_interaction():
    cross = CrossEncoderRelease("m", "t", "refuse", "identity", "logits")
    bi = BiEncoderRelease("e", "e", 4, 4, "cosine")
    late = LateInteractionRelease("content", "content", "p", "lowest_row", "rows", True)
    for layer in ("contextual", "vector"):
        refused(lambda layer=layer: admit_document_state(cross, layer), "cache.layer")
        admit_document_state(bi, layer)
        admit_document_state(late, layer)
    for release in (cross, bi, late):
        refused(lambda release=release: admit_document_state(release, "score"), "cache.layer")
    refused(lambda: admit_document_state("bi_encoder", "vector"), "interaction")
