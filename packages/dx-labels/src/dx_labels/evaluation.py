"""A model against labels: what is right on which page."""
from .below import extract_page
from .examples import labels_by_page
from .labels import usable_documents
from .scoring import Scored, gold_of_labels


def place_of(value):
    """A predicted value's place as labels say it: tuple of (word, start, end)."""
    return tuple((p.word, p.start, p.end) for p in value.parts)


def page_rows(result, labels, fields):
    """Scored rows of one page: a PageResult against the page's labels, for these fields; a field that is not annotated
    on the page has none."""
    rows, unknown = [], {label.field for label in labels if label.state == "unknown"}
    for name in fields:
        if name in unknown:
            continue
        found = result.fields[name]
        gold, places, words = gold_of_labels([label for label in labels if label.field == name])
        rows.append(Scored(result.id, name, gold, tuple(v.text for v in found.values), places,
                           tuple(place_of(v) for v in found.values), words,
                           tuple(v.confidence for v in found.values)))
    return rows


def scored_documents(labels):
    """Ids of documents that may be scored: usable, and every value stands there as it is (none grounded as similar)."""
    similar = {label.document for label in labels if label.outcome == "similar"}
    return [document for document in usable_documents(labels) if document not in similar]


def evaluate(model, documents, labels, fields, each=None):
    """Scored rows of documents, page by page.

    Parameters
    ----------
    model : DocExtract
    documents : list of Document
    labels : list of Label
    fields : names that model and labels both have
    each : callable taking (page, PageResult, rows) or None
    """
    own, rows = labels_by_page(labels), []
    for document in documents:
        for page in document.pages:
            result = extract_page(model, page)
            of_page = page_rows(result, own.get(page.id, []), fields)
            rows += of_page
            if each is not None:
                each(page, result, of_page)
    return rows


class Development:
    """Early stopping's score of a model: the mean of F1 by words and of the probability that the model gives to the
    right answer (the labelled places together, or no value), over the scored fields of the development pages."""

    def __init__(self, documents, labels, fields):
        self.documents, self.labels, self.fields = documents, labels, fields

    def __call__(self, model):
        shares, right, predicted, gold = [], 0, 0, 0

        def each(page, result, rows):
            nonlocal right, predicted, gold
            for row in rows:
                if row.words:
                    right += row.right_words()
                    predicted += len(row.predicted_places)
                    gold += len(row.gold_places)
                    shares.append(_probability(result.fields[row.field], row))

        evaluate(model, self.documents, self.labels, self.fields, each)
        f1 = 2 * right / (predicted + gold) if predicted + gold else 1.0
        total = 0.0
        for share in shares:
            total += share
        return (f1 + total / len(shares)) / 2 if shares else f1


def _probability(found, row):
    """What the model gives to the right answer of a field: the sum over its places among the runs it lists."""
    if not row.gold_places:
        return found.absent if not found.repeated else 0.0 if found.values else 1.0
    places, total = {p for runs in row.gold_places for p in runs}, 0.0
    for value in (*found.values, *found.alternatives):
        if place_of(value) in places:
            total += value.confidence
    return min(total / len(row.gold_places), 1.0)
