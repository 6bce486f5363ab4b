"""What every page reader shares: how a page is made, how a broken file is named.

A reader is a generator function `read(path, problems, **options)`: it yields Pages one at a time, so that a file of any
length needs the memory of one page, and appends to `problems` (a list of messages) what it had to leave out. A file
that is none of its format raises ReaderError. Every page's extra keeps what the reader knew: `source` (the file's
name), `reader` {"name", "version"}, `unit`, and each word its `confidence` (0 to 1) where the file has one."""
import bisect
import math
import os
from pathlib import Path

from ..below import PageError, StrictJSONError, page_from_json, parse_json

TURNS = (0, 90, 180, 270)


class ReaderError(ValueError):
    """A file that a reader cannot read; the message names the file and what was expected."""


def document_name(path):
    """The document's id: the file's name without its last suffix (two for .gz); str."""
    name = os.path.basename(os.fspath(path))
    return os.path.splitext(name.removesuffix(".gz"))[0] or name


def make_page(path, number, size, words, problems, *, reader, version, unit, rotation=0, document=None, extra=None):
    """A Page with what its reader knows, or None where its size is unusable.

    Parameters
    ----------
    path : the file; number : the page's place in the document, from 0
    size : (width, height) in `unit`
    words : list of dict {"text", "box", "line", …} as page_from_json reads them; a word that breaks a rule that cannot
        be repaired is left out and named in problems
    problems : list that messages are appended to
    reader, version : of what made the words; unit : str, of the boxes
    rotation : 0, 90, 180 or 270: how far the content is turned clockwise
    document : its id (default: document_name of the file); extra : further keys of the page
    """
    document = document or document_name(path)
    value = {"id": f"{document}/{number}", "width": size[0], "height": size[1], "document": document, "number": number,
             "rotation": rotation, "words": [], "source": os.path.basename(os.fspath(path)),
             "reader": {"name": reader, "version": version}, "unit": unit, **(extra or {})}
    try:
        page_from_json(value, repair=True)
    except PageError as error:
        problems.append(f"{path}: {error}")
        return None
    value["words"] = words
    try:
        return page_from_json(value, repair=True)
    except PageError:
        value["words"] = [word for index, word in enumerate(words) if _usable(path, value, index, word, problems)]
        return page_from_json(value, repair=True)


def _usable(path, page, index, word, problems):
    try:
        page_from_json({**page, "words": [word]}, repair=True)
    except PageError as error:
        problems.append(f"{path}: page {page['number']}, word {index} left out: {error}")
        return False
    return True


def right_angle(degrees):
    """The nearest of 0, 90, 180, 270 to an angle in degrees clockwise; 0 for what is no number."""
    if isinstance(degrees, bool) or not isinstance(degrees, (int, float)) or not math.isfinite(degrees):
        return 0
    return TURNS[math.floor((degrees % 360) / 90 + 0.5) % 4]


def reading_turn(points):
    """How far text is turned clockwise whose box's corners run from the reader's top left to the top right and on; 0,
    90, 180, 270, or None for fewer than four corners."""
    if len(points) < 4:
        return None
    dx, dy = points[1][0] - points[0][0], points[1][1] - points[0][1]
    if abs(dx) >= abs(dy):
        return 0 if dx >= 0 else 180
    return 90 if dy > 0 else 270


def usual(turns):
    """The commonest of the values that are not None; of equally common ones the smallest; 0 where there is none."""
    counts = {}
    for turn in turns:
        if turn is not None:
            counts[turn] = counts.get(turn, 0) + 1
    return min(counts, key=lambda t: (-counts[t], t)) if counts else 0


def line_spans(lines):
    """(first offset, end, line) of every span of every line, by offset.

    lines : for each line an iterable of (first offset, end)
    """
    return sorted((start, end, line) for line, spans in enumerate(lines) for start, end in spans)


def line_at(spans, offset):
    """The line whose span holds an offset, or None; spans as line_spans gives them, not overlapping."""
    at = bisect.bisect_right(spans, offset, key=lambda span: span[0])
    return spans[at - 1][2] if at and offset < spans[at - 1][1] else None


def around(points):
    """[x0, y0, x1, y1] around points (x, y)."""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return [min(xs), min(ys), max(xs), max(ys)]


def read_bytes(path):
    """The file's bytes without a byte order mark."""
    return Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")


def read_text(path):
    """The file as UTF-8 text; ReaderError where it is not."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReaderError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None


def read_json(path):
    """The file as one JSON object; ReaderError where it is not."""
    try:
        value = parse_json(read_text(path))
    except StrictJSONError as error:
        raise ReaderError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise ReaderError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def member(value, name, kind, where, default=None):
    """value[name] if it is of that kind; default where it is missing or null; ReaderError for anything else."""
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, kind) or isinstance(found, bool):
        expected = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise ReaderError(f"{where}: {name} is {str(found)[:40]!r}: expected {expected}")
    return found


def members(value, name, where):
    """value[name] as a list of objects; ReaderError where it is something else."""
    found = member(value, name, list, where, [])
    for index, one in enumerate(found):
        if not isinstance(one, dict):
            raise ReaderError(f"{where}: {name}[{index}] is {str(one)[:40]!r}: expected an object")
    return found
