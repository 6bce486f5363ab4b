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
import contextlib
import hashlib
import json
import os
from pathlib import Path

from .below import DocExtract, StrictJSONError, canonical_bytes, parse_json, read_documents, write_atomic
from .labels import read_labels, write_labels
from .local_first import LocalFirst
from .schema import read_schema
from .settings import SettingsError, settings_from_json
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
        return list(self.each_document(problems))

    def each_document(self, problems=None):
        """As `documents`, one at a time: only their ids are kept."""
        seen = {}
        for path in self.page_files:
            for document in joined(read_documents(path, problems=problems)):
                if document.id in seen:
                    message = f"{path}: document {document.id!r} stands in {seen[document.id]} already"
                    if problems is None:
                        raise ProjectError(message)
                    problems.append(message)
                    continue
                seen[document.id] = path.name
                yield document

    def labels(self, schema, tell=None):
        """The labels; ProjectError where there are none yet. `tell` is told when they were made from other files."""
        if not self.path("labels.jsonl").exists():
            raise ProjectError(f"{self.folder}: there is no labels.jsonl yet: run `dx label {self.folder}` first")
        changed = self.changed_sources("labels.jsonl") if tell is not None else ()
        if changed:
            tell(f"labels.jsonl is out of date: {', '.join(changed)} changed; `dx label {self.folder}` makes it anew")
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
            value = parse_json(path.read_text(encoding="utf-8-sig"))
        except (UnicodeDecodeError, StrictJSONError) as error:
            raise ProjectError(f"{path}: {error}") from None
        if not isinstance(value, dict):
            raise ProjectError(f"{path}: expected an object")
        return value

    def settings(self, changes=None):
        """The JobSettings of settings.json (or the defaults), with `changes` (dict) laid over them."""
        own = self.read_json("settings.json") or {}
        try:
            settings = settings_from_json(own)
        except SettingsError as error:
            raise SettingsError(f"{self.path('settings.json')}: {error}") from None
        return settings_from_json({**own, **changes}) if changes else settings

    def held_out(self):
        """Ids of the documents that the last training held out; None where there was none."""
        splits = self.read_json("splits.json")
        held = None if splits is None else splits.get("held_out")
        if splits is not None and (not isinstance(held, list) or not all(isinstance(name, str) for name in held)):
            raise ProjectError(f"{self.path('splits.json')}: held_out: expected a list of documents' ids")
        return held

    def readers(self):
        """Names of what read the pages that the last training saw, as scores.json says; tuple of str."""
        found = (self.read_json("scores.json") or {}).get("readers", {})
        if not isinstance(found, dict):
            raise ProjectError(f"{self.path('scores.json')}: readers: expected an object of names and counts")
        return tuple(found)

    def made(self):
        """What made.json says: name of a file → {"sha256", "by", "version", "from"}; {} without that file."""
        made = self.read_json("made.json") or {}
        for name, entry in made.items():
            if not isinstance(entry, dict) or not {"sha256", "by", "version"} <= set(entry) or not isinstance(
                    entry.get("from"), dict):
                raise ProjectError(f"{self.path('made.json')}: {name!r}: expected sha256, by, version and from")
        return made

    def changed_sources(self, name):
        """Which files that a file of the project was made from are others now, as made.json knows them; list of str."""
        entry = self.made().get(name, {"from": {}})
        return [source for source, digest in entry["from"].items()
                if not self.path(source).exists() or file_digest(self.path(source)) != digest]

    def local_first(self, ask=None):
        """LocalFirst extraction with the project's model and the thresholds of its last training."""
        scores = self.read_json("scores.json")
        if scores is None or not self.path("model/model.safetensors").exists():
            raise ProjectError(f"{self.folder}: there is no trained model yet: run `dx train {self.folder}` first")
        schema = self.schema()
        model = DocExtract.from_pretrained(self.path("model"), fields=schema.names)
        try:
            thresholds = {name: t["threshold"] for name, t in scores["thresholds"].items()}
            good = all(t is None or type(t) in (int, float) for t in thresholds.values())
        except (KeyError, TypeError, AttributeError):
            good = False
        if not good:
            raise ProjectError(f"{self.path('scores.json')}: thresholds: expected an object of each field's threshold")
        return LocalFirst(model, thresholds, ask, schema, self.readers())

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
        entry = {"sha256": file_digest(self.path(name)), "by": by, "version": VERSION,
                 "from": {os.path.relpath(p, self.folder): file_digest(p) for p in sorted(map(Path, sources))}}
        with self._alone():
            text = json.dumps({**self.made(), name: entry}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
            write_atomic(self.path("made.json"), text.encode("utf-8", "backslashreplace"))

    @contextlib.contextmanager
    def _alone(self):
        """The folder locked (flock on the folder itself) while a file is read and written anew."""
        import fcntl
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def json_digest(value):
    """SHA-256 (hex) of a value's canonical JSON."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
