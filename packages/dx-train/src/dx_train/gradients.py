"""Gradients of a batch whose loss is a sum over examples: each into its own set, added in example order."""
import math
from dataclasses import dataclass

import numpy as np

from .below import DocExtract, Gradients, Losses, LossPart, Workspace
from .examples import TrainingError
from .ordered import OrderedSum
from .passes import DocExtractPasses, Passes


@dataclass
class BatchResult:
    """parts : loss parts of each example, in order; one entry for the whole batch where the loss couples examples ·
    words : rows of the batch · loss : mean loss · terms : mean of each term"""

    parts: list[dict[str, LossPart]]
    words: int
    loss: float
    terms: dict[str, float]


class BatchGradients:
    """Computes the summed gradient of a batch of examples, each with losses of its own (OrderedSum says how the sum is
    made and what memory it takes).

    model, losses : what is computed · backbone : whether gradients go beyond the heads · passes : of a model that is
    not docextract; losses then take its outputs and the examples' targets as `Task` says
    """

    def __init__(self, model: DocExtract, losses: Losses, backbone: bool = True, passes: Passes | None = None):
        self.losses = losses
        self.passes = DocExtractPasses(model, losses.heads, backbone) if passes is None else passes
        self._sum = OrderedSum(self.passes.new_gradients, self.passes.new_workspace)

    @property
    def total(self) -> Gradients:
        """The last batch's gradient."""
        return self._sum.total

    @property
    def nbytes(self) -> int:
        return self._sum.nbytes

    def close(self) -> None:
        """Ends the threads."""
        self._sum.close()

    def one(self, example, gradients: Gradients, space: Workspace, factor: float,
            total: Gradients | None = None) -> dict[str, LossPart]:
        """Loss parts and gradient set of one example, scaled by factor; added to total when that is given."""
        saved = self.passes.forward(example, space)
        parts, douts = self.losses.run(saved.outputs, example.targets, factor, space)
        for name, part in parts.items():
            if not math.isfinite(part.value):
                raise TrainingError(f"example {example.id}: the {name} loss is {part.value}")
        if total is None:
            self.passes.backward(saved, douts, gradients)
        else:
            self.passes.backward_adding(saved, douts, gradients, total)
        return parts

    def run(self, examples: list, prepare=None) -> BatchResult:
        """The batch's gradient in `total`, each example scaled by 1 / number of examples.

        prepare: what is done to each item first, on its thread (augmentation), a function of the item alone; None: the
        items are examples.
        Raises TrainingError naming the example whose loss is not finite."""
        factor = 1.0 / len(examples)

        def work(item, space, gradients, total=None):
            example = item if prepare is None else prepare(item)
            return self.one(example, gradients, space, factor, total), example.rows

        results = self._sum.add_up(examples, work, adds=hasattr(self.passes, "backward_adding"))
        parts = [parts for parts, _ in results]
        return BatchResult(parts, sum(rows for _, rows in results), *self._means(parts))  # exact: whole numbers

    def _means(self, parts) -> tuple[float, dict[str, float]]:
        """(mean loss, mean of each term), in binary64, in example order."""
        loss, terms = 0.0, dict.fromkeys(self.losses.weights, 0.0)
        for example in parts:
            loss += self.losses.total(example)
            for name, part in example.items():
                terms[name] += part.value
        return loss / len(parts), {name: value / len(parts) for name, value in terms.items()}

    def find_fault(self, examples: list, names, prepare=None) -> tuple[str, str] | None:
        """(example id, tensor) of the first gradient among `names` that is not finite, example by example; None when
        every example's are (then their sum overflowed)."""
        gradients, space = self.passes.new_gradients(), self.passes.new_workspace()
        for item in examples:
            example = item if prepare is None else prepare(item)
            with np.errstate(all="ignore"):
                self.one(example, gradients, space, 1.0 / len(examples))
            for name in names:
                if not np.isfinite(gradients[name]).all():
                    return example.id, name
        return None
