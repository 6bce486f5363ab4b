"""Where query and document may meet: three contracts, their records and their admission.

A cross-encoder lets them meet in every layer, a bi-encoder after one pooled vector a side, late interaction after the
rows of each side. What can be kept of a document follows from that alone: nothing, one vector, its rows.
"""
import hashlib
from dataclasses import asdict, dataclass, fields

from ..canonical_json import canonical
from .errors import ReadoutError, require
from .scores import ScoreType

# What a head's logits become under an activation.
ACTIVATIONS = {"identity": ScoreType.LOGIT.value, "sigmoid": ScoreType.SIGMOID_PROBABILITY.value,
               "softmax": ScoreType.SOFTMAX_PROBABILITY.value}
TRUNCATIONS = ("only_first", "only_second", "longest_first", "refuse")
METRICS = ("cosine", "dot", "squared_l2")
TIE_RULES = ("lowest_row",)  # equal similarities: the first row wins and takes the gradient


def record_digest(value) -> str:
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


class _Release:
    """What the three records share: JSON, digest, admission."""

    kind = ""

    def to_json(self) -> dict:
        """The record as plain JSON, with its kind."""
        return {"kind": self.kind, **asdict(self)}

    def digest(self) -> str:
        """SHA-256 (hex) of the record's canonical JSON: the identity of the release."""
        return record_digest(self.to_json())

    def _filled(self, *names):
        for name in names:
            require(bool(getattr(self, name)), f"interaction.{name}", getattr(self, name), "something: it is part of "
                    f"what a {self.kind} release is")

    def _one_of(self, name, values):
        require(getattr(self, name) in values, f"interaction.{name}", getattr(self, name), ", ".join(values))


@dataclass(frozen=True)
class CrossEncoderRelease(_Release):
    """Query and document in one sequence. No state of a document is valid for another query.

    model : identity of encoder, readout and head · pair_template_hash : PairTemplate.digest() ·
    pair_truncation_policy : which side gives way · activation : identity, sigmoid or softmax, applied to the
    head's output · score_type : what comes out, as the activation says · document_state_reusable : False
    """

    model: str
    pair_template_hash: str
    pair_truncation_policy: str
    activation: str
    score_type: str
    document_state_reusable: bool = False
    kind = "cross_encoder"

    def admit(self) -> None:
        """ReadoutError naming the field that does not hold."""
        require(self.document_state_reusable is False, "interaction.document_state_reusable",
                self.document_state_reusable, "False: joint rows of a document belong to their query")
        self._filled("model", "pair_template_hash", "pair_truncation_policy")
        self._one_of("pair_truncation_policy", TRUNCATIONS)
        self._one_of("activation", ACTIVATIONS)
        require(self.score_type == ACTIVATIONS[self.activation], "interaction.score_type", self.score_type,
                f"{ACTIVATIONS[self.activation]}, which is what the activation {self.activation} gives")


@dataclass(frozen=True)
class BiEncoderRelease(_Release):
    """One vector a side, compared by a metric. Document vectors are valid for every query of the release.

    query_release, document_release : identities of the two encoders with their pools (equal when tied) ·
    query_template, document_template : texts with one {text} · tied : one encoder serves both sides
    """

    query_release: str
    document_release: str
    query_vector_dimension: int
    document_vector_dimension: int
    metric_contract: str
    query_template: str = "{text}"
    document_template: str = "{text}"
    tied: bool = True
    kind = "bi_encoder"

    def admit(self) -> None:
        """ReadoutError naming the field that does not hold."""
        self._filled("query_release", "document_release", "metric_contract")
        require(self.query_vector_dimension == self.document_vector_dimension > 0,
                "interaction.document_vector_dimension", self.document_vector_dimension,
                f"{self.query_vector_dimension}, the query's, and above 0")
        self._one_of("metric_contract", METRICS)
        for name in ("query_template", "document_template"):
            require(getattr(self, name).count("{text}") == 1, f"interaction.{name}", getattr(self, name),
                    "a text with {text} in it once")
        require(self.tied == (self.query_release == self.document_release), "interaction.tied", self.tied,
                "True exactly when both sides are one release")


@dataclass(frozen=True)
class LateInteractionRelease(_Release):
    """Rows of each side, compared row by row.

    query_row_policy, document_row_policy : which rows are kept ("content", "attention", "expanded:N" for a query filled
    up to N rows that the encoder sees) · projection_revision : identity of encoder and projection · score :
    "maxsim", "mean_maxsim" or "log_sum_exp" with its temperature · document_token_artifact_schema : of stored rows
    """

    query_row_policy: str
    document_row_policy: str
    projection_revision: str
    maxsim_tie_rule: str
    document_token_artifact_schema: str
    normalized_rows: bool
    score: str = "maxsim"
    temperature: float | None = None
    kind = "late_interaction"

    def admit(self) -> None:
        """ReadoutError naming the field that does not hold."""
        self._filled("query_row_policy", "document_row_policy", "projection_revision", "maxsim_tie_rule",
                     "document_token_artifact_schema")
        self._one_of("maxsim_tie_rule", TIE_RULES)
        self._one_of("score", ("maxsim", "mean_maxsim", "log_sum_exp"))
        smooth = self.score == "log_sum_exp"
        require(smooth == (self.temperature is not None) and (not smooth or self.temperature > 0),
                "interaction.temperature", self.temperature,
                "a number above 0 for log_sum_exp, which is another score than maxsim; None otherwise")
        for name in ("query_row_policy", "document_row_policy"):
            policy = getattr(self, name)
            kind, _, count = policy.partition(":")
            fine = policy in ("content", "attention") or (name == "query_row_policy" and kind == "expanded"
                                                          and count.isdecimal() and count.isascii() and int(count) > 0)
            require(fine, f"interaction.{name}", policy, "content, attention or, for queries, expanded:N")


KINDS = {c.kind: c for c in (CrossEncoderRelease, BiEncoderRelease, LateInteractionRelease)}


def interaction_release(record: dict):
    """The admitted release of a JSON record; ReadoutError for an unknown kind, a missing or unknown field, or one that
    does not hold."""
    kind = record.get("kind")
    require(kind in KINDS, "interaction.kind", kind, ", ".join(KINDS))
    wanted = {f.name: f for f in fields(KINDS[kind])}
    for name in record:
        require(name == "kind" or name in wanted, f"interaction.{name}", record[name], f"no such field of a {kind}")
    try:
        release = KINDS[kind](**{name: value for name, value in record.items() if name != "kind"})
    except TypeError:
        missing = [name for name in wanted if name not in record]
        raise ReadoutError(f"interaction.{missing[0]}", None, f"a field that every {kind} release has") from None
    release.admit()
    return release
