"""The JSON of Azure Document Intelligence (prebuilt-read, -layout, custom models), and of Form Recognizer 2.x."""
from .base import (ReaderError, around, line_at, line_spans, make_page, member, members, read_json, reading_turn,
                   right_angle, usual)

NAME = "azure"


def read(path, problems):
    """The pages of an analysis; units are inches for PDF files and pixels for images, as the file says."""
    value = read_json(path)
    result = member(value, "analyzeResult", dict, path, value)
    version = str(value.get("apiVersion") or result.get("apiVersion") or result.get("version") or "unknown")
    pages = members(result, "pages", path)
    older = members(result, "readResults", path)
    if not pages and not older:
        raise ReaderError(f"{path}: neither analyzeResult.pages nor analyzeResult.readResults: not an Azure analysis")
    for number, page in enumerate(pages or older):
        where = f"{path}: page {number}"
        words, turns = [], []
        if pages:
            starts = line_spans(_spans(line, where) for line in members(page, "lines", where))
            for word in members(page, "words", where):
                words.append(_word(word, "content", "polygon", where, starts, turns))
        else:
            for line, one in enumerate(members(page, "lines", where)):
                words += [{**_word(w, "text", "boundingBox", where, None, turns), "line": line}
                          for w in members(one, "words", where)]
        made = make_page(path, number, (page.get("width"), page.get("height")), [w for w in words if w["text"].strip()],
                         problems, reader=NAME, version=version, unit=str(page.get("unit") or "unknown"),
                         rotation=usual(turns) or right_angle(page.get("angle")))
        if made is not None:
            yield made


def _word(word, text, polygon, where, starts, turns):
    numbers = member(word, polygon, list, where, [])
    good = len(numbers) >= 6 and len(numbers) % 2 == 0 and all(type(v) in (int, float) for v in numbers)
    points = list(zip(numbers[::2], numbers[1::2])) if good else []
    out = {"text": member(word, text, str, where, ""), "box": around(points) if points else None}
    turns.append(reading_turn(points))
    if type(word.get("confidence")) in (int, float):
        out["confidence"] = word["confidence"]
    span = word.get("span")
    if starts and isinstance(span, dict) and type(span.get("offset")) is int:
        line = line_at(starts, span["offset"])
        if line is not None:
            out["line"] = line
    return out


def _spans(line, where):
    """(first offset, end) of a line's spans."""
    for span in members(line, "spans", where):
        if type(span.get("offset")) is int and type(span.get("length")) is int:
            yield span["offset"], span["offset"] + span["length"]
