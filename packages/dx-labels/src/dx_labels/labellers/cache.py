"""Answers kept on disk, one file each, so that nothing is asked or paid twice and a crash loses nothing."""
import hashlib
import os
import threading
from pathlib import Path

from ..below import StrictJSONError, canonical_bytes, parse_json, write_atomic
from ..labels import LabelError, check_values
from .base import page_content


class Cached:
    """A labeller whose answers are kept in a folder, by document (its pages' words, not its id), schema and what
    identifies the labeller (model, prompt). A damaged file is asked again. Documents of equal content are asked once,
    also when several are asked at a time.

    asked, found : how many answers came from the labeller and from the folder
    """

    def __init__(self, labeller, folder):
        self.labeller, self.folder = labeller, Path(folder)
        self.asked = self.found = 0
        self._locks, self._lock = {}, threading.Lock()

    def identity(self):
        return self.labeller.identity()

    def key(self, document, schema):
        """SHA-256 (hex) that the answer is kept under."""
        pages = [page_content(page) for page in document.pages]
        try:
            data = canonical_bytes({"pages": pages, "schema": schema.to_json(), "labeller": self.identity()})
        except ValueError:  # a lone surrogate or a number that RFC 8785 does not know
            data = repr((pages, schema.to_json(), self.identity())).encode("utf-8", "surrogatepass")
        return hashlib.sha256(data).hexdigest()

    def path(self, key):
        return self.folder / key[:2] / f"{key}.json"

    def label(self, document, schema):
        key = self.key(document, schema)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            values = self._read(key, document, schema)
            if values is not None:
                self.found += 1
                return values
            values = self.labeller.label(document, schema)
            self.asked += 1
            path = self.path(key)
            os.makedirs(path.parent, exist_ok=True)
            write_atomic(path, canonical_bytes({"key": key, "values": values}))
            return values

    def _read(self, key, document, schema):
        try:
            value = parse_json(self.path(key).read_bytes().decode("utf-8"))
            if value["key"] != key:
                return None
            check_values(document.id, schema, value["values"])
            return value["values"]
        except (OSError, UnicodeDecodeError, StrictJSONError, LabelError, KeyError, TypeError):
            return None
