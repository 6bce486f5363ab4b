"""Ordered label maps: the order of the labels is part of a checkpoint, as its weights are."""
from dataclasses import dataclass

import numpy as np

from ..errors import ReadoutError, require


@dataclass(frozen=True)
class LabelMap:
    """An ordered bijection between names and the outputs 0, 1, … of a head."""

    names: tuple[str, ...]

    def __post_init__(self):
        object.__setattr__(self, "names", tuple(self.names))
        seen = {}
        for i, name in enumerate(self.names):
            require(isinstance(name, str) and name, f"output.labels[{i}]", name, "a name")
            require(name not in seen, f"output.labels[{i}]", name, f"another name: output {seen.get(name)} has it")
            seen[name] = i
        require(len(self.names) > 0, "output.labels", (), "at least one label")

    def __len__(self):
        return len(self.names)

    @property
    def label2id(self) -> dict:
        return {name: i for i, name in enumerate(self.names)}

    @property
    def id2label(self) -> dict:
        return dict(enumerate(self.names))

    def id(self, name: str) -> int:
        require(name in self.names, "label", name, f"one of {self.names}")
        return self.names.index(name)

    def same(self, other: "LabelMap") -> None:
        """ReadoutError unless both have the same names in the same order, with the first output that differs."""
        require(len(self) == len(other), "output.labels", len(other), f"{len(self)} labels")
        for i, (own, its) in enumerate(zip(self.names, other.names, strict=True)):
            require(own == its, f"output.labels[{i}]", its, f"{own!r}: another order is another head")

    def rows_from(self, other: "LabelMap") -> np.ndarray:
        """int64 rows: parameters of a head with `other`'s order, indexed by it, are in this order.

        ReadoutError unless both have the same names.
        """
        missing = [name for name in self.names if name not in other.names]
        extra = [name for name in other.names if name not in self.names]
        require(not missing and not extra, "output.labels", other.names, f"an order of {self.names}")
        where = other.label2id
        return np.array([where[name] for name in self.names], np.int64)


def label_map(label2id: dict, id2label: dict) -> LabelMap:
    """LabelMap of the two dictionaries of a checkpoint, refused unless they are inverse to each other and gapless.

    Keys of id2label may be whole numbers or their decimal text, as JSON leaves them.
    """
    by_id = {int(k): v for k, v in id2label.items()}
    for i in range(len(by_id)):
        if i not in by_id:
            raise ReadoutError("output.id2label", sorted(by_id), f"the outputs 0..{len(by_id) - 1}")
    result = LabelMap(tuple(by_id[i] for i in range(len(by_id))))
    require(label2id == result.label2id, "output.label2id", label2id, f"the inverse of id2label: {result.label2id}")
    return result
