"""What a run trains on: windows of pages with their targets."""
import hashlib
from dataclasses import dataclass

import numpy as np

from .augment import augment, choose_variant
from .below import Targets

PAGE_ARRAYS = ("characters", "table_ids", "features", "relative", "real", "whole")
TARGET_ARRAYS = ("tag", "role", "item", "key_value", "run_fields", "run_places")


class TrainingError(RuntimeError):
    """Training cannot go on; the message names the example and, where one is at fault, the tensor."""


@dataclass(frozen=True)
class Example:
    """One window with its targets.

    What a run asks of an example, whatever the model: `id`, `check(config)`, `at(epoch, settings, config)`, `rows`,
    `arrays()`.

    id : names it in messages and keys its randomness; unique in a run
    page : EncodedPage · targets : Targets
    variants : other (page, targets) that may stand in for it, such as the page with its dates rewritten or with lines
        left out; settings.variant_share says how often
    """

    id: str
    page: object
    targets: Targets
    variants: tuple = ()

    def check(self, config) -> None:
        """ValueError: a target that does not fit the page or the model, a page too long for it."""
        for page, targets in ((self.page, self.targets), *self.variants):
            _check(self.id, page, targets, config)

    @property
    def rows(self) -> int:
        """Rows of the model that it takes."""
        return len(self.page.features)

    def at(self, epoch: int, settings, config) -> "Example":
        """The example as it is trained on in an epoch: its variant, augmented; a function of (seed, epoch, id)."""
        example = choose_variant(self, settings.seed, epoch, settings.variant_share)
        return augment(example, settings.seed, epoch, settings.augment, config.position_buckets)

    def arrays(self):
        """Yields (name, array) of everything that training reads."""
        for page, targets in ((self.page, self.targets), *self.variants):
            for part, names in ((page, PAGE_ARRAYS), (targets, TARGET_ARRAYS)):
                yield from ((name, getattr(part, name)) for name in names if getattr(part, name, None) is not None)
            yield "doc", np.array(targets.doc, np.int64)


def _check(name, page, targets, config):
    n = len(page.features)
    if n > config.max_words:
        raise ValueError(f"example {name} has {n} rows: expected at most max_words = {config.max_words}")
    for key, high in (("tag", config.num_tags), ("role", config.num_role_tags), ("item", n), ("key_value", n)):
        target = getattr(targets, key)
        if target is None:
            continue
        if target.shape != (n,) or target.dtype != np.int32:
            raise ValueError(f"example {name}: {key} is {target.dtype} {target.shape}: expected int32 ({n},)")
        wrong = np.flatnonzero((target < -1) | (target >= high))
        if len(wrong):
            raise ValueError(f"example {name}: {key}[{wrong[0]}] = {target[wrong[0]]}: expected -1 to {high - 1}")
    if not -1 <= targets.doc < config.num_doc_types:
        raise ValueError(f"example {name}: doc = {targets.doc}: expected -1 to {config.num_doc_types - 1}")
    fields = targets.run_fields
    if len(fields) and not (0 <= fields.min() and fields.max() < len(config.fields)):
        raise ValueError(f"example {name}: run_fields goes from {fields.min()} to {fields.max()}: expected 0 to "
                         f"{len(config.fields) - 1}")


def examples_digest(examples) -> str:
    """SHA-256 (hex) over the examples in order: ids and every array that training reads, with its type and shape."""
    h = hashlib.sha256()
    for example in examples:
        h.update(f"example {len(getattr(example, 'variants', ()))} {example.id}\n".encode())
        for name, array in example.arrays():
            array = np.ascontiguousarray(array)
            kind = array.dtype.newbyteorder("<")
            h.update(f"{name} {kind.str} {'x'.join(map(str, array.shape))}\n".encode())
            h.update(array.astype(kind, copy=False).tobytes())
    return h.hexdigest()
