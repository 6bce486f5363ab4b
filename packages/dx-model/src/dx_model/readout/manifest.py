"""The readout's record: everything that decides a result, admitted whole or refused with the field's name.

A backbone's files do not say which layer, rows, pool, labels or score a result came from. The record does; its digest
is its identity. What follows from other fields (widths, class count, label maps, the content id) is computed; a file
may repeat it, and then it must agree.
"""
import copy
import hashlib

from ..canonical_json import canonical
from ..strict_json import loads
from .attention_pooling import AttentionPool
from .errors import ReadoutError, require
from .geometry import Normalization
from .layers import LayerChoice
from .manifest_fields import DERIVED_NAMES, FIELDS, LABELLED, MIGRATION_STATES, OUTPUT_KINDS, SCORES_OF
from .pooling import Pooling
from .rows import RowTable
from .selection import EmptyRows

ALL_STATES = frozenset(MIGRATION_STATES)
OF_SCORES = frozenset(("thresholds", "calibration", "evaluation_baselines"))


def _object(value, name):
    require(isinstance(value, dict), name, value if value is None else type(value).__name__, "an object")
    return value


def _check_fields(record):
    """Every record and field of the table is there and right; nothing else is."""
    for part in sorted(_object(record, "manifest")):
        require(part in FIELDS, part, "given", "one of the records " + ", ".join(FIELDS))
    for part, fields in FIELDS.items():
        given = _object(record.get(part), part)
        for name in sorted(given):
            require(name in fields or f"{part}.{name}" in DERIVED_NAMES, f"{part}.{name}", given[name],
                    "a field of the record")
        for name, rule in fields.items():
            require(name in given, f"{part}.{name}", None, rule.expected)
            require(rule.test(given[name]), f"{part}.{name}", given[name], rule.expected)


def _modes(readout):
    sizes = readout["attention"] or {}
    for name in ("attention", "multi_hop_attention"):
        require(name not in readout["pooling"] or sizes, "readout.attention", readout["attention"],
                f"size and hops of the pool {name}")
    require("attention" not in readout["pooling"] or sizes["hops"] == 1, "readout.attention.hops", sizes.get("hops"),
            "1: several are multi_hop_attention")
    require(("weighted_mean" in readout["pooling"]) == (readout["weights"] is not None), "readout.weights",
            readout["weights"], "the name of the rule that makes the weights, for weighted_mean and only for it")
    return [AttentionPool(sizes["size"], sizes["hops"], name=name) if "attention" in name and name != "latent_attention"
            else name for name in readout["pooling"]]


def _derive(record):
    """dotted name → computed value of every field that follows from others."""
    readout, output, width = record["readout"], record["output"], record["contextual_state"]["width"]
    derived, pooled = {}, OUTPUT_KINDS[output["kind"]][0] != "kept"
    require(pooled == bool(readout["pooling"]), "readout.pooling", readout["pooling"],
            "at least one mode: none is implied" if pooled else f"no mode: {output['kind']} keeps its rows")
    if readout["pooling"]:
        modes = [m for m in _modes(readout) if m != "latent_attention"]  # that one keeps the width
        width = (Pooling(tuple(modes)).width(width) if modes else 0) + width * (len(readout["pooling"]) - len(modes))
        derived["readout.pooled_width"] = width
    if readout["projection"] is not None:
        derived["readout.projection.in_features"] = width
        width = readout["projection"]["out_features"]
    labels = output["labels"]
    require((labels is not None) or output["kind"] not in LABELLED, "output.labels", labels,
            f"the ordered labels of {output['kind']}")
    if labels is not None:
        derived["output.label2id"] = {label: i for i, label in enumerate(labels)}
        derived["output.id2label"] = {str(i): label for i, label in enumerate(labels)}
        require(output["null_label"] is None or output["null_label"] in labels, "output.null_label",
                output["null_label"], "one of the labels")
    axis = OUTPUT_KINDS[output["kind"]][1][-1]
    sizes = {"D": width, "C": 1 if labels is None else len(labels), "K": 1, 2: 2}
    derived["output.dimension"] = sizes[axis]
    return derived


def _lookup(record, name):
    """The value under a dotted name, or a marker when it is not there."""
    value = record
    for key in name.split("."):
        if not isinstance(value, dict) or key not in value:
            return _ABSENT
        value = value[key]
    return value


_ABSENT = object()


def _without_observed(record):
    """(the record without runtime.observed, runtime.observed)."""
    runtime = _object(record, "manifest").get("runtime")
    if not isinstance(runtime, dict) or "observed" not in runtime:
        return record, {}
    observed = copy.deepcopy(_object(runtime["observed"], "runtime.observed"))
    return record | {"runtime": {name: value for name, value in runtime.items() if name != "observed"}}, observed


def _without_derived(record):
    clean = copy.deepcopy(record)
    for name in sorted(DERIVED_NAMES):
        *path, last = name.split(".")
        value = clean
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value.pop(last, None)
    return clean


def _check_rules(record):
    """What several fields say together."""
    rows, readout, output, score = (record[k] for k in ("rows", "readout", "output", "score"))
    require(rows["mask_source"] == "content_mask" or (rows["include_special"] and rows["include_prompt"]),
            "rows.mask_source", rows["mask_source"], "content_mask: the attention mask leaves no visible row out")
    kind, state = output["kind"], record["contextual_state"]
    LayerChoice(tuple(state["layers"]), state["layers_kind"])
    require(score["type"] in SCORES_OF[kind], "score.type", score["type"], f"{', '.join(SCORES_OF[kind])} for {kind}")
    require(score["temperature"] is None or score["type"] in ("softmax_probability", "sigmoid_probability"),
            "score.temperature", score["temperature"], f"null: {score['type']} divides no logits")
    require(score["type"] != "cosine" or readout["normalize"]["kind"] == "l2" or score["normalizes_operands"],
            "score.type", "cosine", "readout.normalize.kind l2, or score.normalizes_operands: else it is a dot product")
    require(kind not in ("token_classification", "extractive_qa") or rows["offsets_required"], "rows.offsets_required",
            False, f"true: {kind} goes back to source characters")
    require(kind != "token_classification" or rows["pieces"] is not None, "rows.pieces", None,
            "the policy for words of several rows")
    migration, parent = record["release"]["migration"], record["release"]["parent"]
    require((migration is None) == (parent is None), "release.migration", migration,
            "a declaration exactly when there is a parent")
    if migration is not None:
        for state in MIGRATION_STATES:
            require(state in migration, f"release.migration.{state}", None, "true (still valid) or false")
        require(set(migration) == ALL_STATES, "release.migration", sorted(migration), ", ".join(MIGRATION_STATES))


class Manifest:
    """An admitted record. Equal identities have equal digests; a record is never changed, another one is made.

    Attributes
    ----------
    derived : dotted name → value computed from other fields
    content_id : SHA-256 of the canonical JSON (RFC 8785) of the record without its derived fields and evidence
    observed : what a measured run found (runtime.observed of the record): evidence, no part of the identity, and
        refused where it contradicts what is declared
    """

    def __init__(self, record: dict):
        record, self.observed = _without_observed(record)
        _check_fields(record)
        self._record = _without_derived(record)
        _check_rules(self._record)
        self.derived = _derive(self._record)
        self.content_id = hashlib.sha256(canonical(self._record)).hexdigest()
        self.derived["release.content_id"] = self.content_id
        for name in sorted(DERIVED_NAMES):
            given = _lookup(record, name)
            if given is not _ABSENT:
                computed = self.derived.get(name, "nothing: the field has no meaning here")
                require(given == computed, name, given, f"{computed!r}, which follows from other fields")
        self.check_observed(self.observed)

    def __getitem__(self, name: str):
        """A copy of the value under a dotted name."""
        value = self.derived[name] if name in self.derived else _lookup(self._record, name)
        if value is _ABSENT:
            raise KeyError(name)
        return copy.deepcopy(value)

    def __eq__(self, other):
        return isinstance(other, Manifest) and self.content_id == other.content_id

    def __hash__(self):
        return int(self.content_id[:16], 16)

    def to_json(self) -> bytes:
        """Canonical JSON with content id and evidence: what `admit_manifest` reads."""
        record = copy.deepcopy(self._record)
        if self.observed:
            record["runtime"]["observed"] = self.observed
        record["release"]["content_id"] = self.content_id
        return canonical(record)

    def changed(self, **records) -> "Manifest":
        """Another manifest with these fields: changed(readout={"pooling": ["first"]})."""
        record = copy.deepcopy(self._record)
        for part, fields in records.items():
            require(part in FIELDS, part, "given", "one of the records " + ", ".join(FIELDS))
            record[part] |= fields
        return Manifest(record)

    def check(self, part: str, **observed) -> None:
        """Refuses what was loaded when it is not what the record declares: check("artifact", head_sha256=…)."""
        for name, value in observed.items():
            field = f"{part}.{name}"
            declared = self.derived[field] if field in self.derived else _lookup(self._record, field)
            require(declared is not _ABSENT, field, value, "a field of the record")
            require(value == declared, field, value, f"{declared!r}, as declared")

    def check_files(self, files: dict) -> None:
        """Refuses bytes that are not those the release names: files is name → bytes, all of them."""
        declared = self._record["release"]["files"]
        for name in sorted(set(declared) | set(files)):
            found = hashlib.sha256(files[name]).hexdigest() if name in files else None
            require(found == declared.get(name), f"release.files.{name}", found, f"{declared.get(name)}, as declared")

    def check_observed(self, observed: dict) -> None:
        """Compares what a run measured with what is declared.

        Parameters
        ----------
        observed : numerics_version, framework_revision, device, compute_dtype, accumulation_dtype, inputs (names the
            exported graph takes) and normalizes (it returns unit vectors): each compared when given
        """
        places = {"numerics_version": "runtime", "framework_revision": "runtime", "device": "runtime",
                  "backend": "runtime", "export_format": "runtime", "compute_dtype": "contextual_state",
                  "accumulation_dtype": "contextual_state", "parameter_dtype": "contextual_state"}
        for name in sorted(observed):
            if name in places:
                self.check(places[name], **{name: observed[name]})
            elif name == "inputs":
                need = {"attention_mask", self._record["rows"]["mask_source"]}
                missing = sorted(need - set(observed["inputs"]))
                require(not missing, "observed.inputs", sorted(observed["inputs"]), f"{', '.join(missing)} among them")
            elif name == "normalizes":
                require(observed[name] == (self._record["readout"]["normalize"]["kind"] == "l2"), "observed.normalizes",
                        observed[name], f"what readout.normalize says: {self._record['readout']['normalize']['kind']}")
            else:
                raise ReadoutError(f"observed.{name}", observed[name], "a measurement that the record declares")

    def output_shape(self, batch: int, rows: int = 0, candidates: int = 0) -> tuple[int, ...]:
        """Shape of the typed result of a batch."""
        sizes = {"B": batch, "S": rows, "K": candidates}
        return tuple(sizes.get(axis, self.derived["output.dimension"])
                     for axis in OUTPUT_KINDS[self._record["output"]["kind"]][1])

    def threshold(self, score_type: str):
        """The declared threshold (None: there is none, and none is made up), for scores of its own type only."""
        self.check("score", type=score_type)
        return self._record["score"]["threshold"]

    def layer_choice(self) -> LayerChoice:
        """The declared layers."""
        return LayerChoice(tuple(self["contextual_state.layers"]), self["contextual_state.layers_kind"])

    def pooling(self) -> Pooling:
        """The declared pools. "latent_attention" is a block of its own (dx_model.readout.LatentAttention)."""
        require("latent_attention" not in self._record["readout"]["pooling"], "readout.pooling", "latent_attention",
                "pools of rows: run the latent block, then its mean")
        return Pooling(tuple(_modes(self._record["readout"])), EmptyRows(self._record["readout"]["empty"]))

    def normalization(self) -> Normalization | None:
        """The declared normalisation of vectors, None when there is none."""
        declared = self._record["readout"]["normalize"]
        return Normalization(declared["epsilon"]) if declared["kind"] == "l2" else None

    def row_mask(self, table: RowTable):
        """(S,) bool rows of the readout, from the row table; refused when the table lacks what is declared."""
        rows = self._record["rows"]
        if rows["offsets_required"]:
            table.need_offsets("the declared readout")
        require(not rows["word_ids_required"] or (table.word_ids >= 0).any(), "rows.word_ids", None,
                "word ids of the tokenizer: the declared readout needs them")
        mask = table.attention
        if not rows["include_special"]:
            mask = mask & ~table.special
        return mask if rows["include_prompt"] else mask & table.policy


def admit_manifest(data: bytes | str) -> Manifest:
    """Manifest from JSON: every field there, right and consistent, the content id its digest; else ReadoutError."""
    record = loads(data.decode("utf-8") if isinstance(data, bytes) else data)
    manifest = Manifest(record)
    require(_lookup(record, "release.content_id") == manifest.content_id, "release.content_id",
            record["release"].get("content_id"), f"{manifest.content_id}, the digest of the content")
    return manifest


def manifest_changes(old: Manifest, new: Manifest) -> list[str]:
    """Dotted names of the fields that differ, in the order of the record. release.* is not looked at."""
    return [f"{part}.{name}" for part in FIELDS for name in FIELDS[part]
            if part != "release" and old[f"{part}.{name}"] != new[f"{part}.{name}"]]


def invalidated_states(old: Manifest, new: Manifest) -> frozenset[str]:
    """States that cannot stay valid from old to new: all of them when a vector can move; thresholds, calibration and
    baselines when only scores or labels do; the baselines when a threshold does."""
    lost = frozenset()
    for field in manifest_changes(old, new):
        part = field.split(".")[0]
        if part in ("artifact", "input", "rows", "contextual_state", "readout"):
            lost |= ALL_STATES
        elif field == "score.threshold":
            lost |= {"evaluation_baselines"}
        elif part in ("output", "score"):
            lost |= OF_SCORES
    return lost


def check_migration(old: Manifest, new: Manifest) -> None:
    """Refuses a release whose migration calls valid what the change invalidates, or that names another parent."""
    require(new["release.parent"] == old.content_id, "release.parent", new["release.parent"], old.content_id)
    lost = invalidated_states(old, new)
    for state in MIGRATION_STATES:
        require(not (new["release.migration"][state] and state in lost), f"release.migration.{state}", True,
                f"false: changed were {', '.join(manifest_changes(old, new))}")
