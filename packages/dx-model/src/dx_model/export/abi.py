"""The interface of an exported graph: named inputs and outputs with named axes, one declared family, and what its
numbers mean. Nothing is to be guessed from a rank: [B, S, C] can be token classes, token vectors or a hidden state."""
from dataclasses import asdict, dataclass

from ..readout.errors import ReadoutError, require
from ..readout.manifest import Manifest

DYNAMIC = ("batch", "sequence", "words", "distinct")  # axes whose size a call chooses; all others are the release's
# family → its outputs: name → axes
FAMILIES = {
    "sequence_logits": {"sequence_logits": ("batch", "classes")},
    "regression": {"regression": ("batch", "outputs")},
    "token_logits": {"token_logits": ("batch", "sequence", "classes")},
    "span_logits": {"start_logits": ("batch", "sequence"), "end_logits": ("batch", "sequence")},
    "embeddings": {"embeddings": ("batch", "embedding_dim")},
    "token_vectors": {"token_vectors": ("batch", "sequence", "projection_dim"), "row_mask_out": ("batch", "sequence")},
    "docextract": {"tag": ("words", "tags"), "role": ("words", "roles"), "doc": ("doc_types",),
                   "item": ("words", "words"), "key_value": ("words", "words")},
}
FAMILY_OF = {"classification": "sequence_logits", "multilabel": "sequence_logits", "pair_score": "sequence_logits",
             "regression": "regression", "token_classification": "token_logits", "extractive_qa": "span_logits",
             "embedding": "embeddings", "token_vectors": "token_vectors"}
TYPES = ("int64", "float32", "bool")
FORMAT = 1


@dataclass(frozen=True)
class Tensor:
    """An input or output: its type, and axes by name; a constant axis has its size in the ABI's `sizes`."""

    name: str
    dtype: str
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Semantics:
    """What the outputs mean: all that a consumer would otherwise reconstruct.

    score_type : of the outputs as they leave the graph · row_mask : which rows the readout reads, or "all" ·
    normalization_stage : "none", or where length 1 is made in the graph · calibrator, threshold : identities and values
    to be applied after the graph, None where there is none · tie_rule · labels : of the constant axis, in order
    """

    score_type: str
    row_mask: str
    normalization_stage: str
    calibrator: str | None
    threshold: float | None
    tie_rule: str
    labels: tuple[str, ...] | None


@dataclass(frozen=True)
class ABI:
    """family : one of FAMILIES · inputs, outputs : tensors · sizes : constant axis → size · semantics"""

    family: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: dict[str, int]
    semantics: Semantics

    def __post_init__(self):
        require(self.family in FAMILIES, "abi.family", self.family, ", ".join(FAMILIES))
        wanted = FAMILIES[self.family]
        found = {t.name: t.axes for t in self.outputs}
        for name, axes in wanted.items():
            require(found.get(name) == axes, f"abi.outputs.{name}", found.get(name),
                    f"axes {', '.join(axes)}: an output of {self.family}")
        require(len(self.outputs) == len(wanted), "abi.outputs", sorted(found),
                f"exactly those of {self.family}: {', '.join(wanted)}")
        names = [t.name for t in (*self.inputs, *self.outputs)]
        require(len(dict.fromkeys(names)) == len(names), "abi.names", names, "different names")
        for t in (*self.inputs, *self.outputs):
            require(t.dtype in TYPES, f"abi.{t.name}.dtype", t.dtype, ", ".join(TYPES))
            for axis in t.axes:
                require(axis in DYNAMIC or isinstance(self.sizes.get(axis), int), f"abi.{t.name}.axes", axis,
                        f"{', '.join(DYNAMIC)}, or a constant with its size")
        labels = self.semantics.labels
        size = self.sizes.get("classes")
        require(labels is None or size is None or len(labels) == size, "abi.labels", labels, f"{size} labels")

    def to_json(self) -> dict:
        def tensors(group):
            return [{"name": t.name, "dtype": t.dtype, "axes": list(t.axes)} for t in group]

        semantics = asdict(self.semantics)
        semantics["labels"] = None if self.semantics.labels is None else list(self.semantics.labels)
        return {"format": FORMAT, "family": self.family, "inputs": tensors(self.inputs),
                "outputs": tensors(self.outputs), "sizes": dict(self.sizes), "semantics": semantics}


def abi_from_json(record: dict) -> ABI:
    """The checked ABI of a record; ReadoutError names what is missing, unknown or does not hold."""
    try:
        require(record["format"] == FORMAT, "abi.format", record["format"], str(FORMAT))
        inputs, outputs = (tuple(Tensor(t["name"], t["dtype"], tuple(t["axes"])) for t in record[part])
                           for part in ("inputs", "outputs"))
        semantics = dict(record["semantics"])
        semantics["labels"] = None if semantics["labels"] is None else tuple(semantics["labels"])
        return ABI(record["family"], inputs, outputs, dict(record["sizes"]), Semantics(**semantics))
    except (KeyError, TypeError) as error:
        raise ReadoutError("abi", str(error), "every part of the interface and no other") from None


def readout_abi(manifest: Manifest, sizes: dict[str, int], calibrator: str | None = None) -> ABI:
    """The ABI of a manifest's readout over an encoder.

    Inputs: input_ids, attention_mask, token_type_ids (batch, sequence), and row_mask where the readout reads other rows
    than the encoder sees: without it padding, inserted or prompt rows would come in.
    """
    kind = manifest["output.kind"]
    require(kind in FAMILY_OF, "output.kind", kind, f"one that can be exported: {', '.join(FAMILY_OF)}")
    family, rows = FAMILY_OF[kind], ("batch", "sequence")
    inputs = [Tensor("input_ids", "int64", rows), Tensor("attention_mask", "int64", rows),
              Tensor("token_type_ids", "int64", rows)]
    everything = manifest["rows.include_special"] and manifest["rows.include_prompt"]
    if not everything:
        inputs.append(Tensor("row_mask", "int64", rows))
    outputs = tuple(Tensor(name, "int64" if name == "row_mask_out" else "float32", axes)
                    for name, axes in FAMILIES[family].items())
    labels = manifest["output.labels"]
    after = {"classification": "logits", "multilabel": "logits", "pair_score": "logits", "regression": "values",
             "token_classification": "logits", "extractive_qa": "logits"}.get(kind, "vectors")
    stage = "pooled" if manifest["readout.normalize"]["kind"] == "l2" else "none"
    return ABI(family, tuple(inputs), outputs, sizes,
               Semantics(after, "attention_mask" if everything else "row_mask", stage, calibrator,
                         manifest["score.threshold"], manifest["score.tie_rule"],
                         None if labels is None else tuple(labels)))
