"""The JSON of Google Document AI: tokens that point into one text."""
from .base import ReaderError, around, line_at, line_spans, make_page, member, members, read_json, reading_turn, usual

NAME = "google-document-ai"
TURNS = {"PAGE_UP": 0, "PAGE_RIGHT": 90, "PAGE_DOWN": 180, "PAGE_LEFT": 270}


def read(path, problems):
    """The pages of a Document; boxes in the unit of the page's dimension, from normalised vertices where there are."""
    value = read_json(path)
    document = member(value, "document", dict, path, value)
    text = member(document, "text", str, path)
    pages = members(document, "pages", path)
    if text is None or not pages:
        raise ReaderError(f"{path}: no text with pages: not a Document AI document")
    for number, page in enumerate(pages):
        where = f"{path}: page {number}"
        dimension = member(page, "dimension", dict, where, {})
        width, height = dimension.get("width"), dimension.get("height")
        tokens = [member(t, "layout", dict, where, {}) for t in members(page, "tokens", where)]
        lines = line_spans(_segments(member(line, "layout", dict, where, {}), where, len(text))
                           for line in members(page, "lines", where))
        words, turns = [], []
        for layout in tokens:
            segments = _segments(layout, where, len(text))
            content = "".join(text[a:b] for a, b in segments).strip()
            if not content:
                continue
            points = _corners(layout, where, width, height)
            word = {"text": content, "box": around(points) if points else None}
            if type(layout.get("confidence")) in (int, float):
                word["confidence"] = layout["confidence"]
            line = line_at(lines, segments[0][0])
            words.append(word if line is None else {**word, "line": line})
            turn = reading_turn(points)
            turns.append(TURNS.get(layout.get("orientation")) if turn is None else turn)
        made = make_page(path, number, (width, height), words, problems, reader=NAME, version="v1",
                         unit=str(dimension.get("unit") or "pixel"), rotation=usual(turns))
        if made is not None:
            yield made


def _segments(layout, where, length):
    """(start, end) of the text a layout stands for; 64-bit numbers are strings in this JSON, a missing start is 0."""
    anchor = member(layout, "textAnchor", dict, where, {})
    out = []
    for segment in members(anchor, "textSegments", where):
        try:
            start, end = int(segment.get("startIndex") or 0), int(segment["endIndex"])
        except (KeyError, TypeError, ValueError):
            raise ReaderError(f"{where}: text segment {str(segment)[:60]}: expected startIndex and endIndex") from None
        if not 0 <= start <= end <= length:
            raise ReaderError(f"{where}: text segment {start} to {end} in a text of {length}")
        out.append((start, end))
    return out


def _corners(layout, where, width, height):
    """The vertices (x, y); a coordinate that is 0 is missing in this JSON. Empty where there are none."""
    poly = member(layout, "boundingPoly", dict, where, {})
    for name, x, y in (("normalizedVertices", width, height), ("vertices", 1, 1)):
        points = members(poly, name, where)
        if points and all(type(v) in (int, float) for v in (x, y)):
            pairs = [(p.get("x", 0), p.get("y", 0)) for p in points]
            if all(type(v) in (int, float) for pair in pairs for v in pair):
                return [(a * x, b * y) for a, b in pairs]
    return []
