"""The schema: which fields a document has. A small JSON or TOML file, checked, with a digest that travels along."""
import difflib
import hashlib
import os
import tomllib
from dataclasses import dataclass

from .below import StrictJSONError, canonical_bytes, parse_json

TYPES = ("text", "date", "amount", "number", "code")
ORDERS = ("dmy", "mdy", "ymd")
MOST_FIELDS = 60
_FIELD_KEYS = ("name", "type", "nullable", "repeated", "hints", "languages", "decimal", "date_order")
_SCHEMA_KEYS = ("name", "fields", "languages", "decimal", "date_order")


class SchemaError(ValueError):
    """A schema that breaks a rule; the message names file, field, key, value and rule."""


def nearest(word, words):
    """' (did you mean …?)' for a mistyped word, or ''."""
    found = difflib.get_close_matches(str(word), [str(w) for w in words], 1, 0.6)
    return f" (did you mean {found[0]!r}?)" if found else ""


@dataclass(frozen=True)
class Field:
    """One named value.

    name : str, not empty, no control characters
    type : text, date, amount, number or code
    nullable : a document may lack it
    repeated : a document may have several
    hints : texts for the labelling model (labels that stand beside the value, what it looks like)
    languages : language codes ("de", "ms", …), for the labelling model
    decimal : "." or ",": the decimal sign, where it is known; None: what the text alone allows
    date_order : "dmy", "mdy" or "ymd" for dates in figures, where it is known
    """
    name: str
    type: str = "text"
    nullable: bool = True
    repeated: bool = False
    hints: tuple = ()
    languages: tuple = ()
    decimal: str | None = None
    date_order: str | None = None

    def to_json(self):
        """The field as a schema file has it, defaults left out; dict."""
        value = {"name": self.name, "type": self.type}
        for name, default in (("nullable", True), ("repeated", False), ("decimal", None), ("date_order", None)):
            if getattr(self, name) != default:
                value[name] = getattr(self, name)
        for name in ("hints", "languages"):
            if getattr(self, name):
                value[name] = list(getattr(self, name))
        return value


@dataclass(frozen=True)
class Schema:
    """Fields in order; class k of the tag head is fields[k]. Two schemas of equal digest are equal."""
    fields: tuple
    name: str = ""

    @property
    def names(self):
        """The fields' names in order; tuple of str."""
        return tuple(f.name for f in self.fields)

    def field(self, name):
        """The field of that name; KeyError with the nearest name for an unknown one."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(f"the schema has no field {name!r}{nearest(name, self.names)}")

    def to_json(self):
        return {"name": self.name, "fields": [f.to_json() for f in self.fields]}

    @property
    def digest(self):
        """SHA-256 (hex) of the schema as RFC 8785 JSON, defaults left out: it does not depend on the file's form."""
        return hashlib.sha256(canonical_bytes(self.to_json())).hexdigest()


def read_schema(path):
    """The schema of a JSON (.json) or TOML (.toml) file.

    Raises
    ------
    SchemaError: neither JSON nor TOML, an unknown key, a value that breaks a rule, two fields of one name
    OSError: the file cannot be read
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        value = tomllib.loads(text) if path.endswith(".toml") else parse_json(text)
    except UnicodeDecodeError as error:
        raise SchemaError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None
    except (tomllib.TOMLDecodeError, StrictJSONError) as error:
        raise SchemaError(f"{path}: {error}") from None
    try:
        return schema_from_json(value)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def schema_from_json(value):
    """The schema of a parsed file: {"name", "languages", "decimal", "date_order", "fields": [{…}, …]}; what stands
    beside `fields` holds for every field that does not say otherwise. A field may be its name alone."""
    if not isinstance(value, dict):
        raise SchemaError("expected an object (a table) with fields")
    _known(value, _SCHEMA_KEYS, "schema")
    if not isinstance(value.get("fields"), list) or not value["fields"]:
        raise SchemaError("fields is missing or empty: expected a list of fields")
    name = value.get("name", "")
    if not isinstance(name, str):
        raise SchemaError(f"name is {name!r}: expected a string")
    common = {k: value[k] for k in ("languages", "decimal", "date_order") if k in value}
    fields = tuple(_field(i, f, common) for i, f in enumerate(value["fields"]))
    seen = {}
    for i, field in enumerate(fields):
        if field.name in seen:
            raise SchemaError(f"field {i} ({field.name!r}): the name stands already at field {seen[field.name]}")
        seen[field.name] = i
    if len(fields) > MOST_FIELDS:
        raise SchemaError(f"{len(fields)} fields: expected at most {MOST_FIELDS}")
    return Schema(fields, name)


def _known(value, keys, where):
    for found in value:
        if found not in keys:
            raise SchemaError(f"{where}: unknown key {found!r}{nearest(found, keys)}: expected {', '.join(keys)}")


def _field(index, value, common):
    if isinstance(value, str):
        value = {"name": value}
    where = f"field {index}"
    if not isinstance(value, dict):
        raise SchemaError(f"{where} is {value!r}: expected an object (a table) or a name")
    name = value.get("name")
    if not isinstance(name, str) or not name.strip() or any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in name):
        raise SchemaError(f"{where}: name is {name!r}: expected a string that is not empty, without control characters")
    where = f"field {index} ({name!r})"
    _known(value, _FIELD_KEYS, where)
    value = {**common, **value}
    for key, choices in (("type", TYPES), ("decimal", (".", ",")), ("date_order", ORDERS)):
        if key in value and value[key] not in choices:
            raise SchemaError(f"{where}: {key} is {value[key]!r}{nearest(value[key], choices)}: "
                              f"expected one of {', '.join(choices)}")
    for key in ("nullable", "repeated"):
        if not isinstance(value.get(key, False), bool):
            raise SchemaError(f"{where}: {key} is {value[key]!r}: expected true or false")
    for key in ("hints", "languages"):
        texts = value.get(key, [])
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise SchemaError(f"{where}: {key} is {texts!r}: expected a list of strings")
        value[key] = tuple(texts)
    return Field(**value)
