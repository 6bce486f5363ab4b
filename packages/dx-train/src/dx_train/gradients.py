"""Gradients of a batch: examples in parallel, each into its own set, added in example order."""
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .below import DocExtract, Gradients, Losses, LossPart, Targets, Workspace, degree, get_degree


@dataclass
class Example:
    """One window with its targets. `id` names it in messages and keys its randomness."""

    id: str
    page: object
    targets: Targets


class TrainingError(RuntimeError):
    """Training cannot go on; the message names the example and, where one is at fault, the tensor."""


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

    Memory: degree workspaces, degree + 1 gradient sets and their sum (`nbytes`), kept between batches.
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
            if not np.isfinite(part.value):
                raise TrainingError(f"example {example.id}: the {name} loss is {part.value}")
        self.model.backward(saved, douts, gradients, backbone=self.backbone)
        return parts

    def run(self, examples: list[Example]) -> BatchResult:
        """The batch's gradient in `self.total`, each example scaled by 1 / number of examples."""
        factor = 1.0 / len(examples)
        threads = min(get_degree(), len(examples))
        while len(self._spaces) < threads:
            self._spaces.append(Workspace())
        while len(self._free) < threads + 1:
            self._free.append(Gradients(self.model.config))
        parts = self._serial(examples, factor) if threads == 1 else self._parallel(examples, factor, threads)
        return BatchResult(parts, sum(len(example.page.features) for example in examples))  # exact: whole numbers

    def _take(self, gradients: Gradients, first: bool) -> None:
        if first:
            self.total.flat[:] = gradients.flat
        else:
            self.total.add(gradients)

    def _serial(self, examples, factor):
        parts = []
        for i, example in enumerate(examples):
            parts.append(self.one(example, self._free[0], self._spaces[0], factor))
            self._take(self._free[0], i == 0)
        return parts

    def _parallel(self, examples, factor, threads):
        if self._threads != threads:
            self.close()
            self._pool, self._threads = ThreadPoolExecutor(threads, "dx-train"), threads
        sets, spaces = deque(self._free), deque(self._spaces)

        def work(example, gradients):
            space = spaces.popleft()  # at most `threads` run at once, so one is always there
            try:
                with degree(1):
                    return self.one(example, gradients, space, factor)
            finally:
                spaces.append(space)

        parts, waiting, todo = [], deque(), deque(examples)
        try:
            while todo or waiting:
                while todo and sets:
                    gradients = sets.popleft()
                    waiting.append((self._pool.submit(work, todo.popleft(), gradients), gradients))
                future, gradients = waiting.popleft()
                parts.append(future.result())
                self._take(gradients, len(parts) == 1)
                sets.append(gradients)
        finally:  # after an error or Ctrl-C no thread may go on writing into sets that the next batch will use
            for future, _ in waiting:
                future.cancel()
            for future, _ in waiting:
                if not future.cancelled():
                    future.exception()
        return parts

    def find_fault(self, examples: list[Example]) -> tuple[str, str] | None:
        """(example id, tensor) of the first gradient that is not finite, example by example; None when all are."""
        for example in examples:
            self.one(example, self._free[0], self._spaces[0], 1.0 / len(examples))
            for name, array in self._free[0].items():
                if not np.isfinite(array).all():
                    return example.id, name
        return None
