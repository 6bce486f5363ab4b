"""The record of a representation family: the parts that go together, and what each family cannot do without."""
from .errors import require
from .lineage import FAMILIES as LINEAGES
from .lineage import Lineage, admit_lineage
from .manifest_fields import FLAG, HASH, LAYER, NUMBER, TEXT, list_of, object_of, one_of, optional

PARTS = {
    "family": one_of("retromae", "dupmae", "c-pack", "e5", "prompteol", "echo", "llm2vec", "nv-embed", "moee"),
    "backbone_sha256": HASH,
    "visibility": one_of("causal", "bidirectional"),
    "query_template": TEXT,
    "document_template": TEXT,
    "layer": LAYER,
    "rows": one_of("sequence_row", "sequence_and_content", "end_token", "prompt_end", "second_copy", "content"),
    "pool": TEXT,
    "normalize": FLAG,
    "exported_state": list_of(TEXT, 1),
    "lineage_sha256": optional(HASH),
    "fusion": optional(object_of("alpha and score_type", alpha=NUMBER, score_type=one_of("cosine", "dot"))),
}
# family → part → what it must be
RULES = {
    "retromae": {"visibility": "bidirectional", "rows": "sequence_row"},
    "dupmae": {"visibility": "bidirectional", "rows": "sequence_and_content", "pool": "duplex"},
    "c-pack": {"rows": "sequence_row"},
    "e5": {"visibility": "causal", "rows": "end_token", "document_template": "{text}"},
    "prompteol": {"visibility": "causal", "rows": "prompt_end"},
    "echo": {"visibility": "causal", "rows": "second_copy", "pool": "mean"},
    "llm2vec": {"visibility": "bidirectional", "rows": "content", "pool": "mean"},
    "nv-embed": {"visibility": "bidirectional", "rows": "content", "pool": "latent_attention"},
    "moee": {},
}
# family → tensors that must be exported
EXPORTED = {"dupmae": ("cls.weight", "tokens.weight"),
            "nv-embed": ("latent.latents", "latent.query", "latent.key", "latent.value", "latent.up", "latent.down")}


def admit_family(record: dict, lineage: Lineage | None = None) -> dict:
    """The record, when it is one of its family; else a ReadoutError that names the part.

    Refused are parts exchanged for others of the same shape: a training decoder among the exported state, one route of
    a duplex vector, both copies of an echo, bidirectional rows without the stages that were trained for them, fused
    scores exported as one vector.

    Parameters
    ----------
    record : every part of PARTS; lineage_sha256 is the lineage's digest, or null for a family without one
    lineage : the stages of a family that `admit_lineage` knows, ending in what the record exports
    """
    for name in sorted(record):
        require(name in PARTS, f"family.{name}", record[name], "a part of the record")
    for name, rule in PARTS.items():
        require(name in record, f"family.{name}", None, rule.expected)
        require(rule.test(record[name]), f"family.{name}", record[name], rule.expected)
    family = record["family"]
    for name, value in RULES[family].items():
        require(record[name] == value, f"family.{name}", record[name], f"{value!r} for {family}")
    known, digest = family in LINEAGES, None if lineage is None else lineage.digest()
    require(known == (lineage is not None), "family.lineage", digest, "a lineage" if known else f"none for {family}")
    require(record["lineage_sha256"] == digest, "family.lineage_sha256", record["lineage_sha256"],
            f"{digest}, the lineage's digest")
    if known:
        checkpoints = [stage.checkpoint for stage in lineage.stages]
        admit_lineage(lineage, family, (checkpoints or [""])[-1], record["exported_state"])
        require(record["backbone_sha256"] in checkpoints, "family.backbone_sha256", record["backbone_sha256"],
                "a checkpoint of the lineage: these stages trained other weights")
        require(tuple(record["exported_state"]) == lineage.exported, "family.exported_state", record["exported_state"],
                f"{lineage.exported}, what the lineage exports")
    for tensor in EXPORTED.get(family, ()):
        require(tensor in record["exported_state"], "family.exported_state", record["exported_state"],
                f"{tensor} among it: {family} was trained with it")
    for name in ("query_template", "document_template"):
        copies = record[name].count("{text}")
        require(copies == (2 if family == "echo" else 1), f"family.{name}", record[name],
                "{text} twice" if family == "echo" else "{text} once")
    if family == "prompteol":
        require(not record["query_template"].endswith("{text}"), "family.query_template", record["query_template"],
                "the prompt behind {text}")
    fused = record["pool"] == "score_fusion"
    require(family == "moee" or not fused, "family.pool", record["pool"], f"a pool of {family}")
    require(fused == (record["fusion"] is not None), "family.fusion", record["fusion"],
            "alpha and score_type for score fusion, null otherwise")
    require(not fused or {"hidden_vector", "router_vector"} <= set(record["exported_state"]), "family.exported_state",
            record["exported_state"], "hidden_vector and router_vector: fused scores are not one vector")
    return record
