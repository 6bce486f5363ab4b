"""Parameters and gradients of a model: one flat float32 buffer each, with a named view per tensor in a fixed order.

The flat buffer makes sums over examples, norms and optimizer steps single passes in parameter order.
"""
import hashlib
from dataclasses import dataclass

import numpy as np

from .below import ieee_mode


@dataclass(frozen=True)
class TensorSpec:
    """One row of the tensor table.

    `shape` is the container's; `decay` says whether weight decay applies (matrices and tables); `group` is "head" for
    the task heads (learning-rate scale 1) and "backbone" for the rest (BackboneScale); `init` is "zeros", "ones" or
    the standard deviation of the normal initial values.
    """

    name: str
    shape: tuple[int, ...]
    decay: bool
    group: str
    init: str | float

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size


class TensorSet:
    """Named float32 tensors of one model in its fixed order, over one flat buffer. A subclass says which: `table`, and
    where a tensor lies otherwise in memory than in a file, `to_runtime` and `to_file`.

    Attributes
    ----------
    config : the model's config
    specs : list of TensorSpec, the order of everything
    flat : float32 array (size,), every tensor one after the other in runtime layout
    offsets : dict name → (begin, end) in flat
    """

    def __init__(self, config):
        self.config = config
        self.specs = self.table(config)
        self.offsets, self._views, at = {}, {}, 0
        for spec in self.specs:
            self.offsets[spec.name] = (at, at + spec.size)
            at += spec.size
        self.flat = np.zeros(at, np.float32)
        for spec in self.specs:
            begin, end = self.offsets[spec.name]
            shape = self.to_runtime(spec.name, np.empty(spec.shape, np.bool_)).shape
            self._views[spec.name] = self.flat[begin:end].reshape(shape)

    @staticmethod
    def table(config) -> list[TensorSpec]:
        """The model's tensors in their fixed order."""
        raise NotImplementedError

    @staticmethod
    def to_runtime(name: str, array: np.ndarray) -> np.ndarray:
        """A tensor of a file as it lies in memory: the same elements, perhaps permuted."""
        return array

    @staticmethod
    def to_file(name: str, array: np.ndarray) -> np.ndarray:
        """The opposite of `to_runtime`."""
        return array

    def __getitem__(self, name: str) -> np.ndarray:
        return self._views[name]

    def __iter__(self):
        return iter(spec.name for spec in self.specs)

    def __len__(self):
        return len(self.specs)

    def items(self):
        """(name, runtime view) in the fixed order."""
        return [(spec.name, self._views[spec.name]) for spec in self.specs]

    def to_container(self) -> dict[str, np.ndarray]:
        """name → contiguous array in the container's layout, in the fixed order."""
        return {name: np.ascontiguousarray(self.to_file(name, view)) for name, view in self.items()}

    def load_container(self, tensors: dict[str, np.ndarray]) -> None:
        """Copies container-layout tensors in. ValueError names a missing, extra, misshapen or non-float32 tensor."""
        names = [spec.name for spec in self.specs]
        for name in names:
            if name not in tensors:
                raise ValueError(f"tensor {name} is missing")
        for name in sorted(tensors):
            if name not in self.offsets:
                raise ValueError(f"tensor {name} does not belong to this model")
        for spec in self.specs:
            array = np.asarray(tensors[spec.name])
            if array.shape != spec.shape:
                raise ValueError(f"tensor {spec.name} has shape {array.shape}: expected {spec.shape}")
            if array.dtype != np.float32:
                raise ValueError(f"tensor {spec.name} has type {array.dtype}: expected float32")
        for spec in self.specs:
            self._views[spec.name][...] = self.to_runtime(spec.name, np.asarray(tensors[spec.name]))

    def copy(self):
        """An independent set with the same values."""
        other = type(self)(self.config)
        other.flat[:] = self.flat
        return other

    def digest(self) -> str:
        """SHA-256 (hex) over every tensor's name, shape and container-layout bytes, in the fixed order."""
        h = hashlib.sha256()
        for name, array in self.to_container().items():
            h.update(f"{name} {'x'.join(map(str, array.shape))}\n".encode())
            h.update(array.astype("<f4").tobytes())
        return h.hexdigest()


class GradientSet(TensorSet):
    """Gradients of a loss with respect to every weight, laid out as the weights."""

    def __init__(self, config):
        super().__init__(config)
        self.encoder = None  # the model's EncoderGradients over this set, once it needs it
        self._blocks = self._range([spec.name for spec in self.specs if spec.name.startswith("blocks.")])
        self._heads = self._range([spec.name for spec in self.specs if spec.group == "head"])

    def _range(self, names: list[str]) -> tuple[int, int]:
        """Where tensors that follow one another lie in the flat buffer."""
        return (self.offsets[names[0]][0], self.offsets[names[-1]][1]) if names else (0, 0)

    def zero(self) -> None:
        self.flat[:] = 0.0

    @ieee_mode()
    def add(self, other: "GradientSet") -> None:
        """Adds another set elementwise: one plain binary32 addition each, so the order of calls is the order of the
        sum (numerics.md rule 4: example order)."""
        np.add(self.flat, other.flat, out=self.flat)

    @ieee_mode()
    def add_rest(self, other: "GradientSet", heads_only: bool = False) -> None:
        """`add` of every tensor but the encoder's blocks, or of the heads' tensors only."""
        ranges = [self._heads] if heads_only else [(0, self._blocks[0]), (self._blocks[1], len(self.flat))]
        for begin, end in ranges:
            np.add(self.flat[begin:end], other.flat[begin:end], out=self.flat[begin:end])
