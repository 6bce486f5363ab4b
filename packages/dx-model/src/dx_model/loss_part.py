"""One term of a loss."""
from dataclasses import dataclass


@dataclass
class LossPart:
    """One term of one example: loss = numerator / denominator, 0 when nothing was counted."""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        return self.numerator / self.denominator if self.denominator else 0.0
