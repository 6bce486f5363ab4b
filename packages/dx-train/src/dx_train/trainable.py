"""Which tensors a run may change: stated before it starts, verified after it ends."""
import hashlib
from dataclasses import dataclass

from .below import HEAD_OF, Parameters

HEAD_TENSORS = {"tag": ("tag_head",), "role": ("role_head",), "doc": ("doc_head",), "pointer": ("rel_q", "rel_k")}


class ContractError(RuntimeError):
    """A tensor outside the trainable set changed."""


@dataclass(frozen=True)
class TrainableSet:
    """The tensors a run trains, in the model's order, and what it must leave alone.

    names : trainable tensors · scales : learning-rate scale of each · decays : whether weight decay applies ·
    frozen_digest : SHA-256 over the bytes of every other tensor before the run
    """

    names: tuple[str, ...]
    scales: tuple[float, ...]
    decays: tuple[bool, ...]
    frozen_digest: str

    @property
    def reaches_backbone(self) -> bool:
        """Whether a gradient has to pass the heads."""
        return any(not name.startswith(("tag_head", "role_head", "doc_head", "rel_")) for name in self.names)

    def verify(self, parameters: Parameters) -> None:
        """ContractError unless every frozen tensor still has the bytes it had."""
        if frozen_digest(parameters, self.names) != self.frozen_digest:
            raise ContractError("a tensor outside the trainable set changed during the run")

    def to_json(self) -> dict:
        return {"trainable": [{"name": n, "scale": s, "decay": d}
                              for n, s, d in zip(self.names, self.scales, self.decays, strict=True)],
                "frozen_digest": self.frozen_digest}


def frozen_digest(parameters: Parameters, trainable) -> str:
    """SHA-256 (hex) over name and bytes of every tensor not named, in the model's order."""
    chosen, h = set(trainable), hashlib.sha256()
    for name, array in parameters.items():
        if name not in chosen:
            h.update(name.encode() + b"\0" + array.astype("<f4").tobytes())
    return h.hexdigest()


def trainable_set(parameters: Parameters, active_losses, backbone_scale: float) -> TrainableSet:
    """The set that the seed's rules give.

    backbone_scale 0: the tag head and its bias only. Above 0: every tensor the active losses reach, the heads whose own
    loss is on at scale 1, everything else at backbone_scale.
    """
    heads = {HEAD_OF[name] for name in active_losses}
    on = {part for head in heads for part in HEAD_TENSORS[head]}
    specs = []
    for spec in parameters.specs:
        part = spec.name.split(".")[0]
        if spec.group == "head":
            wanted = part in on
        else:  # without blocks nothing reads the pair bias
            wanted = backbone_scale > 0 and (parameters.config.num_hidden_layers > 0 or not part.startswith("pair"))
        if wanted:
            specs.append(spec)
    scales = tuple(1.0 if s.group == "head" else backbone_scale for s in specs)
    return TrainableSet(tuple(s.name for s in specs), scales, tuple(s.decay for s in specs),
                        frozen_digest(parameters, [s.name for s in specs]))


def named_set(parameters: Parameters, scales: dict[str, float]) -> TrainableSet:
    """A set by an explicit allowlist: tensor name → learning-rate scale above 0. ValueError: an unknown name, a scale
    that is not above 0, nothing named."""
    known = {spec.name for spec in parameters.specs}
    for name, scale in scales.items():
        if name not in known:
            raise ValueError(f"trainable tensor {name!r} does not belong to this model")
        if not 0 < scale < float("inf"):
            raise ValueError(f"scale of {name} = {scale}: expected a finite number above 0")
    if not scales:
        raise ValueError("the trainable set is empty")
    specs = [spec for spec in parameters.specs if spec.name in scales]
    return TrainableSet(tuple(s.name for s in specs), tuple(float(scales[s.name]) for s in specs),
                        tuple(s.decay for s in specs), frozen_digest(parameters, [s.name for s in specs]))
