"""Labels: what the fields of pages are and where they stand, from values or from given words; and their file."""
import hashlib
import os
from dataclasses import dataclass, replace

from .below import Encoding, StrictJSONError, canonical_bytes, encode_page, parse_json, write_atomic
from .grounding import OUTCOMES, Grounding, Rows, explain, find
from .schema import nearest
from .values import prepare, value_text

FORMAT = 1
MISSING = ("none", "not annotated")
_KEYS = ("page", "document", "field", "value", "outcome", "how", "runs", "contested")


class LabelError(ValueError):
    """Values or a labels file that break a rule; the message names file and line, or page and field."""


@dataclass(frozen=True)
class Label:
    """One value of one field on one page.

    page, document : ids
    field : name
    value : str or None (the document has none)
    outcome : one of grounding.OUTCOMES
    how : tuple of str
    runs : tuple of places; a place is a tuple of (word, first character, end) over the page's words in file order
    contested : another field claims words of its only places
    """
    page: str
    document: str
    field: str
    value: str | None
    outcome: str
    how: tuple = ()
    runs: tuple = ()
    contested: bool = False

    @property
    def state(self):
        """"value" (trained and scored), "none" (the page has no such value: none given, computed, or on another page
        of its document), "ignored" (its words are not one run, or contested: target -1, not scored), "unknown" (nobody
        looked for the field on this page: neither trained nor scored) or "excluded" (absent: the page is left out of
        training and evaluation); str."""
        if self.outcome == "not annotated":
            return "unknown"
        if self.outcome == "absent":
            return "excluded"
        if self.outcome in ("none", "computed"):
            return "none"
        return "ignored" if self.contested or self.outcome == "scattered" else "value"

    def to_json(self):
        value = {"page": self.page, "document": self.document, "field": self.field, "value": self.value,
                 "outcome": self.outcome, "how": list(self.how), "runs": [[list(s) for s in r] for r in self.runs]}
        return {**value, "contested": True} if self.contested else value


def label_document(document, schema, values, encoding=None, *, similar=False, missing="none"):
    """Labels of a document's pages from its values.

    Parameters
    ----------
    document : Document
    schema : Schema
    values : dict, field name → value. A value is a string, a number, None, {"value": …} with "computed": true (not
        printed), "words": [word numbers] or "spans": [[word, start, end], …] (given places on "page", default 0), or,
        for a repeated field, a list of these
    encoding : Encoding; how pages become rows (default: as models do by default)
    similar : bool; misspelt texts are matched to the most similar run (for training labels)
    missing : what a field of the schema means that `values` does not name: "none", it has no value, or "not annotated",
        nobody looked for it

    Returns
    -------
    list of Label, page by page, fields in the schema's order; a repeated field has one for each value and place it
    stands on

    Raises
    ------
    LabelError: a field that the schema does not have, a value of another kind, a list for a field that is not repeated,
        no value where the field is not nullable
    """
    encoding = encoding or Encoding()
    check_values(document.id, schema, values, missing=missing)
    pages = [Rows(page, encode_page(page, encoding)) for page in document.pages]
    found = [[] for _ in pages]  # of each page: (field number, value, Grounding)
    for k, field in enumerate(schema.fields):
        if missing != "none" and field.name not in values:
            for rows, own in zip(pages, found):
                own.append((k, None, Grounding("not annotated"), rows))
            continue
        wanted = _wanted(document.id, field, values.get(field.name))
        for text, options in wanted:
            for rows, own, grounding in zip(pages, found, _on_pages(document, pages, field, text, options, similar)):
                own.append((k, text, grounding, rows))
    labels = []
    for page, own in zip(document.pages, found):
        labels += _page_labels(document.id, page.id, schema, own)
    return labels


def check_values(document, schema, values, *, complete=False, missing="none"):
    """LabelError unless values is a dict that label_document takes for this schema; with complete also unless it has
    every field."""
    if missing not in MISSING:
        raise ValueError(f"missing = {missing!r}: expected one of {', '.join(MISSING)}")
    if not isinstance(values, dict):
        raise LabelError(f"document {document!r}: the values are {type(values).__name__}: expected an object")
    for name in values:
        if name not in schema.names:
            raise LabelError(f"document {document!r}: unknown field {name!r}{nearest(name, schema.names)}")
    for field in schema.fields:
        if complete and field.name not in values:
            raise LabelError(f"document {document!r}: the field {field.name!r} is missing")
        if missing == "none" or field.name in values:
            _wanted(document, field, values.get(field.name))


def _wanted(document, field, value):
    """[(text or None, options)] of a field's value as given."""
    where = f"document {document!r}, field {field.name!r}"
    many = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not field.repeated and len(value) > 1:
        raise LabelError(f"{where}: {len(value)} values, but the field is not repeated")
    out = []
    for one in many:
        options = {}
        if isinstance(one, dict):
            unknown = [k for k in one if k not in ("value", "computed", "words", "spans", "page")]
            if unknown:
                raise LabelError(f"{where}: unknown key {unknown[0]!r}"
                                 f"{nearest(unknown[0], ('value', 'computed', 'words', 'spans', 'page'))}")
            options, one = {k: v for k, v in one.items() if k != "value"}, one.get("value")
        if one is not None:
            try:
                one = value_text(one)
            except TypeError as error:
                raise LabelError(f"{where}: {error}") from None
            if not one.strip():
                one = None
        out.append((one, options))
    if all(text is None and not options for text, options in out):
        if not field.nullable:
            raise LabelError(f"{where}: no value, but the field is not nullable")
        out = [(None, {})]
    return out


def _on_pages(document, pages, field, text, options, similar):
    """The Grounding of a value on each page: places on every page that prints it; where none does, the likeliest
    explanation on its page and, unless it is absent, "none" on the others."""
    none = Grounding("none")
    if "words" in options or "spans" in options:
        number = options.get("page", 0)
        if type(number) is not int or not 0 <= number < len(pages):
            raise LabelError(f"document {document.id!r}, field {field.name!r}: page is {number!r}: expected 0 to "
                             f"{len(pages) - 1}")
        return [_given(document.pages[number], rows, field, options) if i == number else none
                for i, rows in enumerate(pages)]
    if text is None:
        return [none] * len(pages)
    if options.get("computed"):
        return [Grounding("computed", ("said by the labelling model",))] + [none] * (len(pages) - 1)
    value = prepare(field, text)
    printed = [find(rows, value) for rows in pages]
    if any(printed):
        return [g or none for g in printed]
    reasons = [explain(rows, value, similar=similar) for rows in pages]
    best = min(OUTCOMES.index(g.outcome) for g in reasons) if reasons else 0
    if OUTCOMES[best] == "absent":
        return reasons
    chosen = next(i for i, g in enumerate(reasons) if OUTCOMES.index(g.outcome) == best)
    return [g if i == chosen else none for i, g in enumerate(reasons)]


def _given(page, rows, field, options):
    """The Grounding of a value whose words the labels give."""
    spans = options.get("spans")
    if spans is None:
        spans = [[w, 0, len(page.words[w].text)] if type(w) is int and 0 <= w < len(page.words) else [w, 0, 0]
                 for w in options["words"]]
    inside, problem = rows_of_spans(page, rows, spans)
    if problem or not inside:
        return Grounding("scattered", (problem or "no words",), tuple((i, i) for i in inside))
    run = (inside[0], inside[-1])
    if len(inside) != run[1] - run[0] + 1:
        return Grounding("scattered", ("not one run",), _runs(inside))
    return Grounding("exact", ("given words",), (run,))


def rows_of_spans(page, rows, spans):
    """(rows that lie in the spans, ascending; what is wrong or None). A span that cuts a row is misaligned: the text
    says so, with the nearest span that does not; its rows are those it touches."""
    inside, problem = [], None
    for span in spans:
        good = isinstance(span, (list, tuple)) and len(span) == 3 and all(type(v) is int for v in span)
        if good:
            good = 0 <= span[0] < len(page.words) and 0 <= span[1] <= span[2] <= len(page.words[span[0]].text)
        if not good:
            raise LabelError(f"page {page.id!r}: span {span!r}: expected [word, start, end] "
                             f"inside one of the page's {len(page.words)} words")
        word, start, end = span
        touched = [i for i, w in enumerate(rows.word) if w == word and (
            start < rows.end[i] and rows.start[i] < end or start == rows.start[i] == rows.end[i])]
        legal = (min((rows.start[i] for i in touched), default=start), max((rows.end[i] for i in touched), default=end))
        if touched and legal != (start, end):
            problem = problem or (f"span [{word}, {start}, {end}] of {page.words[word].text!r} is misaligned; "
                                  f"the nearest border is [{word}, {legal[0]}, {legal[1]}]")
        inside += touched
    return sorted(set(inside)), problem


def _runs(inside):
    """Ascending row numbers as runs; tuple of (first, last)."""
    runs = []
    for i in inside:
        if runs and runs[-1][1] == i - 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    return tuple(tuple(r) for r in runs)


def _page_labels(document, page, schema, found):
    """The labels of a page, contested places settled (docs/labels.md "Words two fields claim")."""
    runs = settle([(k, g.runs if g.grounded else ()) for k, _, g, _ in found],
                  [schema.fields[k].repeated for k, *_ in found])
    labels = []
    for (k, text, g, rows), (kept, contested) in zip(found, runs):
        places = kept if g.grounded else g.runs
        labels.append(Label(page, document, schema.fields[k].name, text, g.outcome, g.how,
                            tuple(rows.spans(*run) for run in places), contested))
    return labels


def settle(claims, repeated):
    """Who gets words that several values claim.

    Parameters
    ----------
    claims : list of (field number, places), a place a run (first, last) of rows
    repeated : list of bool, whether the field may have several values

    Returns
    -------
    list of (places kept, contested?). A value that has places of its own alone keeps only these; then whoever still
    shares a word with another value is contested. Equal values of one repeated field that have as many places as there
    are such values get one place each, in order.
    """
    places = [list(runs) for _, runs in claims]
    groups = {}
    for i, (k, runs) in enumerate(claims):
        if repeated[i] and runs:
            groups.setdefault((k, runs), []).append(i)
    for (_, runs), members in groups.items():
        if len(members) == len(runs):
            for i, run in zip(members, runs):
                places[i] = [run]
    first = [list(p) for p in places]

    def alone(i, run, others):
        return all(run[1] < a or b < run[0] for j, p in enumerate(others) if j != i for a, b in p)

    for i, own in enumerate(first):
        free = [run for run in own if alone(i, run, first)]
        if free:
            places[i] = free
    contested = [bool(p) and not all(alone(i, run, places) for run in p) for i, p in enumerate(places)]
    return [(tuple(p), c) for p, c in zip(places, contested)]


def write_labels(path, labels, schema):
    """Writes labels as JSON lines: a first line with the format and the schema's digest, then one a label. The file is
    replaced whole or not at all."""
    head = canonical_bytes({"dx_labels": FORMAT, "schema": schema.digest})
    write_atomic(path, b"\n".join([head, *(canonical_bytes(label.to_json()) for label in labels), b""]))


def read_labels(path, schema=None):
    """The labels of a file.

    Raises
    ------
    LabelError: "file:line: …" for what is no labels file, an unknown key, labels of another schema than the one given
    """
    path, labels, number = os.fspath(path), [], 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                value = parse_json(line.decode("utf-8"))
                if number == 1:
                    _check_head(value, schema)
                else:
                    labels.append(_label_from_json(value))
                    if schema is not None and labels[-1].field not in schema.names:
                        raise LabelError(f"the schema has no field {labels[-1].field!r}")
            except UnicodeDecodeError as error:
                raise LabelError(f"{path}:{number}: not UTF-8: {error.reason} at byte {error.start}") from None
            except (LabelError, StrictJSONError) as error:
                raise LabelError(f"{path}:{number}: {error}") from None
    if not number:
        raise LabelError(f"{path}: the file is empty")
    return labels


def _check_head(value, schema):
    if not isinstance(value, dict) or value.get("dx_labels") != FORMAT:
        raise LabelError(f'no labels file: expected a first line with {{"dx_labels": {FORMAT}}}')
    if schema is not None and value.get("schema") != schema.digest:
        raise LabelError(f"labels of the schema {str(value.get('schema'))[:12]}, not of {schema.digest[:12]}")


def _label_from_json(value):
    if not isinstance(value, dict):
        raise LabelError("expected an object")
    unknown = [k for k in value if k not in _KEYS]
    if unknown:
        raise LabelError(f"unknown key {unknown[0]!r}{nearest(unknown[0], _KEYS)}: expected {', '.join(_KEYS)}")
    missing = [k for k in _KEYS[:-1] if k not in value]
    if missing:
        raise LabelError(f"the key {missing[0]!r} is missing")
    if value["outcome"] not in OUTCOMES:
        raise LabelError(f"outcome is {value['outcome']!r}: expected one of {', '.join(OUTCOMES)}")
    for key in ("page", "document", "field"):
        if not isinstance(value[key], str):
            raise LabelError(f"{key} is {value[key]!r}: expected a string")
    if value["value"] is not None and not isinstance(value["value"], str):
        raise LabelError(f"value is {value['value']!r}: expected a string or null")
    if not isinstance(value["how"], list) or not isinstance(value["runs"], list) or not all(
            isinstance(run, list) for run in value["runs"]) or not isinstance(value.get("contested", False), bool):
        raise LabelError("expected lists how and runs, and contested true or false")
    for span in (s for run in value["runs"] for s in run):
        if not isinstance(span, list) or len(span) != 3 or any(type(v) is not int or v < 0 for v in span):
            raise LabelError(f"span {span!r}: expected [word, start, end]")
    runs = tuple(tuple(tuple(s) for s in r) for r in value["runs"])
    return replace(Label(**{**value, "how": tuple(value["how"]), "runs": runs}))


def labels_digest(labels, schema):
    """SHA-256 (hex) over the schema and the labels in order, as their file holds them."""
    h = hashlib.sha256(schema.digest.encode())
    for label in labels:
        h.update(canonical_bytes(label.to_json()) + b"\n")
    return h.hexdigest()


def usable_documents(labels):
    """Ids of the documents that may be trained and scored on: those without an excluded label, in the labels' order."""
    order, excluded = {}, set()
    for label in labels:
        order[label.document] = True
        if label.state == "excluded":
            excluded.add(label.document)
    return [document for document in order if document not in excluded]
