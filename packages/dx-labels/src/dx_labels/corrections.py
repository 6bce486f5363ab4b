"""Corrections made by hand (dx serve-review): reviews.jsonl of a project, to which lines are only ever added.

A line is {"document", "field", "revision", "value", "before"}: the field's value from then on, as label_document takes
it (null: the document has none), and what stood there. Revisions of a field of a document count from 1. The last line
of a field holds; it goes before values.jsonl and before the values that the document carries."""
import contextlib
import fcntl
import json
import os

from .below import StrictJSONError, parse_json

NAME = "reviews.jsonl"
KEYS = ("document", "field", "revision", "value", "before")


class ReviewError(ValueError):
    """A correction or a reviews file that breaks a rule; the message names document and field, or file and line."""


class ReviewConflict(ReviewError):
    """Somebody else corrected this field since it was read; `revision` and `value` are what holds now."""

    def __init__(self, text, revision, value):
        super().__init__(text)
        self.revision, self.value = revision, value


class History:
    """The corrections of a project folder. Several processes may add at a time: every addition happens under a lock,
    after reading what the others added."""

    def __init__(self, folder):
        self.path = os.path.join(os.fspath(folder), NAME)
        self.lines, self.latest = [], {}  # latest: (document, field) → (revision, value)
        self._read_to = 0
        self.refresh()

    def refresh(self):
        """Reads what was added to the file since the last look. A last line without its end (a crash while it was
        written) does not count; the next addition takes its place. ReviewError for any other broken line."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[:data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._take(line)
        self._read_to += len(whole)

    def _take(self, line):
        where = f"{self.path}:{len(self.lines) + 1}"
        try:
            value = parse_json(line.decode("utf-8"))
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise ReviewError(f"{where}: {error}") from None
        if not isinstance(value, dict) or sorted(value) != sorted(KEYS):
            raise ReviewError(f"{where}: expected an object with {', '.join(KEYS)}")
        key = value["document"], value["field"]
        if value["revision"] != self.latest.get(key, (0, None))[0] + 1:
            raise ReviewError(f"{where}: revision {value['revision']!r} of {key[1]!r} does not follow "
                              f"{self.latest.get(key, (0, None))[0]}")
        self.lines.append(value)
        self.latest[key] = value["revision"], value["value"]

    def of_document(self, document):
        """The corrected fields of a document; dict field → value."""
        return {field: value for (name, field), (_, value) in self.latest.items() if name == document}

    def revision(self, document, field):
        """How often the field was corrected; int, 0 for never."""
        return self.latest.get((document, field), (0, None))[0]

    def add(self, document, field, revision, value, before):
        """Adds a correction and makes it durable before it returns.

        Parameters
        ----------
        revision : the field's revision as the caller saw it
        value, before : as in the file

        Raises
        ------
        ReviewConflict: the field has another revision by now; nothing is written
        OSError: it cannot be written; what was there stays readable
        """
        with self._locked() as file:
            self.refresh()
            now = self.latest.get((document, field), (0, None))
            if now[0] != revision:
                raise ReviewConflict(f"document {document!r}, field {field!r}: revision {revision} was corrected "
                                     f"meanwhile; it is {now[0]} now", *now)
            line = {"document": document, "field": field, "revision": revision + 1, "value": value, "before": before}
            data = json.dumps(line, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
            file.truncate(self._read_to)  # what a crash left of a line
            file.seek(self._read_to)
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(self._read_to)
                raise
            self.refresh()
        return revision + 1

    @contextlib.contextmanager
    def _locked(self):
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        with os.fdopen(handle, "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def overlaid(values, corrected):
    """A document's values with its corrected fields in their place; None where there are neither."""
    if not corrected:
        return values
    return {**(values or {}), **corrected}
