"""The JSON of a docTR Document (its `export()`)."""
from .base import ReaderError, around, make_page, member, members, read_json, reading_turn, right_angle, usual

NAME = "doctr"


def read(path, problems):
    """The pages of an export; units are the image's pixels (docTR's shares times the page's dimensions)."""
    value = read_json(path)
    if "pages" not in value:
        raise ReaderError(f"{path}: no pages: not a docTR export")
    for number, page in enumerate(members(value, "pages", path)):
        where = f"{path}: page {number}"
        size = member(page, "dimensions", list, where, [])
        if len(size) != 2 or any(type(v) not in (int, float) or v <= 0 for v in size):
            raise ReaderError(f"{where}: dimensions is {str(size)[:40]}: expected [height, width]")
        height, width = size
        words, turns, line = [], [], -1
        for block in members(page, "blocks", where):
            for one in members(block, "lines", where):
                line += 1
                for word in members(one, "words", where):
                    text = member(word, "value", str, where, "")
                    if not text.strip():
                        continue
                    points = _points(word.get("geometry"), width, height)
                    turns.append(reading_turn(points))
                    made = {"text": text, "box": around(points) if points else None, "line": line}
                    if type(word.get("confidence")) in (int, float):
                        made["confidence"] = word["confidence"]
                    words.append(made)
        turn = member(page, "orientation", dict, where, {}).get("value")
        made = make_page(path, number, (width, height), words, problems, reader=NAME, version="export", unit="pixel",
                         rotation=usual(turns) or right_angle(turn))
        if made is not None:
            yield made


def _points(points, width, height):
    """Two corners or four in the page's units; () for anything else."""
    if not isinstance(points, (list, tuple)) or len(points) not in (2, 4):
        return ()
    if any(not isinstance(p, (list, tuple)) or len(p) != 2 or any(type(v) not in (int, float) for v in p)
           for p in points):
        return ()
    return [(min(max(x, 0), 1) * width, min(max(y, 0), 1) * height) for x, y in points]
