"""The prepared file: pages with the places of their values, ready to train on, as JSON lines (docs/training.md).

    {"fields": ["date", "total"], "repeated": [], "kind": "dx-train", "format": 1}
    {"id": "a", "width": 200, "height": 300, "words": [...], "places": {"date": [[3]], "total": [[7, 8], [12, 13]]}}

The first line names the schema's fields. Every other line is a page as dx_model reads it, with `places`: for each field
that was looked for on this page, every place where its value stands, a list of word numbers in the file's order; an
empty list says that the page has no value. A field that is missing was not looked for.
"""
import hashlib
from pathlib import Path

import numpy as np

from .below import (DocExtractConfig, PageError, StrictJSONError, Targets, encode_page, page_from_json, page_windows,
                    parse_json, window_id, window_owners)
from .continuing import only_annotated
from .examples import Example

KIND, FORMAT = "dx-train", 1


class PreparedError(ValueError):
    """A prepared file that breaks a rule; the message names file, line and rule."""


def read_prepared(path):
    """(head, pages) of a prepared file: the first line's object, and a list of (Page, places).

    Raises PreparedError: "file:line: …"; OSError."""
    path, pages, head, seen = Path(path), [], None, set()
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = parse_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            if head is None:
                head = _head(value)
                continue
            page, places = _page(value, head["fields"])
        except (UnicodeDecodeError, StrictJSONError, PageError, PreparedError) as error:
            raise PreparedError(f"{where}: {error}") from None
        if page.id in seen:
            raise PreparedError(f"{where}: a second page {page.id!r}")
        seen.add(page.id)
        pages.append((page, places))
    if head is None:
        raise PreparedError(f"{path}: no first line with kind, format and fields")
    if not pages:
        raise PreparedError(f"{path}: no page")
    return head, pages


def _head(value):
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise PreparedError(f'the first line must be an object with "kind": "{KIND}"')
    if value.get("format") != FORMAT:
        raise PreparedError(f"format {value.get('format')!r}: this version reads {FORMAT}")
    for key in ("fields", "repeated"):
        names = value.setdefault(key, [])
        if not isinstance(names, list) or any(not isinstance(name, str) for name in names):
            raise PreparedError(f"{key} is {names!r}: expected a list of names")
    if not value["fields"]:
        raise PreparedError("fields is empty")
    return value


def _page(value, fields):
    if not isinstance(value, dict) or not isinstance(value.get("places"), dict):
        raise PreparedError("expected a page with places, an object of field names")
    page = page_from_json({key: entry for key, entry in value.items() if key != "places"})
    for name, places in value["places"].items():
        what = f"page {page.id!r}, places of {name!r}"
        if name not in fields:
            raise PreparedError(f"{what}: expected some of {', '.join(fields)}")
        if not isinstance(places, list) or any(not isinstance(place, list) or not place for place in places):
            raise PreparedError(f"{what}: expected a list of places, each a list of word numbers")
        for place in places:
            for word in place:
                if type(word) is not int or not 0 <= word < len(page.words):
                    raise PreparedError(f"{what}: word {word!r}: expected 0 to {len(page.words) - 1}")
    return page, value["places"]


def page_examples(page, places: dict, config: DocExtractConfig) -> list[Example]:
    """The windows of a page with their targets.

    A place whose rows are no run in reading order is unknown: its rows are -1, and its field has no run term. So are
    rows that two fields claim. A row is supervised in the window that owns it; a field has a run term in a window where
    all its places stand wholly inside or wholly outside; a field that was not looked for is "not annotated".
    """
    encoded = encode_page(page, config.encoding())
    tag, runs = _page_targets(encoded.word, places, config)
    windows, found = page_windows(len(encoded), config.max_words), []
    owners = window_owners(len(encoded), windows)
    for k, (begin, end) in enumerate(windows):
        own = np.where(owners[begin:end] == k, tag[begin:end], np.int32(-1)).astype(np.int32)
        fields, rows = [], []
        for field, spans in runs.items():
            if spans is None or any(first < begin <= last or first < end <= last for first, last in spans):
                continue
            inside = [(first - begin, last - begin) for first, last in spans if begin <= first and last < end]
            if config.fields[field] in config.repeated and len(inside) != 1:
                terms = [[span] for span in inside]  # each place of a repeated field is a term of its own
            else:
                terms = [inside]
            for term in terms:
                rows += [(len(fields), first, last) for first, last in term]
                fields.append(field)
        targets = Targets(own, run_fields=np.array(fields, np.int32),
                          run_places=np.array(rows, np.int32).reshape(-1, 3))
        window = encoded if len(windows) == 1 else encoded.window(begin, end)
        found.append(Example(window_id(page.id, k), window, only_annotated(targets, config, places)))
    return found


def _page_targets(word, places, config):
    """Tags of all rows, and field number → ascending spans of its places (None: not known)."""
    tag, runs = np.zeros(len(word), np.int32), {}
    claimed = np.zeros(len(word), np.int32)
    for field, name in enumerate(config.fields):
        if name not in places:
            continue
        spans, unknown = [], False
        for place in places[name]:
            rows = np.flatnonzero(np.isin(word, place))
            if not len(rows):
                continue
            claimed[rows] += 1
            first, last = int(rows[0]), int(rows[-1])
            if last - first + 1 != len(rows):
                tag[rows], unknown = -1, True
            else:
                tag[rows], tag[first] = 2 + 2 * field, 1 + 2 * field
                spans.append((first, last))
        runs[field] = None if unknown else sorted(set(spans))
    tag[claimed > 1] = -1
    for field, spans in runs.items():
        if spans and any((claimed[first:last + 1] > 1).any() for first, last in spans):
            runs[field] = None
    return tag, runs


def prepared_examples(pages, config: DocExtractConfig) -> list[Example]:
    """Examples of (Page, places) pairs, in the order (page id, window)."""
    ordered = sorted(pages, key=lambda item: item[0].id.encode("utf-8", "surrogatepass"))
    return [example for page, places in ordered for example in page_examples(page, places, config)]


def file_digest(path) -> str:
    """SHA-256 (hex) of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
