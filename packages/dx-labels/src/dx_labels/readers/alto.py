"""ALTO XML (versions 2 to 4), the libraries' form of OCR: read as a stream, one page at a time."""
from xml.parsers import expat

from .base import ReaderError, make_page

NAME = "alto"
CHUNK = 1 << 16
UNITS = {"pixel": "pixel", "mm10": "mm/10", "inch1200": "inch/1200"}


def read(path, problems):
    """The pages of an ALTO file. A word broken by a hyphen stays as printed; what it is whole (SUBS_CONTENT) is kept as
    the word's `whole`. A file with a document type declaration is refused: ALTO needs none, entities can be bombs."""
    state = _State(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = state.start, state.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = state.data, state.doctype
    number = 0
    with open(path, "rb") as file:
        done = False
        while not done:
            chunk = file.read(CHUNK)
            done = not chunk
            try:
                parser.Parse(chunk, done)
            except expat.ExpatError as error:
                if not number and not state.pages:
                    raise ReaderError(f"{path}: not XML: {error}") from None
                problems.append(f"{path}: broken off: {error}; the pages before are kept")
                done = True
            while state.pages:
                size, words = state.pages.pop(0)
                page = make_page(path, number, size, words, problems, reader=state.system or NAME, version=NAME,
                                 unit=UNITS.get(state.unit, state.unit))
                number += 1
                if page is not None:
                    yield page
    if not number:
        raise ReaderError(f"{path}: no Page element: not ALTO")


class _State:
    """What the parser has met; finished pages wait in `pages` as (size, words)."""

    def __init__(self, path):
        self.path, self.pages, self.unit, self.system = path, [], "pixel", ""
        self.size, self.words, self.line, self.text, self.root = (0, 0), None, -1, None, None

    def doctype(self, *_):
        raise ReaderError(f"{self.path}: a document type declaration: not read")

    def start(self, name, attributes):
        name = name.rpartition(" ")[2]
        if self.root is None:
            self.root = name
            if name.lower() != "alto":
                raise ReaderError(f"{self.path}: the outermost element is {name!r}: expected 'alto'")
        if name in ("MeasurementUnit", "softwareName"):
            self.text = ""
        elif name == "Page":
            self.size, self.words, self.line = (_number(attributes, "WIDTH"), _number(attributes, "HEIGHT")), [], -1
        elif name == "TextLine":
            self.line += 1
        elif name == "String" and self.words is not None and attributes.get("CONTENT", "").strip():
            x, y, width, height = (_number(attributes, k) for k in ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
            known = None not in (x, y, width, height)
            word = {"text": attributes["CONTENT"], "box": [x, y, x + width, y + height] if known else None}
            if self.line >= 0:
                word["line"] = self.line
            confidence = _number(attributes, "WC")
            if confidence is not None:
                word["confidence"] = confidence
            if "SUBS_CONTENT" in attributes:
                word["whole"] = attributes["SUBS_CONTENT"]
            self.words.append(word)
        elif name == "HYP" and self.words:
            self.words[-1]["text"] += attributes.get("CONTENT", "-")

    def data(self, text):
        if self.text is not None:
            self.text += text

    def end(self, name):
        name = name.rpartition(" ")[2]
        if name == "MeasurementUnit":
            self.unit, self.text = self.text.strip() or self.unit, None
        elif name == "softwareName":
            self.system, self.text = self.system or self.text.strip(), None
        elif name == "Page":
            self.pages.append((self.size, self.words))
            self.words = None


def _number(attributes, name):
    """A finite number, or None for what is missing or none."""
    try:
        value = float(attributes[name])
    except (KeyError, ValueError):
        return None
    if not -2.0 ** 30 <= value <= 2.0 ** 30:
        return None
    return int(value) if value == int(value) else value
