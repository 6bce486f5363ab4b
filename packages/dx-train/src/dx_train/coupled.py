"""Losses that couple the examples of a batch: all forwards, one loss, then each example's backward, added in example
order (docs/training.md "Losses that couple examples")."""
import math
from dataclasses import dataclass
from typing import Any, Protocol
from collections.abc import Callable

import numpy as np

from .below import LossPart
from .examples import TrainingError
from .gradients import BatchResult
from .ordered import OrderedSum
from .passes import Passes


class CoupledLoss(Protocol):
    """One loss over the outputs of a whole batch.

    weights : term → its weight, in the order in which the terms add up to the loss
    """

    weights: dict[str, float]

    def run(self, outputs: list, examples: list) -> tuple[dict[str, LossPart], list]:
        """(parts, douts) for the outputs of the examples, both in example order.

        parts: term → numerator and denominator over the batch · douts: for each example the gradient of its output,
        weights and divisions by batch or pair counts already inside their single rounding to binary32; None: the
        example has no gradient, and its set is zero. The arrays stay untouched until the backwards are done.
        """

    def settings(self) -> dict:
        """Everything of the loss that decides a bit, as plain JSON values; joins the fingerprint of a run."""


@dataclass(frozen=True)
class Coupling:
    """How a run trains on a coupled loss: `FineTune(settings, scales=…, coupling=Coupling(loss, passes))`.

    loss : CoupledLoss · passes : callable that takes the run's model and gives its Passes ·
    keep : keep the activations of the whole batch between forward and backward; False: run each forward a second time,
    with memory for one example a thread. The bits are the same.
    """

    loss: CoupledLoss
    passes: Callable[[Any], Passes]
    keep: bool = True


class CoupledGradients:
    """Computes the gradient of a coupled loss over a batch; the same interface as BatchGradients.

    Order: the outputs of all examples; the loss, once, on the calling thread; backwards, each into a set of its own;
    the sets added in example order (OrderedSum). Threads share examples, never a sum.
    """

    def __init__(self, passes: Passes, loss: CoupledLoss, keep: bool = True):
        self.passes, self.loss, self.keep = passes, loss, keep
        self._sum = OrderedSum(passes.new_gradients, passes.new_workspace)
        self._kept: list = []  # a workspace for each example of the batch

    @property
    def total(self):
        """The last batch's gradient."""
        return self._sum.total

    @property
    def nbytes(self) -> int:
        return self._sum.nbytes + sum(space.nbytes for space in self._kept)  # exact: whole numbers

    def close(self) -> None:
        """Ends the threads."""
        self._sum.close()

    def run(self, examples: list, prepare=None) -> BatchResult:
        """The batch's gradient in `total`. prepare: as BatchGradients.run.

        Raises TrainingError naming the term whose loss is not finite and the batch's examples."""
        prepared, saved, parts, douts = self._loss(examples, prepare)
        rows = sum(example.rows for example in prepared)  # exact: whole numbers

        def work(place, space, gradients):
            if douts[place] is None:
                gradients.flat[:] = 0
                return
            kept = saved[place] if self.keep else self.passes.forward(prepared[place], space)
            self.passes.backward(kept, douts[place], gradients)

        self._sum.add_up(range(len(prepared)), work)
        terms, loss = {name: parts[name].value for name in self.loss.weights}, 0.0
        for name, weight in self.loss.weights.items():
            loss += weight * terms[name]
        return BatchResult([parts], rows, loss, terms)

    def _loss(self, examples, prepare):
        """(examples as they are trained on, what their forwards kept, loss parts, gradients of the outputs)."""
        while self.keep and len(self._kept) < len(examples):
            self._kept.append(self.passes.new_workspace())

        def forward(place, space):
            example = examples[place] if prepare is None else prepare(examples[place])
            return example, (self.passes.forward(example, self._kept[place]) if self.keep else
                             self.passes.infer(example))

        results = self._sum.each(range(len(examples)), forward)
        prepared, saved = [example for example, _ in results], [kept for _, kept in results]
        with np.errstate(all="ignore"):
            parts, douts = self.loss.run([kept.outputs for kept in saved] if self.keep else saved, prepared)
        if len(douts) != len(prepared) or set(parts) != set(self.loss.weights):
            raise ValueError(f"the coupled loss gave {len(douts)} gradients and the terms {', '.join(parts)}: expected "
                             f"{len(prepared)} and {', '.join(self.loss.weights)}")
        for name, part in parts.items():
            if not math.isfinite(part.value):
                names = ", ".join(example.id for example in prepared)
                raise TrainingError(f"the {name} loss over the examples {names} is {part.value}")
        return prepared, saved, parts, douts

    def find_fault(self, examples: list, names, prepare=None) -> tuple[str, str] | None:
        """As BatchGradients.find_fault: each example's share of the coupled gradient."""
        prepared, saved, _, douts = self._loss(examples, prepare)
        gradients, space = self.passes.new_gradients(), self.passes.new_workspace()
        for place, example in enumerate(prepared):
            if douts[place] is None:
                continue
            with np.errstate(all="ignore"):
                kept = saved[place] if self.keep else self.passes.forward(example, space)
                self.passes.backward(kept, douts[place], gradients)
            for name in names:
                if not np.isfinite(gradients[name]).all():
                    return example.id, name
        return None
