"""Gradual unfreezing: from the head down, a group of layers at a time; the phase is part of the checkpoint."""
import hashlib
from dataclasses import dataclass

from .below import canonical_bytes
from .checkpoint import CheckpointError
from .parameter_groups import ParameterGroups, trainable_names


@dataclass(frozen=True)
class GradualUnfreezing:
    """groups : the model's parameters · order : groups of backbone names, the one nearest to the head first · starts :
    step (steps done) from which each is trained, ascending"""

    groups: ParameterGroups
    order: tuple[tuple[str, ...], ...]
    starts: tuple[int, ...]

    def __post_init__(self):
        if len(self.order) != len(self.starts):
            raise ValueError(f"starts has {len(self.starts)} steps: expected {len(self.order)}, one a group of layers")
        if any(a >= b for a, b in zip((-1, *self.starts), self.starts)):
            raise ValueError(f"starts = {self.starts}: expected ascending steps from 0")

    def phase(self, step: int) -> int:
        """How many groups of layers train after `step` steps."""
        return len([s for s in self.starts if s <= step])

    def names(self, step: int) -> tuple[str, ...]:
        """Names that the next step trains."""
        open_ = tuple(name for names in self.order[:self.phase(step)] for name in names)
        return trainable_names(self.groups, "gradual", open_)

    def state(self, step: int) -> dict:
        """What a checkpoint of `step` says about the schedule."""
        names = hashlib.sha256(canonical_bytes(list(self.names(step)))).hexdigest()
        return {"step": step, "phase": self.phase(step), "trainable": names}

    def resume(self, state: dict, step: int) -> tuple[str, ...]:
        """The names to train after a restart. CheckpointError when step, phase or trainable set of the checkpoint are
        not this schedule's: another subset of layers would change from here on."""
        ours = self.state(step)
        for name, value in ours.items():
            if state.get(name) != value:
                raise CheckpointError(f"the checkpoint's unfreezing has {name} {state.get(name)!r}: expected {value!r}")
        return self.names(step)
