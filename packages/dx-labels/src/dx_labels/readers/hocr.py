"""hOCR: HTML in which OCR programs (Tesseract, OCRopus, Kraken, ABBYY converters) say where each word stands."""
import re
from html.parser import HTMLParser

from .base import ReaderError, make_page, read_text, right_angle, usual

NAME = "hocr"
LINES = frozenset(("ocr_line", "ocrx_line", "ocr_header", "ocr_textfloat", "ocr_caption"))
_NUMBER = r"-?\d+(?:\.\d+)?"
_BOX = re.compile(rf"\bbbox\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})")
_ANGLE = re.compile(rf"\btextangle\s+({_NUMBER})")
_CONFIDENCE = re.compile(rf"\bx_wconf\s+({_NUMBER})")
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


def read(path, problems):
    """The pages of an hOCR file: units are the image's pixels."""
    parser = _Parser()
    parser.feed(read_text(path))
    parser.close()
    if not parser.pages:
        raise ReaderError(f"{path}: no element of class ocr_page with a bbox: not hOCR")
    for number, page in enumerate(parser.pages):
        x0, y0, x1, y1 = page["box"]
        words = [{**w, "box": [w["box"][0] - x0, w["box"][1] - y0, w["box"][2] - x0, w["box"][3] - y0]}
                 for w in page["words"]]
        made = make_page(path, number, (x1 - x0, y1 - y0), words, problems, reader=parser.system, version=NAME,
                         unit="pixel", rotation=right_angle(-usual(page["angles"])))
        if made is not None:
            yield made


class _Parser(HTMLParser):
    """Collects pages [{"box", "words", "angles"}]; elements nest as they will, unclosed ones end with their parent."""

    def __init__(self):
        super().__init__()
        self.pages, self.open, self.word, self.line, self.system = [], [], None, -1, NAME

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        title, classes = found.get("title") or "", (found.get("class") or "").split()
        if tag == "meta" and found.get("name") == "ocr-system":
            self.system = found.get("content") or NAME
        box = _BOX.search(title)
        box = [float(v) if "." in v else int(v) for v in box.groups()] if box else None
        if "ocr_page" in classes and box:
            self.pages.append({"box": box, "words": [], "angles": []})
            self.line = -1
        elif self.pages and LINES.intersection(classes):
            self.line += 1
            angle = _ANGLE.search(title)
            self.pages[-1]["angles"].append(float(angle[1]) if angle else 0.0)
        elif self.pages and "ocrx_word" in classes and box:
            self._end_word()
            self.word = {"text": "", "box": box}
            if self.line >= 0:
                self.word["line"] = self.line
            confidence = _CONFIDENCE.search(title)
            if confidence:
                self.word["confidence"] = float(confidence[1]) / 100
        if tag not in _VOID:
            self.open.append((tag, self.word is not None and "ocrx_word" in classes))

    def handle_endtag(self, tag):
        for at in range(len(self.open) - 1, -1, -1):
            if self.open[at][0] == tag:
                if any(is_word for _, is_word in self.open[at:]):
                    self._end_word()
                del self.open[at:]
                return

    def handle_data(self, data):
        if self.word is not None:
            self.word["text"] += data

    def close(self):
        super().close()
        self._end_word()

    def _end_word(self):
        if self.word is not None and self.word["text"].strip():
            text = " ".join(self.word["text"].split())
            self.pages[-1]["words"].append({**self.word, "text": text})
        self.word = None
