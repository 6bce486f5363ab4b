"""SROIE with few training pages: the first 10, 25, 50, 100, 250 of the 626 by the split's order; the official 347 test.

figures  f1_text_10 … f1_text_250: F1 by text from scratch; base_f1_text_*: from the base model
rows     pages, F1 by text, by words, exact, seconds
Settings are those of bench sroie, with a fixed number of steps whatever the number of pages; nothing was tuned here.
"""
import dataclasses

import dx_labels

from . import machine_notes
from ._documents import NoData, data, nothing
from .sroie import SETTINGS, documents, evaluate, train

COUNTS = (10, 25, 50, 100, 250)
STEPS = 500
FIGURES = (*(f"f1_text_{n}" for n in COUNTS), *(f"base_f1_text_{n}" for n in COUNTS))


def run(quick):
    try:
        training, test = data("sroie.train"), data("sroie.test")
    except NoData as error:
        return nothing(FIGURES, str(error))
    by_id = {v["id"]: v for v in training}
    order = sorted(by_id, key=lambda name: dx_labels.order_key(0, name))
    test = documents(test[:4] if quick else test)
    settings = dx_labels.TrainSettings(**SETTINGS | {"steps": 2 if quick else STEPS})
    figures, rows = dict.fromkeys(FIGURES), []
    for count in COUNTS:
        chosen = documents([by_id[name] for name in sorted(order[:count])])
        model, seconds = train(chosen, dataclasses.replace(settings, ema_decay=0.0 if quick else settings.ema_decay))
        text, words, exact = evaluate(model, test)
        figures[f"f1_text_{count}"] = text.f1()
        rows.append({"pages": count, "f1_text": text.f1(), "f1_words": words.f1(), "f1_exact": exact.f1(),
                     "seconds": seconds})
    notes = [f"{settings.steps} steps of {settings.batch} pages each; base_*: there is no base model yet"]
    return {"figures": figures, "rows": rows, "notes": notes + machine_notes()}
