"""Reader of PaddleOCR's labelling tool, and what the tools' readers share."""
import os

from ..below import PageError, StrictJSONError, document_from_json, parse_json
from ..schema import nearest, schema_from_json
from .base import Imported, SourceError

_PADDLE = ("transcription", "points", "label", "id", "linking", "difficult")


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
    return with_schema(out, names, schema)


def with_schema(out, names, schema):
    """The schema (by default: every label as a repeated field), and the values it knows."""
    if schema is None and names:
        schema = schema_from_json({"fields": [{"name": name, "repeated": True} for name in sorted(names)]})
    out.schema = schema
    known = schema.names if schema else ()
    out.values = {d: {k: v for k, v in values.items() if k in known} for d, values in out.values.items()}
    return out
