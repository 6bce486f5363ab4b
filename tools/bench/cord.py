"""Receipts of CORD v1: 30 classes and line items, from scratch, on a hold-out of our own.

Of the 800 official training receipts (dev and test are not at hand, so no published number compares), every eighth by
sorted id is held out: 100. Words sorted by position.

figures  field_f1: values of exactly the gold words and class; item_f1: groups of two or more words with exactly the
         gold words; seconds: training, wall, degree 2
rows     per class with at least five values: gold, predicted, F1
"""
import dx_labels
import dx_model
import dx_train

from . import machine_notes
from ._documents import NoData, Score, data, fit, nothing

SETTINGS = {"epochs": 15, "augment": 1.0, "learning_rate": 1e-3, "final_rate": 0.02, "warmup": 100, "beta2": 0.98,
            "weight_decay": 0.05, "ema_decay": 0.998, "loss_weights": {"tag": 1.0, "item": 0.5}}
FIGURES = ("field_f1", "item_f1", "seconds")
NOTES = ["hold-out: every eighth of the 800 official training receipts by sorted id; 11 receipts of the 800 have the "
         "same text as another one", "published on the official test (pretrained; not comparable): BERT-base 0.897, "
         "LayoutLM-base 0.947, LayoutLMv3-base 0.966"]


def entities(page):
    """(class, words) of each gold value of a page."""
    return {(e["label"], frozenset(e["words"])) for e in page.extra["entities"] if e["words"]}


def groups(page):
    """Words of each gold group of two or more words."""
    found = {}
    for word, group in enumerate(page.extra["groups"]):
        if group is not None:
            found.setdefault(group, set()).add(word)
    return {frozenset(words) for words in found.values() if len(words) > 1}


def examples(pages, schema, config):
    out = []
    for page in pages:
        values = {}
        for e in page.extra["entities"]:
            if e["words"] and e["label"] in schema.names:
                text = " ".join(page.words[w].text for w in e["words"])
                values.setdefault(e["label"], []).append({"value": text, "words": e["words"]})
        document = dx_model.Document(page.id, (page,))
        labels = dx_labels.label_document(document, schema, values, config.encoding())
        encoded = dx_model.encode_page(page, config.encoding())
        rows = dx_labels.Rows(page, encoded)
        found = dx_labels.field_rows(page, rows, labels, schema)
        windows = dx_labels.window_targets(encoded, found, [True] * len(schema.fields), config.max_words,
                                           relations=dx_labels.relation_rows(page, rows, ())[:3])
        out += [dx_train.Example(dx_model.window_id(page.id, k), *w) for k, w in enumerate(windows)]
    return out


def run(quick):
    try:
        values = sorted(data("cord.train"), key=lambda v: v["id"])
    except NoData as error:
        return nothing(FIGURES, str(error))
    if quick:
        values = values[:24]
    pages = [dx_model.page_from_json(v, repair=True) for v in values]
    training, held = [p for i, p in enumerate(pages) if i % 8], [p for i, p in enumerate(pages) if i % 8 == 0]
    names = sorted({e["label"] for p in pages for e in p.extra["entities"]})
    schema = dx_labels.schema_from_json({"name": "cord", "fields": [{"name": n, "repeated": True} for n in names]})
    config = dx_model.DocExtractConfig(fields=schema.names, repeated=schema.names, cut=False)
    settings = dx_train.TrainSettings(**SETTINGS | ({"epochs": 1} if quick else {}))
    model, seconds = fit(config, examples(training, schema, config), settings)
    fields, items = Score(names), Score(["item"])
    for page in held:
        found, gold = dx_model.extract_page(model, page, alternatives=0, relations=True), entities(page)
        own = {(name, frozenset(p.word for p in v.parts)) for name, f in found.fields.items() for v in f.values}
        for name in names:
            mine, wanted = ({e for e in side if e[0] == name} for side in (own, gold))
            fields.count(name, mine, wanted)
        items.count("item", {frozenset(p.word for p in g.parts) for g in found.groups}, groups(page))
    rows = [{"class": name, "gold": fields.counts[name][2], "predicted": fields.counts[name][1], "f1": fields.f1(name)}
            for name in names if fields.counts[name][2] >= 5]
    figures = {"field_f1": fields.f1(), "item_f1": items.f1(), "seconds": seconds}
    return {"figures": figures, "rows": rows, "notes": NOTES + machine_notes()}
