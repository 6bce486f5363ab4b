"""Layered keys of reusable state: contextual rows, vectors, scores, decisions; each layer holds the digest of the one
below, so a change moves the keys of its own layer and of those above, and of no other."""
from dataclasses import asdict, dataclass, fields

from ..below import NUMERICS_VERSION
from ..readout.errors import require
from ..readout.interaction import BiEncoderRelease, CrossEncoderRelease, LateInteractionRelease, record_digest
from ..readout.manifest import Manifest


class _Layer:
    layer = ""

    def __post_init__(self):
        for f in fields(self):
            value = getattr(self, f.name)
            require(isinstance(value, str) and value, f"{self.layer}.{f.name}", value,
                    'a text that is not empty ("none" where there is none)')

    def to_json(self) -> dict:
        return {"layer": self.layer, **asdict(self)}

    def digest(self) -> str:
        """SHA-256 (hex) of the record: the layer's release."""
        return record_digest(self.to_json())

    def key(self, source: str) -> str:
        """The key of one source's state. source : digest of what was read, windows' records included; for a score, of
        the pair."""
        require(isinstance(source, str) and source, f"{self.layer}.source", source, "the source's digest")
        return record_digest({"layer": self.layer, "release": self.digest(), "source": source})


@dataclass(frozen=True)
class ContextualRelease(_Layer):
    """What decides contextual rows: rendering (template, normalisation), tokenizer, backbone, adapter, positions (and
    windows), dtype schema, numerics."""

    rendering: str
    tokenizer: str
    backbone: str
    adapter: str
    positions: str
    dtype_schema: str
    numerics: str = str(NUMERICS_VERSION)
    layer = "contextual"


@dataclass(frozen=True)
class VectorRelease(_Layer):
    """What decides vectors or token vectors: contextual (the digest below), row policy, readout and projection,
    normalisation with its stage, dtype schema."""

    contextual: str
    row_policy: str
    readout: str
    normalization: str
    dtype_schema: str
    layer = "vector"


@dataclass(frozen=True)
class ScoreRelease(_Layer):
    """What decides scores: vector (the digest below), head or metric, score type, aggregation over windows."""

    vector: str
    head: str
    score_type: str
    aggregation: str = "none"
    layer = "score"


@dataclass(frozen=True)
class DecisionRelease(_Layer):
    """What decides decisions: score (the digest below), calibrator, threshold, tie rule, label map."""

    score: str
    calibrator: str
    threshold: str
    tie_rule: str
    labels: str
    layer = "decision"


LAYERS = ("contextual", "vector", "score", "decision")


@dataclass(frozen=True)
class LayeredRelease:
    """The four releases of one readout, each holding the digest of the one below."""

    contextual: ContextualRelease
    vector: VectorRelease
    score: ScoreRelease
    decision: DecisionRelease

    def __post_init__(self):
        for below, above in zip(LAYERS, LAYERS[1:]):
            want, got = getattr(self, below).digest(), getattr(getattr(self, above), below)
            require(got == want, f"{above}.{below}", got, f"{want}, the release below")

    def of(self, layer: str):
        require(layer in LAYERS, "layer", layer, ", ".join(LAYERS))
        return getattr(self, layer)


def layered_release(manifest: Manifest, *, calibrator: str = "none", positions: str = "rank",
                    aggregation: str = "none") -> LayeredRelease:
    """The layers of an admitted manifest.

    calibrator : its digest, or "none" · positions : the policy for positions and windows (WindowPolicy.digest(), …) ·
    aggregation : of windows' results. Every field of the manifest that decides a result is in exactly one layer.
    """
    record = {part: manifest[part] for part in ("artifact", "input", "rows", "contextual_state", "readout", "output",
                                                "score")}

    def of(part, *names):
        return record_digest({name: record[part][name] for name in names})

    artifact, score = record["artifact"], record["score"]
    formats = of("contextual_state", "parameter_dtype", "compute_dtype", "accumulation_dtype")
    contextual = ContextualRelease(
        of("input", "template", "truncation", "truncation_side", "max_length", "special_token_ids"),
        record["input"]["tokenizer_sha256"], artifact["backbone_sha256"], artifact["adapter"],
        record_digest({"positions": positions, "layers": record["contextual_state"]}), formats)
    vector = VectorRelease(contextual.digest(), record_digest(record["rows"]),
                           record_digest({k: v for k, v in record["readout"].items() if k != "normalize"}),
                           record_digest(record["readout"]["normalize"]), formats)
    head = record_digest([artifact["head_sha256"], artifact["task_revision"], artifact["objective"],
                          record["output"]["kind"], score["normalizes_operands"], score["temperature"]])
    scores = ScoreRelease(vector.digest(), head, score["type"], aggregation)
    decision = DecisionRelease(scores.digest(), calibrator, record_digest(score["threshold"]), score["tie_rule"],
                               record_digest([record["output"]["labels"], record["output"]["null_label"]]))
    return LayeredRelease(contextual, vector, scores, decision)


def invalidated_layers(old: LayeredRelease, new: LayeredRelease) -> tuple[str, ...]:
    """Layers whose stored state is not valid any more, from the lowest up."""
    return tuple(name for name in LAYERS if old.of(name).digest() != new.of(name).digest())


# What can be kept of a document whatever the query is, by where the two meet.
DOCUMENT_LAYERS = {CrossEncoderRelease: (), BiEncoderRelease: ("contextual", "vector"),
                   LateInteractionRelease: ("contextual", "vector")}


def admit_document_state(interaction, layer: str) -> None:
    """ReadoutError when a document's state of this layer would depend on the query: none of a cross-encoder's can be
    kept, no setting changes that."""
    require(type(interaction) in DOCUMENT_LAYERS, "interaction", type(interaction).__name__, "a release of a kind")
    allowed = DOCUMENT_LAYERS[type(interaction)]
    require(layer in allowed, "cache.layer", layer, f"{' or '.join(allowed) or 'nothing'}: what a {interaction.kind} "
            "makes of a document without a query")
