"""Readers of pages as OCR programs, services and PDF files give them: words and boxes, without labels."""
from . import alto, azure, doctr, google, hocr, pdf, tesseract, tesseract_tsv, textract
from .base import ReaderError as ReaderError
from .detect import detect as detect

READERS = {
    "pdf": (pdf.read, "the text layer of PDF files (extra: pdf)"),
    "scan": (tesseract.read, "images, through the program Tesseract"),
    "hocr": (hocr.read, "hOCR"),
    "alto": (alto.read, "ALTO XML"),
    "tesseract-tsv": (tesseract_tsv.read, "Tesseract's TSV"),
    "azure": (azure.read, "Azure Document Intelligence's JSON"),
    "google": (google.read, "Google Document AI's JSON"),
    "textract": (textract.read, "AWS Textract's JSON"),
    "doctr": (doctr.read, "docTR's export"),
}


def read_file(path, problems, *, format=None, ocr=False, languages="eng", password=None):
    """The pages of one file, one at a time.

    Parameters
    ----------
    path : str or path
    problems : list that messages about what was left out are appended to
    format : a key of READERS, or None: detect(path)
    ocr : PDF pages without text are read through Tesseract
    languages : Tesseract's names of languages, joined by +
    password : of an encrypted PDF file, or None

    Yields
    ------
    Page: `document` is the file's name without suffix, `number` the page's place in it

    Raises
    ------
    ReaderError: a file that cannot be read at all, or whose form is not known; OSError
    """
    format = format or detect(path)
    if format not in READERS:
        raise ReaderError(f"unknown format {format!r}: expected one of {', '.join(READERS)}")
    if format == "pdf":
        asked = tesseract.pdf_reader(path, problems, languages) if ocr else None
        return pdf.read(path, problems, ocr=asked, password=password)
    if format == "scan":
        return tesseract.read(path, problems, languages=languages)
    return READERS[format][0](path, problems)
