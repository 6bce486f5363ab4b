"""The running stream of examples: an endless sequence of epoch permutations, cut into full batches."""
from .below import epoch_permutation


class ExampleStream:
    """Which example stands at each position of the stream.

    Position p lies in epoch p // n (from 0) at place p % n of that epoch's permutation, which is drawn from SplitMix64
    seeded with (seed << 32) xor epoch. Step s takes positions s * batch to (s + 1) * batch - 1, so a batch may span two
    epochs and every batch is full. The order depends on (seed, n) alone: a resumed run needs the step number only.
    """

    def __init__(self, count: int, batch: int, seed: int):
        if count < 1:
            raise ValueError(f"count = {count}: expected at least one example")
        self.count, self.batch, self.seed = count, batch, seed
        self._epoch, self._order = -1, None

    def at(self, position: int) -> tuple[int, int]:
        """(epoch, index of the example) at a position of the stream."""
        epoch, place = divmod(position, self.count)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, epoch_permutation(self.seed, epoch, self.count)
        return epoch, int(self._order[place])

    def step(self, step: int) -> list[tuple[int, int]]:
        """(epoch, index) of each example of a step, in example order."""
        first = step * self.batch
        return [self.at(position) for position in range(first, first + self.batch)]
