"""Readers of labelling tools' exports: Label Studio and PaddleOCR."""
import os

from ..below import PageError, StrictJSONError, document_from_json, parse_json
from ..schema import nearest, schema_from_json
from .base import Imported, SourceError

TEMPLATES = ("OCR (rectangles with text: data {'ocr': image} or {'image': image}, results rectanglelabels + textarea)",)
_PADDLE = ("transcription", "points", "label", "id", "linking", "difficult")


def _load(path):
    with open(path, "rb") as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        return parse_json(data.decode("utf-8"))
    except (UnicodeDecodeError, StrictJSONError) as error:
        raise SourceError(f"{path}: {error}") from None


def regions(results):
    """The regions of a task's results: results that share an id are one region with all their attributes; list of dict
    {"id", "box": (x, y, width, height in percent), "size", "labels", "text", "choices"}."""
    found = {}
    for result in results:
        value = result.get("value", {})
        one = found.setdefault(result.get("id"), {"id": result.get("id"), "box": None, "size": None, "labels": [],
                                                  "text": None, "choices": []})
        if one["box"] is None and all(k in value for k in ("x", "y", "width", "height")):
            one["box"] = tuple(value[k] for k in ("x", "y", "width", "height"))
            one["size"] = (result.get("original_width"), result.get("original_height"))
        one["labels"] += [v for v in value.get("rectanglelabels", []) if v not in one["labels"]]
        one["choices"] += [v for v in value.get("choices", []) if v not in one["choices"]]
        text = value.get("text")
        if text is not None:
            one["text"] = " ".join(text) if isinstance(text, list) else text
    return list(found.values())


def read_label_studio(path, schema=None):
    """Tasks exported as JSON from Label Studio's OCR template: rectangles with a label and a text. Every region becomes
    words; a region's label is the field of its text."""
    tasks = _load(path)
    if not isinstance(tasks, list):
        raise SourceError(f"{path}: expected a list of tasks")
    out, names = Imported(), {}
    for number, task in enumerate(tasks):
        where = f"{os.fspath(path)}: task {number}"
        data = task.get("data", {}) if isinstance(task, dict) else {}
        if not any(k in data for k in ("ocr", "image")):
            out.problems.append(f"{where}: data has {', '.join(map(repr, data)) or 'nothing'}: accepted templates are "
                                f"{'; '.join(TEMPLATES)}")
            continue
        results = [r for a in task.get("annotations", [])[:1] for r in a.get("result", [])]
        words, values, size = [], {}, (100, 100)
        for region in regions(results):
            if region["box"] is None or not (region["text"] or "").strip():
                continue
            size = region["size"] if all(region["size"]) else size
            x, y, w, h = (v * s / 100 for v, s in zip(region["box"], (*size, *size)))
            first, parts, length, at = len(words), region["text"].split(), len(region["text"].strip()), 0
            for part in parts:
                words.append({"text": part, "box": [x + w * at / length, y, x + w * (at + len(part)) / length, y + h]})
                at += len(part) + 1
            for label in region["labels"]:
                names[label] = True
                values.setdefault(label, []).append({"value": region["text"], "words": list(range(first, len(words)))})
        name = str(task.get("id", number))
        try:
            document = document_from_json({"id": name, "width": size[0], "height": size[1], "words": words},
                                          repair=True)
        except PageError as error:
            out.problems.append(f"{where}: {error}")
            continue
        out.documents.append(document)
        out.values[name] = values
    return _with_schema(out, names, schema)


def read_paddle(path, schema=None):
    """PaddleOCR's KIE label file: a line "image<TAB>[{"transcription", "points", "label"},
                                                      …]" for each page. A key that
    the format does not have stops the import: a misnamed label would be lost in silence."""
    out, names = Imported(), {}
    with open(path, "rb") as file:
        lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{os.fspath(path)}:{number}"
        try:
            image, tab, text = line.decode("utf-8").rstrip("\r").partition("\t")
            if not tab:
                raise SourceError(f"{where}: expected image, a tab and a list")
            items = parse_json(text)
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise SourceError(f"{where}: {error}") from None
        words, values = [], {}
        for item in items:
            for key in item:
                if key not in _PADDLE:
                    hint = nearest(key, _PADDLE) or (" (did you mean 'label'?)" if "label" not in item else "")
                    raise SourceError(f"{where}: unknown key {key!r}{hint}: expected {', '.join(_PADDLE)}")
            if "label" not in item or "transcription" not in item or "points" not in item:
                raise SourceError(f"{where}: a record without transcription, points or label")
            if not item["transcription"].strip():
                continue
            xs, ys = [p[0] for p in item["points"]], [p[1] for p in item["points"]]
            names[item["label"]] = True
            values.setdefault(item["label"], []).append({"value": item["transcription"], "words": [len(words)]})
            words.append({"text": item["transcription"], "box": [min(xs), min(ys), max(xs), max(ys)]})
        try:
            document = document_from_json({"id": image, "words": words}, repair=True)
        except PageError as error:
            raise SourceError(f"{where}: {error}") from None
        out.documents.append(document)
        out.values[image] = values
    names = {n: True for n in names if n.lower() not in ("other", "none", "ignore")}
    return _with_schema(out, names, schema)


def _with_schema(out, names, schema):
    """The schema (by default: every label as a repeated field), and the values it knows."""
    if schema is None and names:
        schema = schema_from_json({"fields": [{"name": name, "repeated": True} for name in sorted(names)]})
    out.schema = schema
    known = schema.names if schema else ()
    out.values = {d: {k: v for k, v in values.items() if k in known} for d, values in out.values.items()}
    return out
