"""The JSON of AWS Textract (DetectDocumentText, AnalyzeDocument, and the list of an asynchronous job's answers)."""
from ..below import StrictJSONError, parse_json
from .base import ReaderError, around, make_page, member, members, read_text, reading_turn, usual

NAME = "aws-textract"
VERSIONS = ("AnalyzeDocumentModelVersion", "DetectDocumentTextModelVersion")


def read(path, problems):
    """The pages of an answer, or of a list of answers in their order. Textract gives shares of the page, never its
    size: a page is 1 by 1, its unit "page"."""
    try:
        value = parse_json(read_text(path))
    except StrictJSONError as error:
        raise ReaderError(f"{path}: {error}") from None
    answers = value if isinstance(value, list) else [value]
    if not answers or not all(isinstance(a, dict) and "Blocks" in a for a in answers):
        raise ReaderError(f"{path}: no Blocks: not a Textract answer")
    blocks = [b for answer in answers for b in members(answer, "Blocks", path)]
    version = next((str(a[k]) for a in answers for k in VERSIONS if k in a), "unknown")
    lines, pages = {}, {}
    for block in blocks:
        kind, number = block.get("BlockType"), block.get("Page", 1)
        if type(number) is not int or number < 1:
            raise ReaderError(f"{path}: Page is {str(number)[:40]!r}: expected a number from 1")
        found = pages.setdefault(number, {"words": [], "lines": 0})
        if kind == "LINE":
            for relation in members(block, "Relationships", path):
                if relation.get("Type") == "CHILD":
                    for name in member(relation, "Ids", list, path, []):
                        lines[str(name)] = found["lines"]
            found["lines"] += 1
        elif kind == "WORD":
            found["words"].append(block)
    for number in sorted(pages):
        words, turns = [], []
        for block in pages[number]["words"]:
            where = f"{path}: page {number}"
            geometry = member(block, "Geometry", dict, where, {})
            text = member(block, "Text", str, where, "")
            if not text.strip():
                continue
            word = {"text": text, "box": _box(geometry, where)}
            if type(block.get("Confidence")) in (int, float):
                word["confidence"] = block["Confidence"] / 100
            if str(block.get("Id")) in lines:
                word["line"] = lines[str(block["Id"])]
            words.append(word)
            turns.append(reading_turn(_polygon(geometry, where)))
        page = make_page(path, number - 1, (1, 1), words, problems, reader=NAME, version=version, unit="page",
                         rotation=usual(turns))
        if page is not None:
            yield page


def _box(geometry, where):
    """The box of a word: BoundingBox, or around Polygon; None where there is neither."""
    box = member(geometry, "BoundingBox", dict, where)
    if box is not None:
        values = [box.get(k) for k in ("Left", "Top", "Width", "Height")]
        if all(type(v) in (int, float) for v in values):
            x, y, width, height = values
            return [x, y, min(x + width, max(x, 1)), min(y + height, max(y, 1))]  # sums of shares may pass 1 by an ulp
    points = _polygon(geometry, where)
    return around(points) if points else None


def _polygon(geometry, where):
    """The corners (x, y), or () where there are none that can be used."""
    points = [(p.get("X"), p.get("Y")) for p in members(geometry, "Polygon", where)]
    return points if all(type(v) in (int, float) for p in points for v in p) else ()
