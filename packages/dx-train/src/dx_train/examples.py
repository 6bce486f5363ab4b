"""What a run trains on: windows of pages with their targets."""
import hashlib
from dataclasses import dataclass

import numpy as np

from .below import Targets

PAGE_ARRAYS = ("characters", "table_ids", "features", "relative", "real", "whole")
TARGET_ARRAYS = ("tag", "role", "item", "key_value", "run_fields", "run_places")


class TrainingError(RuntimeError):
    """Training cannot go on; the message names the example and, where one is at fault, the tensor."""


@dataclass(frozen=True)
class Example:
    """One window with its targets.

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
    """SHA-256 (hex) over ids, pages and targets of the examples and their variants, in order: every array that training
    reads, with its type and shape."""
    h = hashlib.sha256()

    def add(key, array):
        array = np.ascontiguousarray(array)
        h.update(f"{key} {array.dtype.newbyteorder('<').str} {'x'.join(map(str, array.shape))}\n".encode())
        h.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())

    for example in examples:
        h.update(f"example {len(example.variants)} {example.id}\n".encode())
        for page, targets in ((example.page, example.targets), *example.variants):
            for key in PAGE_ARRAYS:
                if hasattr(page, key):
                    add(key, getattr(page, key))
            for key in TARGET_ARRAYS:
                if getattr(targets, key) is not None:
                    add(key, getattr(targets, key))
            add("doc", np.array(targets.doc, np.int64))
    return h.hexdigest()
