"""Lineage: the ordered stages that made a checkpoint. The same architecture after other stages, or the same stages in
another order, is another representation."""
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ..canonical_json import canonical
from .errors import require

# What the published families say they are, in order (C-Pack's BGE; LLM2Vec; NV-Embed; RetroMAE).
FAMILIES = {
    "c-pack": ("embedding_pretraining", "general_contrastive", "task_tuning"),
    "llm2vec": ("causal_pretraining", "bidirectional_visibility", "masked_next_token", "unsupervised_contrastive"),
    "nv-embed": ("causal_pretraining", "retrieval_contrastive", "mixed_contrastive"),
    "retromae": ("masked_reconstruction",),
}

TRAINING_STATE = ("decoder.", "language_head.", "sampler.", "optimizer.")  # prefixes of names that no release holds


@dataclass(frozen=True)
class Stage:
    """One stage: kind · data : revisions of the data it read · procedure : identity of miner, instructions, losses and
    settings · checkpoint : digest of the tensors it ended with · in_batch_negatives : whether other examples of a batch
    were admitted as negatives (contrastive stages), else None"""

    kind: str
    data: tuple[str, ...]
    procedure: str
    checkpoint: str
    in_batch_negatives: bool | None = None


@dataclass(frozen=True)
class Lineage:
    """Stages from the first to the last; `exported` names the state that the release holds."""

    stages: tuple[Stage, ...]
    exported: tuple[str, ...] = ()

    def ids(self) -> list[str]:
        """A digest a stage that covers it and everything before it, so an order or a stage left out shows."""
        found, before = [], ""
        for stage in self.stages:
            before = hashlib.sha256(canonical({"before": before, "stage": asdict(stage)})).hexdigest()
            found.append(before)
        return found

    def digest(self) -> str:
        """SHA-256 (hex) of stages and exported state."""
        return hashlib.sha256(canonical({"stages": self.ids(), "exported": list(self.exported)})).hexdigest()


def admit_lineage(lineage: Lineage, family: str, checkpoint: str, tensors: Sequence[str] = ()) -> None:
    """ReadoutError unless the lineage is what the family's name promises and ends in this checkpoint.

    family : a key of FAMILIES · checkpoint : digest of the tensors at hand · tensors : names in the release; training
    state among them (a decoder, a language head, a corruption sampler, an optimizer) is refused
    """
    require(family in FAMILIES, "lineage.family", family, ", ".join(FAMILIES))
    kinds = tuple(stage.kind for stage in lineage.stages)
    require(kinds == FAMILIES[family], "lineage.stages", kinds, f"{FAMILIES[family]}, in this order")
    for i, stage in enumerate(lineage.stages):
        for name in ("data", "procedure", "checkpoint"):
            missing = not getattr(stage, name) and not (stage.kind == "bidirectional_visibility" and name == "data")
            require(not missing, f"lineage.stages[{i}].{name}", getattr(stage, name), "a revision")
        contrastive = stage.kind.endswith("_contrastive")
        require(contrastive == (stage.in_batch_negatives is not None), f"lineage.stages[{i}].in_batch_negatives",
                stage.in_batch_negatives, "True or False for a contrastive stage, None for others")
        require(not (stage.kind == "mixed_contrastive" and stage.in_batch_negatives),
                f"lineage.stages[{i}].in_batch_negatives", True,
                "False: in a mixed stage other examples of the batch can be of the same class")
    require(lineage.stages[-1].checkpoint == checkpoint, "lineage.checkpoint", checkpoint,
            f"{lineage.stages[-1].checkpoint}, where the last stage ended")
    for name in tensors:
        require(not name.startswith(TRAINING_STATE), "lineage.exported", name,
                "inference state only: this belongs to training")
