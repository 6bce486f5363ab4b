"""The three interaction contracts: what a release must say, and what can be kept of a document."""
import numpy as np
import pytest
from dx_model.causal import CausalConfig, CausalEncoder, initial_tensors
from dx_model.readout import CrossEncoder, ReadoutError, interaction_release
from dx_model.readout.interaction_vectors import state_key
from late_case import TEMPLATE, bi, cross, late

MADE = {"cross_encoder": cross, "bi_encoder": bi, "late_interaction": late}


@pytest.mark.parametrize("kind", MADE)
def test_a_release_goes_through_json(kind):
    release = MADE[kind]()
    again = interaction_release(release.to_json())
    assert again == release and again.digest() == release.digest()


@pytest.mark.parametrize("kind, change, field", [
    ("cross_encoder", {"document_state_reusable": True}, "document_state_reusable"),
    ("cross_encoder", {"pair_template_hash": ""}, "pair_template_hash"),
    ("cross_encoder", {"pair_truncation_policy": ""}, "pair_truncation_policy"),
    ("cross_encoder", {"pair_truncation_policy": "middle"}, "pair_truncation_policy"),
    ("cross_encoder", {"score_type": "logits"}, "score_type"),
    ("bi_encoder", {"document_vector_dimension": 4}, "document_vector_dimension"),
    ("bi_encoder", {"query_release": ""}, "query_release"),
    ("bi_encoder", {"document_release": ""}, "document_release"),
    ("bi_encoder", {"metric_contract": ""}, "metric_contract"),
    ("bi_encoder", {"metric_contract": "angle"}, "metric_contract"),
    ("bi_encoder", {"document_release": "e2"}, "tied"),
    ("bi_encoder", {"query_template": "query:"}, "query_template"),
    ("late_interaction", {"query_row_policy": ""}, "query_row_policy"),
    ("late_interaction", {"document_row_policy": "expanded:8"}, "document_row_policy"),
    ("late_interaction", {"projection_revision": ""}, "projection_revision"),
    ("late_interaction", {"maxsim_tie_rule": ""}, "maxsim_tie_rule"),
    ("late_interaction", {"document_token_artifact_schema": ""}, "document_token_artifact_schema"),
    ("late_interaction", {"score": "log_sum_exp"}, "temperature"),
    ("late_interaction", {"temperature": 0.1}, "temperature"),
])
def test_admission_names_the_field(kind, change, field):
    with pytest.raises(ReadoutError) as caught:
        interaction_release(MADE[kind](**change).to_json())
    assert caught.value.field == f"interaction.{field}"


def test_unknown_kinds_and_fields_are_refused():
    for record, field in (({"kind": "poly_encoder"}, "kind"), (bi().to_json() | {"pool": "mean"}, "pool"),
                          ({"kind": "late_interaction"}, "query_row_policy")):
        with pytest.raises(ReadoutError) as caught:
            interaction_release(record)
        assert caught.value.field == f"interaction.{field}"


def test_every_part_of_a_release_is_in_its_digest():
    releases = [late(), late(document_row_policy="attention"), late(projection_revision="p2"),
                late(normalized_rows=True), late(score="mean_maxsim"), late(score="log_sum_exp", temperature=0.1)]
    assert len({r.digest() for r in releases}) == len(releases)


def test_a_cached_state_needs_every_part_of_its_key():
    """A new readout, tokenizer or adapter gives another key: nothing kept under the old one is found."""
    parts = {"source": "s", "rendering": "r", "tokenizer": "t", "backbone": "b", "adapter": "none", "row_policy": "c",
             "readout": "mean", "dtype_schema": "float32"}
    keys = {state_key(**parts), *(state_key(**(parts | {name: "other"})) for name in parts)}
    assert len(keys) == 1 + len(parts)
    for name in parts:
        with pytest.raises(ReadoutError, match=f"state.{name}"):
            state_key(**{k: v for k, v in parts.items() if k != name})


def test_what_can_be_kept_grows_from_nothing_to_one_vector_to_rows():
    """On one encoder that sees both ways: a document's rows change with the query that they stand beside, so a
    cross-encoder's are not kept, and a release that says otherwise is refused; alone they are the same every time."""
    config = CausalConfig(vocabulary=40, positions=32, hidden=16, heads=2, inner=24, blocks=2,
                          visibility="bidirectional")
    encoder, document = CausalEncoder(config, initial_tensors(config.tensors(), 6)), [5, 6, 7]
    joint = [encoder.forward([*query, *document])[-3:] for query in ([1], [9])]
    assert not np.array_equal(*joint)
    alone = encoder.forward(document)
    assert not np.array_equal(alone, joint[0]) and np.array_equal(alone, encoder.forward(document))
    kept = MADE["cross_encoder"](document_state_reusable=True)
    with pytest.raises(ReadoutError, match="interaction.document_state_reusable"):
        CrossEncoder(lambda table: np.zeros(1, np.float32), TEMPLATE, kept)
    assert not any(hasattr(CrossEncoder, name) for name in ("encode", "encode_document"))
