"""Which reader a file is for, by its first bytes."""
import os

from .base import ReaderError

START = 1 << 16
IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*", b"P4", b"P5", b"P6", b"BM", b"RIFF")


def detect(path):
    """The format's name in READERS; ReaderError for a file that is none of them."""
    with open(path, "rb") as file:
        start = file.read(START)
    if not start:
        raise ReaderError(f"{path}: an empty file")
    if b"%PDF-" in start[:1024]:
        return "pdf"
    if start.startswith(IMAGES):
        return "scan"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"level\tpage_num"):
        return "tesseract-tsv"
    if text.startswith(b"<"):
        return "alto" if b"<alto" in start.lower() else _known(path, "hocr" if b"ocr_page" in start else None)
    if text.startswith((b"{", b"[")):
        return _known(path, _json(start) or _json(_end(path)))
    return _known(path, None)


def _json(text):
    for name, marks in (("textract", (b'"Blocks"',)), ("azure", (b'"analyzeResult"', b'"readResults"', b'"modelId"')),
                        ("google", (b'"textAnchor"', b'"text_anchor"', b'"mimeType"')),
                        ("doctr", (b'"page_idx"', b'"blocks"'))):
        if any(mark in text for mark in marks):
            return name
    return None


def _end(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - START))
        return file.read()


def _known(path, name):
    if name is None:
        raise ReaderError(f"{path}: of no form that is known by its first bytes: say which with --format")
    return name
