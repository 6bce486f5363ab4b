"""Sources of documents: data sets and labelling tools, each read into one form."""
from ..schema import nearest
from .base import Imported as Imported
from .base import joined as joined
from .base import SourceError as SourceError
from .folders import read_cord_folder, read_funsd_folder, read_sroie_folder, read_xfund
from .jsonl import read_cord, read_deepform, read_funsd, read_invoice2data, read_pages_source, read_sroie
from .label_studio import read_label_studio
from .tools import read_paddle

FORMATS = {
    "pages": (read_pages_source, "JSON lines of pages or documents, with fields where they have them"),
    "sroie": (read_sroie, "SROIE receipts as JSON lines"),
    "funsd": (read_funsd, "FUNSD forms as JSON lines"),
    "cord": (read_cord, "CORD receipts as JSON lines"),
    "deepform": (read_deepform, "DeepForm documents as JSON lines"),
    "invoice2data": (read_invoice2data, "invoice2data's test invoices as JSON lines"),
    "sroie-folder": (read_sroie_folder, "SROIE as published: a folder of box and key files"),
    "funsd-folder": (read_funsd_folder, "FUNSD as published: a folder of annotation files"),
    "xfund": (read_xfund, "XFUND forms as published: a JSON file of documents, or a folder of them"),
    "cord-folder": (read_cord_folder, "CORD as published: a folder of JSON files, or Donut's metadata.jsonl"),
    "label-studio": (read_label_studio, "tasks exported by Label Studio as JSON"),
    "paddle": (read_paddle, "PaddleOCR's KIE label file"),
}


def read_source(name, path, schema=None):
    """The documents of a source; Imported.

    Parameters
    ----------
    name : a key of FORMATS
    path : str or path, file or folder
    schema : Schema or None (the format's own)

    Raises
    ------
    SourceError: an unknown format, a source that is none of that format
    PageError, OSError: as reading pages
    """
    if name not in FORMATS:
        raise SourceError(f"unknown format {name!r}{nearest(name, FORMATS)}: expected one of {', '.join(FORMATS)}")
    return FORMATS[name][0](path, schema)
