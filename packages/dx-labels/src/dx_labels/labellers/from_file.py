"""Values that stand in a JSON-lines file: {"id": …, "values": {field: value, …}} a line."""
import os

from ..below import StrictJSONError, parse_json
from ..schema import nearest
from .base import LabellerError


class FileLabeller:
    """A labeller that reads values from a file.

    path : JSON lines; a line is {"id": document id, "values" (or "fields"): {…}}. A broken line is kept out and named
    in `problems`; a second line of one id wins over the first, and is named.
    """

    def __init__(self, path):
        self.path, self.values, self.problems = os.fspath(path), {}, []
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    self._line(f"{self.path}:{number}", line)

    def _line(self, where, line):
        try:
            value = parse_json(line.decode("utf-8"))
        except (UnicodeDecodeError, StrictJSONError) as error:
            self.problems.append(f"{where}: {error}")
            return
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            self.problems.append(f"{where}: expected an object with id and values")
            return
        found = value.get("values", value.get("fields"))
        if not isinstance(found, dict):
            others = [k for k in value if k != "id"]
            hint = nearest(others[0], ("values", "fields")) if others else ""
            self.problems.append(f"{where}: {value['id']!r} has no object values (or fields){hint}")
            return
        if value["id"] in self.values:
            self.problems.append(f"{where}: {value['id']!r} stands already in an earlier line; this one is taken")
        self.values[value["id"]] = found

    def identity(self):
        return {"kind": "file"}

    def label(self, document, schema):
        if document.id not in self.values:
            raise LabellerError(f"document {document.id!r}: {self.path} has no values for it")
        return self.values[document.id]
