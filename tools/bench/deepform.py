"""DeepForm: fields of political-advert documents of several pages, trained on the 317, tested once on the 276.

figures  f1_text: 2 TP / (predicted + gold), documents' values with letters and digits equal (dates and amounts: the
         same day, the same number); seconds: training, wall, degree 2
rows     per field: F1, recall
"""
import dx_labels
import dx_model
import dx_train
from dx_labels.sources.jsonl import DEEPFORM

from . import machine_notes, progress
from ._documents import NoData, Score, data, fit, nothing

SETTINGS = {"epochs": 6, "augment": 1.0, "learning_rate": 1e-3, "final_rate": 0.02, "warmup": 100, "beta2": 0.98,
            "weight_decay": 0.05, "ema_decay": 0.998}
FIGURES = ("f1_text", "seconds")
NOTES = ["published numbers are on other documents or other labels (DUE's DeepForm: LayoutLMv3 0.84): not comparable",
         "46 of 1,371 test values are not in the words at all; nothing was tuned"]


def same(field, value, gold):
    """Is a value read the labelled one: the same letters and digits, day or number."""
    return dx_labels.key(value) == dx_labels.key(gold) or \
        dx_labels.compare(dx_labels.prepare(field, gold), value) is not None


def run(quick):
    try:
        training, test = data("deepform.train"), data("deepform.test")
    except NoData as error:
        return nothing(FIGURES, str(error))
    schema = dx_labels.schema_from_json(DEEPFORM)
    sides = [[dx_model.document_from_json(v, repair=True) for v in side]
             for side in ((training[:4], test[:2]) if quick else (training, test))]
    labels = []
    for document in sides[0]:
        values = {k: v for k, v in document.extra["fields"].items() if k in schema.names}
        labels += dx_labels.label_document(document, schema, values, similar=True)
    config = dx_model.DocExtractConfig(fields=schema.names)
    made = dx_labels.training_examples(sides[0], labels, schema, config)
    settings = dx_train.TrainSettings(**SETTINGS | ({"steps": 2} if quick else {}))
    progress(f"{len(made)} windows")
    model, seconds = fit(config, made, settings)
    score = Score(schema.names)
    for document in sides[1]:
        found = dx_model.extract_document(model, document, alternatives=0, votes=True).fields
        for field in schema.fields:
            gold = document.extra["fields"].get(field.name)
            value = found[field.name].value
            score.add(field.name, value, gold, value and gold and same(field, value, str(gold)))
    rows = [{"field": name, "f1": score.f1(name), "recall": score.recall(name)} for name in schema.names]
    return {"figures": {"f1_text": score.f1(), "seconds": seconds}, "rows": rows, "notes": NOTES + machine_notes()}
