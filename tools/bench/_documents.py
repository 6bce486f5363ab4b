"""What the benches on document data sets share: the data, and F1 by text."""
import gzip
import json
import os
import time
from pathlib import Path

import dx_model
import dx_train

from . import progress


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

    def count(self, name, predicted, gold):
        """Sets of things that must be equal."""
        self.counts[name] = [a + b for a, b in zip(self.counts[name], (len(predicted & gold), len(predicted),
                                                                       len(gold)))]

    def f1(self, name=None):
        """2 TP / (predicted + gold), of one field or of all together; None where there is nothing."""
        chosen = [self.counts[name]] if name else list(self.counts.values())
        right, predicted, gold = (sum(c[i] for c in chosen) for i in range(3))
        return 2 * right / (predicted + gold) if predicted + gold else None

    def recall(self, name):
        right, _, gold = self.counts[name]
        return right / gold if gold else None


def fit(config, examples, settings):
    """(DocExtract, seconds) trained from scratch with two threads; progress ten times."""
    began = time.perf_counter()
    model = dx_model.DocExtract.initial(config, settings.seed)
    with dx_model.degree(2), dx_train.FineTune(settings).start(model, examples) as run:
        for record in run:
            if record.step % max(1, run.total // 10) == 0:
                progress(f"step {record.step} of {run.total}, loss {record.loss:.4f}, "
                         f"{time.perf_counter() - began:.0f} s")
        model = dx_model.DocExtract(run.finish().parameters)
    return model, time.perf_counter() - began


def nothing(figures, note):
    """The answer of a bench that could not be taken."""
    return {"figures": dict.fromkeys(figures), "rows": [], "notes": [note]}
