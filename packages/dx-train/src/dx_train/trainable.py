"""Which tensors, and which rows of them, a run may change: stated before it starts, verified after it ends."""
import hashlib
from dataclasses import dataclass, field

import numpy as np

from .below import HEAD_OF, Parameters

HEAD_TENSORS = {"tag": ("tag_head",), "role": ("role_head",), "doc": ("doc_head",), "pointer": ("rel_q", "rel_k")}
# docextract has no dropout and no running statistics: its forward is the same in training and in inference. A model
# that has modes says them in its attribute `modes`.
MODULE_MODES = {"dropout": "none", "statistics": "none"}


class ContractError(RuntimeError):
    """A value outside the trainable set changed, or the set is not the one that was stated."""


@dataclass(frozen=True)
class TrainableSet:
    """The tensors a run trains, in the model's order, and what it must leave alone.

    names : trainable tensors · scales : learning-rate scale of each · decays : whether weight decay applies ·
    frozen_digest : SHA-256 over names and bytes of everything frozen before the run ·
    frozen_rows : tensor → its rows (first axis) that stay as they are · frozen : names of the tensors that are frozen
    altogether · nodes : what the trainable tensors belong to, in forward order · reaches_backbone : whether a gradient
    has to pass the heads · modes : the model's switches that are no parameters (dropout, running statistics)
    """

    names: tuple[str, ...]
    scales: tuple[float, ...]
    decays: tuple[bool, ...]
    frozen_digest: str
    frozen_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    reaches_backbone: bool = True
    modes: dict[str, str] = field(default_factory=lambda: dict(MODULE_MODES))

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

    def verify(self, parameters: Parameters, modes=None) -> None:
        """ContractError unless every frozen value still has the bytes it had and the modes are those stated."""
        if frozen_digest(parameters, self.names, self.frozen_rows) != self.frozen_digest:
            raise ContractError("a value outside the trainable set changed during the run")
        if modes is not None and dict(modes) != self.modes:
            raise ContractError(f"the modes are {dict(modes)}: the contract states {self.modes}")

    def to_json(self) -> dict:
        """The contract as JSON: allowlist, what is frozen and its hash, modes, first and last trainable node in forward
        order. Backward has to go from the last node to the first."""
        return {"trainable": [{"name": n, "scale": s, "decay": d}
                              for n, s, d in zip(self.names, self.scales, self.decays, strict=True)],
                "frozen": list(self.frozen),
                "frozen_rows": {name: list(rows) for name, rows in self.frozen_rows.items()},
                "frozen_digest": self.frozen_digest, "modes": self.modes, "reaches_backbone": self.reaches_backbone,
                "first": self.nodes[0], "last": self.nodes[-1]}

    def require(self, stated: dict) -> None:
        """ContractError, saying what differs, unless this is the contract that was stated (`to_json`, or some of its
        entries)."""
        own, wrong = self.to_json(), []
        for key, want in stated.items():
            if key not in own:
                wrong.append(f"{key!r} is no entry of a contract")
            elif own[key] == want:
                continue
            elif key == "trainable":
                wrong += _differences({e["name"]: e for e in own[key]}, {e["name"]: e for e in want})
            else:
                wrong.append(f"{key} is {own[key]}, stated {want}")
        if wrong:
            raise ContractError("the trainable set is not the one that was stated: " + "; ".join(wrong))


def _differences(own, stated):
    """What differs between two allowlists, tensor by tensor."""
    return ([f"{name} is trainable and not stated" for name in own if name not in stated] +
            [f"{name} is stated and not trainable" for name in stated if name not in own] +
            [f"{name} has scale {own[name]['scale']} and decay {own[name]['decay']}, stated {stated[name]}"
             for name in own if name in stated and own[name] != stated[name]])


def forward_nodes(names) -> tuple[str, ...]:
    """The nodes that tensors, given in a model's order, belong to, in forward order: a tensor's name without its last
    part. The order is the model's, but for docextract's pair bias, which stands behind the blocks that read it."""
    nodes = list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))
    pair = [node for node in nodes if node in ("pair1", "pair2")]
    rest = [node for node in nodes if node not in pair]
    before = 0
    while before < len(rest) and rest[before].startswith(("char_", "pos_", "feat_proj", "emb_ln")):
        before += 1
    return (*rest[:before], *pair, *rest[before:]) if pair else tuple(nodes)


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


def scaled_set(parameters, backbone_scale: float, frozen_rows=None, modes=None) -> TrainableSet:
    """Every tensor: heads at scale 1, the rest at backbone_scale; heads alone when that is 0."""
    scales = {spec.name: 1.0 if spec.group == "head" else backbone_scale for spec in parameters.specs
              if spec.group == "head" or backbone_scale > 0}
    return named_set(parameters, scales, frozen_rows, modes)


def check_reached(trainable: TrainableSet, parameters: Parameters, active_losses) -> None:
    """ValueError for a trainable tensor that no active loss reaches: decay alone would move it."""
    reached = set(trainable_set(parameters, active_losses, 1.0).names)
    for name in trainable.names:
        if name not in reached:
            raise ValueError(f"trainable tensor {name}: none of the active losses ({', '.join(active_losses)}) reaches "
                             "it, so that weight decay alone would move it")


def named_set(parameters: Parameters, scales: dict[str, float], frozen_rows=None, modes=None) -> TrainableSet:
    """A set by an explicit allowlist: tensor name → learning-rate scale above 0, and rows of them to leave alone; for
    any model whose parameters have `specs` (name, decay, group: "head" or another). modes: the model's.

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
                        frozen_digest(parameters, names, rows), rows,
                        tuple(spec.name for spec in parameters.specs if spec.name not in scales), forward_nodes(names),
                        any(spec.group != "head" for spec in specs), dict(MODULE_MODES if modes is None else modes))
