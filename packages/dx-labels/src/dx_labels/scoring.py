"""Scores of fields: the seed's per-field scores, and F1 by words, by text and by exact string."""
from dataclasses import dataclass, field

from .entities import F1, exact_f1
from .intervals import clopper_pearson
from .texts import key


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
    """
    correct: Share
    recall: Share
    agreement: Share
    words: F1
    text: F1
    exact: F1

    def to_json(self):
        return {name: getattr(self, name).to_json() for name in self.__dataclass_fields__}


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


def _field_scores(rows):
    scored = [r for r in rows if r.words]
    either = [r for r in scored if r.gold_places or r.predicted_places]
    labelled = [r for r in scored if r.gold_places]

    def share(some):
        return Share(len([r for r in some if r.exactly()]), len(some))

    tp = gold = predicted = 0
    for r in scored:
        tp, gold, predicted = tp + r.right_words(), gold + len(r.gold_places), predicted + len(r.predicted_places)
    words = F1(tp, predicted, gold)
    text, exact = (exact_f1([(r.document, r.field, read(v)) for r in rows for v in r.gold],
                            [(r.document, r.field, read(v)) for r in rows for v in r.predicted])
                   for read in (text_key, str))
    return FieldScores(share(scored), share(labelled), share(either), words, text, exact)


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
    own = {name: [] for name in fields}
    for row in rows:
        if row.field not in own:
            raise ValueError(f"document {row.document!r}: field {row.field!r} is none of {', '.join(fields)}")
        own[row.field].append(row)
    return Scores({name: _field_scores(some) for name, some in own.items()}, _field_scores(list(rows)))


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
