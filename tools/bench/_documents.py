"""What the benches on document data sets share: the data, and F1 by text."""
import gzip
import json
import os
from pathlib import Path


class NoData(Exception):
    """The data set is not at hand."""


def data(name):
    """The objects of a data set's file; NoData where there is none. DX_DATA names the folder."""
    folder = os.environ.get("DX_DATA")
    path = Path(folder or ".") / f"{name}.jsonl.gz"
    if not folder or not path.exists():
        raise NoData(f"{path.name} is not at hand: DX_DATA names the folder of the data sets")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def development(values):
    """(training, development) of training documents: every sixth by sorted id is development."""
    ordered = sorted(values, key=lambda v: v["id"])
    return [v for i, v in enumerate(ordered) if i % 6], [v for i, v in enumerate(ordered) if i % 6 == 0]


class Score:
    """True positives, predicted and gold values of each field."""

    def __init__(self, names):
        self.counts = {name: [0, 0, 0] for name in names}

    def add(self, name, predicted, gold, right):
        one = self.counts[name]
        one[0] += bool(right and predicted and gold)
        one[1] += bool(predicted)
        one[2] += bool(gold)

    def f1(self, name=None):
        """2 TP / (predicted + gold), of one field or of all together; None where there is nothing."""
        chosen = [self.counts[name]] if name else list(self.counts.values())
        right, predicted, gold = (sum(c[i] for c in chosen) for i in range(3))
        return 2 * right / (predicted + gold) if predicted + gold else None

    def recall(self, name):
        right, _, gold = self.counts[name]
        return right / gold if gold else None


def nothing(figures, note):
    """The answer of a bench that could not be taken."""
    return {"figures": dict.fromkeys(figures), "rows": [], "notes": [note]}
