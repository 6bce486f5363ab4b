"""What is wrong with documents and their values, as a list: every finding names file or page, and what is wrong."""
import hashlib
from dataclasses import dataclass

from .below import Encoding, canonical_bytes, read_documents
from .labellers.base import page_content
from .labels import label_document
from .sources import joined
from .values import normal_form, value_text

KINDS = {  # kind → severity
    "broken line": "error", "box": "error", "duplicate id": "error", "values": "error", "misaligned": "error",
    "clipped box": "warning", "empty page": "warning", "duplicate page": "warning", "unmapped glyphs": "warning",
    "absent": "warning", "scattered": "warning", "double claim": "warning", "ambiguous": "warning",
    "no values": "warning",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. severity: "error" (the record is lost or misleads) or "warning" (it is used, or left
    out, by a stated rule); kind: a key of KINDS; where: the file, page or document; field: its name or None."""
    severity: str
    kind: str
    where: str
    message: str
    field: str | None = None

    def to_json(self):
        return {"severity": self.severity, "kind": self.kind, "where": self.where, "field": self.field,
                "message": self.message}


def _finding(kind, where, message, field=None):
    return Finding(KINDS[kind], kind, where, message, field)


def check_files(paths, schema=None, values_of=None, *, encoding=None, missing="none"):
    """Checks page files.

    Parameters
    ----------
    paths : files of documents, JSON lines
    schema : Schema or None: values are not looked at
    values_of : callable, Document → dict of values or None
    encoding : Encoding; how pages become rows
    missing : as label_document

    Returns
    -------
    (list of Finding, documents, pages): in the order of the files
    """
    found, seen, pages, count, number = [], {}, {}, 0, 0
    for path in paths:
        problems = []
        documents = joined(read_documents(path, repair=True, problems=problems))
        while True:  # one document at a time, however long the file
            document = next(documents, None)
            found += [_finding("broken line", str(path), text) for text in problems]
            problems.clear()
            if document is None:
                break
            count += 1
            if document.id in seen:
                found.append(_finding("duplicate id", document.id, f"document {document.id!r} of {path} stands in "
                                      f"{seen[document.id]} already"))
            seen.setdefault(document.id, str(path))
            for page in document.pages:
                number += 1
                found += _page_findings(page, pages)
            if schema is not None and values_of is not None:
                found += _value_findings(document, schema, values_of(document), encoding or Encoding(), missing)
    return found, count, number


def _page_findings(page, pages):
    for text in page.repairs:
        yield _finding("box" if "swapped" in text else "clipped box", page.id, text)
    if not any(w.text.strip() for w in page.words):
        yield _finding("empty page", page.id, f"page {page.id!r} has no word with text")
        return
    if page.unmapped_glyphs:
        yield _finding("unmapped glyphs", page.id, f"page {page.id!r} holds {page.unmapped_glyphs} glyphs that its "
                       "reader could not map (U+FFFD)")
    try:
        data = canonical_bytes(page_content(page))
    except ValueError:  # a lone surrogate
        data = repr(page_content(page)).encode("utf-8", "surrogatepass")
    first = pages.setdefault(hashlib.sha256(data).digest(), page.id)
    if first != page.id:
        yield _finding("duplicate page", page.id, f"page {page.id!r} has the same words and boxes as page {first!r}")


def _value_findings(document, schema, values, encoding, missing):
    if values is None:
        yield _finding("no values", document.id, f"document {document.id!r} has no values")
        return
    try:
        labels = label_document(document, schema, values, encoding, missing=missing)
    except ValueError as error:
        yield _finding("values", document.id, str(error))
        return
    told = {}
    for label in labels:
        name = f"{label.page!r}, field {label.field!r}: the value {label.value!r}"
        one = None
        if label.outcome == "absent" and (label.field, label.value) not in told:
            one = "absent", f"document {document.id!r}, field {label.field!r}: the value {label.value!r} is on no page"
        elif label.outcome == "scattered":
            one = ("misaligned" if "misaligned" in label.how[0] else "scattered"), f"page {name}: {label.how[0]}"
        elif label.contested:
            one = "double claim", f"page {name} shares all its places with another value"
        if one:
            told[label.field, label.value] = True
            yield _finding(one[0], label.page, one[1], label.field)
    for field in schema.fields:
        given = values.get(field.name)
        for value in given if isinstance(given, list) else [given]:
            value = value.get("value") if isinstance(value, dict) else value
            if value is None or field.type in ("text", "code") or not value_text(value).strip():
                continue
            _, problem = normal_form(field, value_text(value))
            if problem and " can be " in problem:
                yield _finding("ambiguous", document.id, f"document {document.id!r}, field {field.name!r}: {problem}",
                               field.name)


def exit_code(found, strict=False):
    """0 clean, 3 warnings alone (1 with strict), 1 errors; int."""
    if not found:
        return 0
    return 1 if strict or any(f.severity == "error" for f in found) else 3
