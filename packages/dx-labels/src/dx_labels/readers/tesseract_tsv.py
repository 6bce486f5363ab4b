"""Tesseract's TSV: a row a page, block, paragraph, line or word."""
from .base import ReaderError, make_page, read_text

NAME = "tesseract-tsv"
COLUMNS = ("level", "page_num", "block_num", "par_num", "line_num", "word_num", "left", "top", "width", "height",
           "conf", "text")
PAGE, LINE, WORD = 1, 4, 5


def read(path, problems):
    """The pages of a TSV file; units are the image's pixels."""
    yield from pages(path, read_text(path), problems)


def pages(path, text, problems, *, version="tsv", document=None, first=0, extra=None):
    """The pages of TSV text. A row that cannot be read is left out and named."""
    lines = text.splitlines()
    header = lines[0].split("\t") if lines else []
    if tuple(header) != COLUMNS:
        raise ReaderError(f"{path}:1: the columns are {header[:3]}…: expected {', '.join(COLUMNS)}")
    size, words, line, number = None, [], -1, first
    options = {"reader": "tesseract", "version": version, "unit": "pixel", "document": document, "extra": extra}
    for at, row in enumerate(lines[1:], 2):
        cells = row.split("\t", len(COLUMNS) - 1)
        try:
            level = int(cells[0])
            x, y, width, height = (int(v) for v in cells[6:10])
            confidence = float(cells[10])
        except (ValueError, IndexError):
            problems.append(f"{path}:{at}: left out: expected twelve columns of numbers and a text")
            continue
        if level == PAGE:
            if size is not None:
                page = make_page(path, number, size, words, problems, **options)
                number += 1
                if page is not None:
                    yield page
            size, words, line = (width, height), [], -1
        elif level == LINE:
            line += 1
        elif level == WORD and len(cells) == len(COLUMNS) and cells[11].strip():
            if size is None:
                raise ReaderError(f"{path}:{at}: a word before the first page")
            word = {"text": cells[11].strip(), "box": [x, y, x + width, y + height],
                    "confidence": max(confidence, 0.0) / 100}
            words.append(word if line < 0 else {**word, "line": line})
    if size is None:
        raise ReaderError(f"{path}: no page in it")
    page = make_page(path, number, size, words, problems, **options)
    if page is not None:
        yield page
