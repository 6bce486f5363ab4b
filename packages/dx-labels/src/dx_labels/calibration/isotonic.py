"""Isotonic regression of labels 0 and 1 on one score, by pooling adjacent violators in whole numbers."""
from ..below import Isotonic, Scores
from .split import CalibrationSplit, binary_targets, identity_of


def fit_isotonic(scores: Scores, labels, split: CalibrationSplit, *, software: str) -> Isotonic:
    """The monotone levels with the smallest sum of squares; equal scores are one point before anything is fitted.

    A block's level is positives / count; blocks are compared by whole numbers, so nothing rounds before that division.
    Points of the result: the first and the last score of every block. For distances the levels fall.

    Raises
    ------
    ReadoutError
        Scores that are not finite; more than one score an item.
    """
    s, y = binary_targets(labels, scores)
    identity = identity_of(scores, split, "sum of squares, monotone", software)
    falling = not scores.type.larger_wins
    merged = {}
    for value, label in sorted(zip(s.tolist(), y.tolist())):
        value = value + 0.0  # -0 is 0
        positives, count = merged.get(value, (0, 0))
        merged[value] = (positives + label, count + 1)
    blocks = []  # [first score, last score, positives, count]
    for value, (positives, count) in (reversed(merged.items()) if falling else merged.items()):
        blocks.append([value, value, positives, count])
        # a level that is not above the one before breaks the order or says the same
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][3] >= blocks[-1][2] * blocks[-2][3]:
            _, last, positives, count = blocks.pop()
            blocks[-1] = [blocks[-1][0], last, blocks[-1][2] + positives, blocks[-1][3] + count]
    points = []
    for first, last, positives, count in blocks:
        points += [(value, positives / count) for value in dict.fromkeys((first, last))]
    points.sort()
    return Isotonic(identity, tuple(value for value, _ in points), tuple(level for _, level in points))
