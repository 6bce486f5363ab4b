"""A project folder: schema, pages, labels, settings, checkpoints, model and report in one place.

    schema.json or schema.toml    the fields
    pages.jsonl(.gz), pages/      documents, one a line; a document may carry its values as `fields`
    values.jsonl                  {"id", "fields"} a line: values of documents that do not carry them
    labels.jsonl                  what grounding made of the values (dx label)
    settings.json                 everything that training may be told (docs/projects.md); absent: the defaults
    run/                          checkpoints and log of the run
    model/model.safetensors       the model
    splits.json, scores.json, report.html
    made.json                     of every file written here: its digest, what made it, and from what

Files are replaced whole or not at all.
"""
import hashlib
import json
import os
from pathlib import Path

from .below import DocExtract, StrictJSONError, canonical_bytes, parse_json, read_documents, write_atomic
from .labels import read_labels, write_labels
from .local_first import LocalFirst
from .schema import read_schema
from .sources.base import joined

VERSION = "0.1.0"


class ProjectError(ValueError):
    """Something that a project lacks, or that is wrong in one; the message names the file."""


def file_digest(path):
    """SHA-256 (hex) of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Project:
    """One project folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise ProjectError(f"{self.folder}: there is no such folder")

    def path(self, name):
        """A file of the project; Path."""
        return self.folder / name

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def schema_file(self):
        """schema.json or schema.toml; ProjectError where there is not exactly one."""
        found = [p for p in (self.path("schema.json"), self.path("schema.toml")) if p.exists()]
        if len(found) != 1:
            raise ProjectError(f"{self.folder}: expected one schema.json or schema.toml, found "
                               f"{' and '.join(p.name for p in found) or 'none'}")
        return found[0]

    def schema(self):
        return read_schema(self.schema_file)

    @property
    def has_schema(self):
        """Is there a schema file? bool."""
        return self.path("schema.json").exists() or self.path("schema.toml").exists()

    @property
    def page_files(self):
        """The files that hold the documents, in the order they are read."""
        files = [p for p in (self.path("pages.jsonl"), self.path("pages.jsonl.gz")) if p.exists()]
        if self.path("pages").is_dir():
            files += sorted(p for p in self.path("pages").iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
        if not files:
            raise ProjectError(f"{self.folder}: there is neither pages.jsonl nor a file in pages/")
        return files

    def documents(self, problems=None):
        """The documents, in order; ids are distinct. With `problems` broken lines are put there and passed over."""
        seen, out = {}, []
        for path in self.page_files:
            for document in joined(read_documents(path, problems=problems)):
                if document.id in seen:
                    message = f"{path}: document {document.id!r} stands in {seen[document.id]} already"
                    if problems is None:
                        raise ProjectError(message)
                    problems.append(message)
                    continue
                seen[document.id] = path.name
                out.append(document)
        return out

    def labels(self, schema):
        """The labels; ProjectError where there are none yet."""
        if not self.path("labels.jsonl").exists():
            raise ProjectError(f"{self.folder}: there is no labels.jsonl yet: run `dx label {self.folder}` first")
        return read_labels(self.path("labels.jsonl"), schema)

    def values(self, problems=None):
        """dict document id → fields, of values.jsonl; {} without that file."""
        path, found = self.path("values.jsonl"), {}
        if not path.exists():
            return found
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    value = parse_json(line.removeprefix(b"\xef\xbb\xbf").decode("utf-8")) if line.strip() else None
                    if value is not None:
                        found[value["id"]] = dict(value["fields"])
                except (UnicodeDecodeError, StrictJSONError, TypeError, KeyError, ValueError) as error:
                    message = f"{path}:{number}: expected {{\"id\", \"fields\"}}: {error}"
                    if problems is None:
                        raise ProjectError(message) from None
                    problems.append(message)
        return found

    def read_json(self, name):
        """The object of a JSON file; None where there is no such file."""
        path = self.path(name)
        if not path.exists():
            return None
        try:
            return parse_json(path.read_text(encoding="utf-8-sig"))
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise ProjectError(f"{path}: {error}") from None

    def local_first(self, ask=None):
        """LocalFirst extraction with the project's model and the thresholds of its last training."""
        scores = self.read_json("scores.json")
        if scores is None or not self.path("model/model.safetensors").exists():
            raise ProjectError(f"{self.folder}: there is no trained model yet: run `dx train {self.folder}` first")
        schema = self.schema()
        model = DocExtract.from_pretrained(self.path("model"), fields=schema.names)
        return LocalFirst(model, {name: t["threshold"] for name, t in scores["thresholds"].items()}, ask, schema,
                          tuple(scores.get("readers", ())))

    # --- writing -----------------------------------------------------------------------------------------------------

    def write_json(self, name, value, by, sources=()):
        self.write(name, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(
            "utf-8", "backslashreplace"), by, sources)

    def write(self, name, data, by, sources=()):
        """Replaces a file and notes what made it."""
        write_atomic(self.path(name), data)
        self.note(name, by, sources)

    def write_labels(self, labels, schema, by, sources=()):
        write_labels(self.path("labels.jsonl"), labels, schema)
        self.note("labels.jsonl", by, sources)

    def note(self, name, by, sources=()):
        """Notes in made.json what a file of the project is: digest, command, version, digests of what it was made
        from."""
        made = self.read_json("made.json") or {}
        made[name] = {"sha256": file_digest(self.path(name)), "by": by, "version": VERSION,
                      "from": {os.path.relpath(p, self.folder): file_digest(p) for p in sorted(map(Path, sources))}}
        text = json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write_atomic(self.path("made.json"), text.encode("utf-8", "backslashreplace"))


def json_digest(value):
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
