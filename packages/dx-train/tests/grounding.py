"""SROIE receipts as examples: values found on the page by their letters and digits, every place of each."""
import gzip
import json
import os
import re
from pathlib import Path

import dx_train
import numpy as np
from dx_train import Example, Targets

FIELDS = ("company", "date", "address", "total")
DATA = os.environ.get("DX_DATA")


def pages(count=None):
    """(page, fields) of the training receipts, in the file's order."""
    with gzip.open(Path(DATA) / "sroie.train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows.sort(key=lambda row: row["id"])
    for row in rows[:count]:
        yield dx_train.page_from_json({k: row[k] for k in ("id", "width", "height", "words")}), row["fields"]


def key(text):
    """Letters and digits, upper case."""
    return re.sub(r"[^0-9A-Z]", "", text.upper())


def places(keys, value):
    """Runs of rows whose letters and digits are the value's."""
    found = []
    for i in range(len(keys)):
        if not keys[i]:
            continue
        text = ""
        for j in range(i, len(keys)):
            text += keys[j]
            if len(text) >= len(value):
                if text == value:
                    found.append((i, j))
                break
            if not value.startswith(text):
                break
    return found


def example(page, fields, config):
    """(Example, row keys): tags B and I on every place, a run term for each value that is found."""
    encoded = dx_train.encode_page(page, config.encoding())
    texts = page.texts
    keys = [key(texts[w][a:b]) for w, a, b in zip(encoded.word, encoded.start, encoded.end)]
    tag, terms, rows = np.zeros(len(keys), np.int32), [], []
    for field, name in enumerate(config.fields):
        value = key(fields.get(name) or "")
        found = places(keys, value) if value else []
        if not found and value:
            continue  # not on the page in this form: says nothing
        for i, j in found:
            if not tag[i:j + 1].any():
                tag[i:j + 1], tag[i] = 2 + 2 * field, 1 + 2 * field
            rows.append((len(terms), i, j))
        terms.append(field)
    targets = Targets(tag, run_fields=np.array(terms, np.int32),
                      run_places=np.array(rows, np.int32).reshape(-1, 3))
    return Example(f"{page.id}#0", encoded, targets), keys


def decoded(model, example, keys):
    """Field → letters and digits of the run that the best legal tagging gives it, '' for none."""
    logits = np.ascontiguousarray(model.forward(example.page, ("tag",)).tag)
    tags = np.empty(len(logits), np.int32)
    dx_train.decode_tags(logits, model.config.repeated_mask(), tags)
    values = dict.fromkeys(model.config.fields, "")
    for field, first, last in dx_train.runs_of_tags(tags).tolist():
        values[model.config.fields[field]] = "".join(keys[first:last + 1])
    return values
