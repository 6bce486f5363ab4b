"""Which tensors, and which rows of them, a run may change: stated before it starts, verified after it ends."""
import hashlib
from dataclasses import dataclass, field

import numpy as np

from .below import HEAD_OF, Parameters

HEAD_TENSORS = {"tag": ("tag_head",), "role": ("role_head",), "doc": ("doc_head",), "pointer": ("rel_q", "rel_k")}
# docextract has no dropout and no running statistics: its forward is the same in training and in inference.
MODULE_MODES = {"dropout": "none", "statistics": "none"}


class ContractError(RuntimeError):
    """A value outside the trainable set changed, or the set is not the one that was stated."""


@dataclass(frozen=True)
class TrainableSet:
    """The tensors a run trains, in the model's order, and what it must leave alone.

    names : trainable tensors · scales : learning-rate scale of each · decays : whether weight decay applies ·
    frozen_rows : tensor → its rows (first axis) that stay as they are · frozen_digest : SHA-256 over the bytes of
    everything frozen before the run
    """

    names: tuple[str, ...]
    scales: tuple[float, ...]
    decays: tuple[bool, ...]
    frozen_digest: str
    frozen_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def reaches_backbone(self) -> bool:
        """Whether a gradient has to pass the heads."""
        return any(not is_head(name) for name in self.names)

    def parts(self, tensors) -> list[np.ndarray]:
        """Views of what is trained: a tensor, or each stretch of its rows that are not frozen, in order."""
        views = []
        for name in self.names:
            views += [tensors[name][rows] for rows in self._stretches(name, len(tensors[name]))]
        return views

    def part_settings(self, tensors) -> list[tuple[str, float, bool]]:
        """(name, scale, decay) of each of `parts`."""
        return [(name, scale, decay) for name, scale, decay in zip(self.names, self.scales, self.decays, strict=True)
                for _ in self._stretches(name, len(tensors[name]))]

    def _stretches(self, name, rows):
        frozen = self.frozen_rows.get(name)
        if not frozen:
            return [slice(None)]
        cuts = [-1, *frozen, rows]
        return [slice(a + 1, b) for a, b in zip(cuts, cuts[1:]) if a + 1 < b]

    def verify(self, parameters: Parameters) -> None:
        """ContractError unless every frozen value still has the bytes it had."""
        if frozen_digest(parameters, self.names, self.frozen_rows) != self.frozen_digest:
            raise ContractError("a value outside the trainable set changed during the run")

    def to_json(self) -> dict:
        """The contract as JSON: allowlist, frozen hash, modes, first and last trainable node in forward order."""
        return {"trainable": [{"name": n, "scale": s, "decay": d}
                              for n, s, d in zip(self.names, self.scales, self.decays, strict=True)],
                "frozen_rows": {name: list(rows) for name, rows in self.frozen_rows.items()},
                "frozen_digest": self.frozen_digest, "modes": MODULE_MODES,
                "first": self.names[0], "last": self.names[-1]}


def is_head(name: str) -> bool:
    """Whether a tensor belongs to a task head."""
    return name.startswith(("tag_head", "role_head", "doc_head", "rel_"))


def frozen_digest(parameters: Parameters, trainable, frozen_rows=None) -> str:
    """SHA-256 (hex) over name and bytes of every tensor not named, and of the frozen rows, in the model's order."""
    chosen, frozen_rows, h = set(trainable), frozen_rows or {}, hashlib.sha256()
    for name, array in parameters.items():
        if name in chosen:
            array = array[list(frozen_rows.get(name, ()))]
        if array.size:
            h.update(name.encode() + b"\0" + array.astype("<f4").tobytes())
    return h.hexdigest()


def trainable_set(parameters: Parameters, active_losses, backbone_scale: float, frozen_rows=None) -> TrainableSet:
    """The set that the seed's rules give.

    backbone_scale 0: the tag head and its bias only. Above 0: every tensor the active losses reach, the heads whose own
    loss is on at scale 1, everything else at backbone_scale. frozen_rows: tensor → rows to leave as they are.
    """
    heads = {HEAD_OF[name] for name in active_losses}
    on = {part for head in heads for part in HEAD_TENSORS[head]}
    scales = {}
    for spec in parameters.specs:
        part = spec.name.split(".")[0]
        if spec.group == "head":
            wanted = part in on
        else:  # without blocks nothing reads the pair bias
            wanted = backbone_scale > 0 and (parameters.config.num_hidden_layers > 0 or not part.startswith("pair"))
        if wanted:
            scales[spec.name] = 1.0 if spec.group == "head" else backbone_scale
    return named_set(parameters, scales, frozen_rows)


def scaled_set(parameters, backbone_scale: float, frozen_rows=None) -> TrainableSet:
    """Every tensor: heads at scale 1, the rest at backbone_scale; heads alone when that is 0."""
    scales = {spec.name: 1.0 if spec.group == "head" else backbone_scale for spec in parameters.specs
              if spec.group == "head" or backbone_scale > 0}
    return named_set(parameters, scales, frozen_rows)


def named_set(parameters: Parameters, scales: dict[str, float], frozen_rows=None) -> TrainableSet:
    """A set by an explicit allowlist: tensor name → learning-rate scale above 0, and rows of them to leave alone.

    ValueError: an unknown name, a scale that is not above 0, nothing named, rows of a tensor that is not trained or
    that it does not have, a tensor with all its rows frozen."""
    known = {spec.name for spec in parameters.specs}
    for name, scale in scales.items():
        if name not in known:
            raise ValueError(f"trainable tensor {name!r} does not belong to this model")
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale of {name} = {scale}: expected a finite number above 0")
    if not scales:
        raise ValueError("the trainable set is empty")
    rows = {}
    for name, chosen in (frozen_rows or {}).items():
        if name not in scales:
            raise ValueError(f"frozen rows of {name}: it is not a trainable tensor")
        rows[name] = tuple(sorted({int(row) for row in chosen}))
        count = len(parameters[name])
        if rows[name] and not 0 <= rows[name][0] <= rows[name][-1] < count:
            raise ValueError(f"frozen rows of {name} = {list(rows[name])}: expected 0 to {count - 1}")
        if len(rows[name]) == count:
            raise ValueError(f"every row of {name} is frozen: leave it out of the trainable set")
    rows = {name: chosen for name, chosen in rows.items() if chosen}
    specs = [spec for spec in parameters.specs if spec.name in scales]
    names = tuple(spec.name for spec in specs)
    return TrainableSet(names, tuple(float(scales[n]) for n in names), tuple(s.decay for s in specs),
                        frozen_digest(parameters, names, rows), rows)
