"""Early stopping on the development part, with the best weights kept."""
import math

from .below import Parameters
from .examples import TrainingError


class EarlyStop:
    """Evaluates with a callback and remembers the best weights.

    development : callable that takes a model and returns a score, higher is better; None: there is no evaluation
    make : makes the model from its parameters · interval : steps between evaluations; the last step is evaluated too
    patience : evaluations in a row without a better score that end the run; 0: none does

    The first of equal scores is kept.
    """

    def __init__(self, development, make, interval: int, patience: int):
        self._development, self._make, self.interval, self.patience = development, make, interval, patience
        self.scores: list[tuple[int, float]] = []
        self.best: Parameters | None = None
        self.best_step: int | None = None
        self.best_score: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether the run ends early."""
        if not self.patience or self.best_step is None:
            return False
        worse = [step for step, _ in self.scores if step > self.best_step]
        return len(worse) >= self.patience

    def due(self, step: int, total: int) -> bool:
        """Whether the weights after `step` steps are to be evaluated."""
        return self._development is not None and (step % self.interval == 0 or step == total)

    def evaluate(self, step: int, parameters: Parameters) -> float:
        """Score of the weights; they are copied when they are the best so far."""
        score = float(self._development(self._make(parameters)))
        if not math.isfinite(score):
            raise TrainingError(f"the development score after step {step} is {score}: expected a finite number")
        self.scores.append((step, score))
        if self.best_score is None or score > self.best_score:
            self.best_step, self.best_score = step, score
            if self.best is None:
                self.best = parameters.copy()
            else:
                self.best.flat[:] = parameters.flat
        return score

    def state(self) -> dict:
        """What a checkpoint keeps besides the best weights."""
        return {"scores": [[step, score] for step, score in self.scores], "best_step": self.best_step,
                "best_score": self.best_score}

    def restore(self, state: dict, parameters: Parameters) -> None:
        """The opposite of `state`; `parameters` give the best weights their frozen values and their room."""
        self.scores = [(int(step), float(score)) for step, score in state["scores"]]
        self.best_step = state["best_step"]
        self.best_score = None if state["best_score"] is None else float(state["best_score"])
        self.best = None if self.best_step is None else parameters.copy()
