"""Gradients of a batch: examples in parallel, each into its own set, added in example order."""
import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .below import (DocExtract, Gradients, Losses, LossPart, Workspace, degree, get_degree, get_path, ieee_mode,
                    kernel_path)
from .examples import Example, TrainingError


@dataclass
class BatchResult:
    """Loss parts of each example, in order, and how many words the batch held."""

    parts: list[dict[str, LossPart]]
    words: int


class BatchGradients:
    """Computes the summed gradient of a batch.

    The sum is over examples in example order with plain additions, starting as a copy of the first set (numerics.md
    rule on sums over examples); examples run on `degree` threads, each with serial kernels, so no reduction crosses a
    thread and the degree never shows in a bit.

    Memory (`nbytes`), kept between batches: a workspace for each thread and, at degree N, 2 N gradient sets, the sum
    among them: into half of them threads write, the others wait for their turn in the sum.
    """

    def __init__(self, model: DocExtract, losses: Losses, backbone: bool = True):
        self.model, self.losses, self.backbone = model, losses, backbone
        self.total = Gradients(model.config)
        self._free: list[Gradients] = []
        self._spaces: list[Workspace] = []
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0

    @property
    def nbytes(self) -> int:
        sets = self.total.flat.nbytes * (1 + len(self._free))
        return sets + sum(space.nbytes for space in self._spaces)  # exact: whole numbers

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool, self._threads = None, 0

    def one(self, example: Example, gradients: Gradients, space: Workspace, factor: float) -> dict[str, LossPart]:
        """Loss parts and gradient set of one example, scaled by factor."""
        saved = self.model.forward_saved(example.page, space, self.losses.heads)
        parts, douts = self.losses.run(saved.outputs, example.targets, factor, space)
        for name, part in parts.items():
            if not math.isfinite(part.value):
                raise TrainingError(f"example {example.id}: the {name} loss is {part.value}")
        self.model.backward(saved, douts, gradients, backbone=self.backbone)
        return parts

    def run(self, examples: list[Example], prepare=None) -> BatchResult:
        """The batch's gradient in `self.total`, each example scaled by 1 / number of examples.

        prepare: what is done to each item first, on its thread (augmentation), a function of the item alone; None: the
        items are examples.
        Raises TrainingError naming the example whose loss is not finite."""
        threads = min(get_degree(), len(examples))
        while len(self._spaces) < threads:
            self._spaces.append(Workspace())
        while len(self._free) < 2 * threads - 1:
            self._free.append(Gradients(self.model.config))
        with np.errstate(all="ignore"):  # what is not finite is looked for, and named, after the sum
            results = self._serial(examples, prepare) if threads == 1 else self._parallel(examples, prepare, threads)
        return BatchResult([parts for parts, _ in results], sum(words for _, words in results))  # exact: whole numbers

    def _work(self, item, prepare, gradients, space, factor):
        example = item if prepare is None else prepare(item)
        return self.one(example, gradients, space, factor), len(example.page.features)

    def _serial(self, examples, prepare):
        results = []
        for item in examples:
            gradients = self._free[0] if results else self.total  # the sum starts as the first example's set
            results.append(self._work(item, prepare, gradients, self._spaces[0], 1.0 / len(examples)))
            if gradients is not self.total:
                self.total.add(gradients)
        return results

    def _parallel(self, examples, prepare, threads):
        if self._threads != threads:
            self.close()
            self._pool, self._threads = ThreadPoolExecutor(threads, "dx-train"), threads
        path, factor = get_path(), 1.0 / len(examples)
        sets, spaces = deque([self.total, *self._free]), deque(self._spaces)

        def work(item, gradients):
            space = spaces.popleft()  # at most `threads` run at once, so one is always there
            try:
                with degree(1), kernel_path(path), ieee_mode(), np.errstate(all="ignore"):  # all belong to a thread
                    return self._work(item, prepare, gradients, space, factor)
            finally:
                spaces.append(space)

        results, waiting, todo = [], deque(), deque(examples)
        try:
            while todo or waiting:
                while todo and sets:
                    gradients = sets.popleft()
                    waiting.append((self._pool.submit(work, todo.popleft(), gradients), gradients))
                future, gradients = waiting[0]
                results.append(future.result())
                waiting.popleft()
                if gradients is not self.total:  # the first example's set, which the sum starts as
                    self.total.add(gradients)
                    sets.append(gradients)
        finally:  # after an error or Ctrl-C no thread may go on writing into sets that the next batch will use
            for future, _ in waiting:
                future.cancel()
            for future, _ in waiting:
                if not future.cancelled():
                    future.exception()
        return results

    def find_fault(self, examples: list[Example], names, prepare=None) -> tuple[str, str] | None:
        """(example id, tensor) of the first gradient among `names` that is not finite, example by example; None when
        every example's are (then their sum overflowed)."""
        for item in examples:
            example = item if prepare is None else prepare(item)
            with np.errstate(all="ignore"):
                self.one(example, self._free[0], self._spaces[0], 1.0 / len(examples))
            for name in names:
                if not np.isfinite(self._free[0][name]).all():
                    return example.id, name
        return None
