"""What one column found for one family."""
from dataclasses import dataclass, field


@dataclass
class Cell:
    """checked: how many things were compared · failures: what differed, in words, empty when all held."""

    checked: int = 0
    failures: list = field(default_factory=list)
    notes: dict = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.checked > 0 and not self.failures

    def expect(self, holds, count, what):
        """Counts `count` comparisons; a failure that says `what` when they did not hold."""
        self.checked += count
        if not holds:
            self.failures.append(what)

    def to_json(self) -> dict:
        return {"ok": self.ok, "checked": self.checked, "failures": self.failures[:5]} | self.notes


def cells(families) -> dict:
    """An empty cell for every family."""
    return {name: Cell() for name in families}
