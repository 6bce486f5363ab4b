"""Scores of fields: the seed's per-field scores, and F1 by words, by text and by exact string."""
from dataclasses import dataclass, field

import numpy as np

from .bootstrap import f1_intervals
from .entities import F1, exact_f1
from .intervals import clopper_pearson
from .texts import key


MEASURES = ("words", "text", "exact")


@dataclass(frozen=True)
class Scored:
    """One field of one document (or page), labelled and predicted.

    document, field : names
    gold : texts of the labelled values, () for none
    predicted : texts of the model's values, () for none
    gold_places : for each gold value the places where it stands (each any hashable: rows, spans); () where unknown
    predicted_places : for each predicted value its place; () where unknown
    words : whether words may be compared: False for what the seed does not score (ignored or excluded labels)
    confidences : of the predicted values
    """
    document: str
    field: str
    gold: tuple = ()
    predicted: tuple = ()
    gold_places: tuple = ()
    predicted_places: tuple = ()
    words: bool = True
    confidences: tuple = ()

    def right_words(self):
        """How many predicted places are a place of a gold value, each gold value used once; int. Sure matches first:
        predicted in order, gold values with fewest places first."""
        left = sorted(range(len(self.gold_places)), key=lambda i: (len(self.gold_places[i]), i))
        right = 0
        for place in self.predicted_places:
            for i in left:
                if place in self.gold_places[i]:
                    left.remove(i)
                    right += 1
                    break
        return right

    def exactly(self):
        """The seed's "correct": the predicted values are exactly the label's words; also no value on either side."""
        count = len(self.gold_places)
        return len(self.predicted_places) == count == self.right_words()


@dataclass(frozen=True)
class Share:
    """k of n, with its exact 95 % interval."""
    k: int
    n: int

    @property
    def value(self):
        return self.k / self.n if self.n else 0.0

    def to_json(self):
        return {"k": self.k, "n": self.n, "value": self.value, "interval": list(clopper_pearson(self.k, self.n))}


@dataclass(frozen=True)
class FieldScores:
    """Scores of one field, or of all together.

    correct : of the scored pages, those whose value has exactly the label's words (or none on either side)
    recall : the same of the pages that have a label alone
    agreement : the same of the pages where either side has a value
    words, text, exact : F1 by words (scored pages alone), by letters and digits, by exact string (all pages)
    intervals : dict measure (words, text, exact) → 95 % interval of its F1, by drawing pages (bootstrap.py)
    """
    correct: Share
    recall: Share
    agreement: Share
    words: F1
    text: F1
    exact: F1
    intervals: dict = field(default_factory=dict)

    def to_json(self):
        out = {name: getattr(self, name).to_json() for name in ("correct", "recall", "agreement", *MEASURES)}
        for name, interval in self.intervals.items():
            out[name]["f1_interval"] = list(interval)
        return out


@dataclass(frozen=True)
class Scores:
    """fields: dict name → FieldScores, in the order given; total: over all fields."""
    fields: dict = field(default_factory=dict)
    total: FieldScores | None = None

    def to_json(self):
        return {"fields": {name: s.to_json() for name, s in self.fields.items()}, "total": self.total.to_json()}


def text_key(text):
    """Letters and digits, upper-cased; a text without any is itself."""
    return key(text) or text.strip()


def _counts(row):
    """F1 counts of one row by words, by text and by exact string."""
    words = F1(row.right_words(), len(row.predicted_places), len(row.gold_places)) if row.words else F1(0, 0, 0)
    return (words, exact_f1(map(text_key, row.gold), map(text_key, row.predicted)), exact_f1(row.gold, row.predicted))


def _field_scores(rows, sums, intervals):
    scored = [r for r in rows if r.words]
    either = [r for r in scored if r.gold_places or r.predicted_places]
    labelled = [r for r in scored if r.gold_places]

    def share(some):
        return Share(len([r for r in some if r.exactly()]), len(some))

    return FieldScores(share(scored), share(labelled), share(either), *sums, dict(zip(MEASURES, intervals)))


def score(rows, fields):
    """Scores of Scored rows.

    Parameters
    ----------
    rows : list of Scored
    fields : names, in order; rows of other fields are an error

    Returns
    -------
    Scores
    """
    own, pages = {name: [] for name in fields}, {}
    for row in rows:
        if row.field not in own:
            raise ValueError(f"document {row.document!r}: field {row.field!r} is none of {', '.join(fields)}")
        own[row.field].append(row)
        pages.setdefault(row.document, []).append(row)
    order = sorted(pages, key=lambda name: name.encode("utf-8", "surrogatepass"))
    counts = np.zeros((len(order), len(own) + 1, len(MEASURES), 3), np.int64)  # the last place: all fields together
    for page, name in enumerate(order):
        for row in pages[name]:
            for m, one in enumerate(_counts(row)):
                for place in (list(own).index(row.field), -1):
                    counts[page, place, m] += (one.tp, one.predicted, one.gold)
    intervals = f1_intervals(counts.reshape(len(order), -1, 3))
    totals = counts.sum(axis=0).tolist()  # exact: whole numbers
    scores = [_field_scores(some, [F1(*one) for one in totals[k]], intervals[k * len(MEASURES):(k + 1) * len(MEASURES)])
              for k, some in enumerate([*own.values(), list(rows)])]
    return Scores(dict(zip(own, scores)), scores[-1])


def gold_of_labels(labels):
    """What a page's or document's labels of one field say, for Scored: (gold, gold_places, words).

    Labels that are ignored or excluded are not scored by words; computed values are no value for words, and their text
    counts as gold all the same."""
    gold, places, words = [], [], True
    for label in labels:
        if label.state in ("ignored", "excluded"):
            words = False
        if label.value is not None and label.outcome != "none":
            gold.append(label.value)
        if label.state == "value":
            places.append(label.runs)
    return tuple(gold), tuple(places), words
