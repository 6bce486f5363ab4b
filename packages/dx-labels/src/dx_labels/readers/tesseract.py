"""Scanned pages through the Tesseract program, found when it is needed: images, and PDF pages without text."""
import ctypes
import os
import re
import shutil
import subprocess

from .base import ReaderError, document_name
from .tesseract_tsv import pages

NAME = "tesseract"
RESOLUTION = 300  # dots an inch of a PDF page drawn for it
SECONDS = 300


def program():
    """(path, version) of tesseract; ReaderError that says how to get it."""
    path = shutil.which("tesseract")
    if path is None:
        raise ReaderError("scanned pages need the program tesseract, and it is not on PATH: install your system's "
                          "package (Debian: tesseract-ocr, and tesseract-ocr-deu and others for languages)")
    text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=SECONDS).stdout
    found = re.match(r"tesseract v?(\S+)", text)
    return path, found[1] if found else "unknown"


def read(path, problems, *, languages="eng"):
    """The pages of an image file (PNG, JPEG, TIFF of several pages, PNM); units are its pixels. `languages` as
    Tesseract names them, joined by +."""
    yield from _recognise(path, [os.fspath(path)], None, problems, languages, document_name(path), 0)


def pdf_reader(path, problems, languages="eng"):
    """What pdf.read's `ocr` takes: reads one page of a PDF by drawing it at 300 dots an inch."""
    def recognise(page, number):
        picture = _picture(page)
        found = list(_recognise(path, ["stdin"], picture, problems, languages, document_name(path), number,
                                {"resolution": RESOLUTION}))
        return found[0] if found else None
    return recognise


def _recognise(path, source, data, problems, languages, document, first, extra=None):
    command, version = program()
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # its threads make it slower
    try:
        done = subprocess.run([command, *source, "stdout", "-l", languages, "tsv"], input=data, capture_output=True,
                              timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        raise ReaderError(f"{path}: tesseract gave no answer within {SECONDS} s") from None
    if done.returncode:
        says = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ReaderError(f"{path}: tesseract: {says[-1] if says else f'exit code {done.returncode}'}")
    yield from pages(path, done.stdout.decode("utf-8", "replace"), problems, version=version, document=document,
                     first=first, extra=extra)


def _picture(page):
    """A PDF page as a PGM picture (grey, one byte a dot); bytes."""
    bitmap = page.render(scale=RESOLUTION / 72, grayscale=True)
    width, height, stride = bitmap.width, bitmap.height, bitmap.stride
    dots = bytes((ctypes.c_ubyte * (stride * height)).from_address(ctypes.addressof(bitmap.buffer)))
    rows = dots if stride == width else b"".join(dots[y * stride:y * stride + width] for y in range(height))
    bitmap.close()
    return b"P5\n%d %d\n255\n" % (width, height) + rows
