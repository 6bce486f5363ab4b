"""Releases that the interaction tests share."""
from dx_model.readout import BiEncoderRelease, CrossEncoderRelease, LateInteractionRelease, PairTemplate

TEMPLATE = PairTemplate(first=1, separator=2, max_length=12)


def cross(template=TEMPLATE, **changes):
    settings = {"model": "m", "pair_template_hash": template.digest(), "pair_truncation_policy": template.truncation,
                "activation": "sigmoid", "score_type": "sigmoid_probabilities"}
    return CrossEncoderRelease(**(settings | changes))


def bi(**changes):
    settings = {"query_release": "e1", "document_release": "e1", "query_vector_dimension": 3,
                "document_vector_dimension": 3, "metric_contract": "cosine"}
    return BiEncoderRelease(**(settings | changes))


def late(**changes):
    settings = {"query_row_policy": "content", "document_row_policy": "content", "projection_revision": "p1",
                "maxsim_tie_rule": "lowest_row", "document_token_artifact_schema": "rows.v1", "normalized_rows": False}
    return LateInteractionRelease(**(settings | changes))
