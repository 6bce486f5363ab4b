"""What a source of documents gives."""
from dataclasses import dataclass, field

from ..below import Document


class SourceError(ValueError):
    """A source that cannot be read; the message names file, line or record, and what was expected."""


@dataclass
class Imported:
    """Documents with what their source says of them.

    documents : list of Document
    schema : Schema, or None where the source has no fields
    values : document id → values of the schema's fields, as dx_labels.labels.label_document takes them
    roles : names of word roles (the pages' extra holds entities, links, groups), or ()
    problems : what was left out, and why: broken lines, unusable values; messages naming file and line
    notes : what was changed on reading (boxes clipped, …)
    """
    documents: list = field(default_factory=list)
    schema: object = None
    values: dict = field(default_factory=dict)
    roles: tuple = ()
    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)


def joined(documents):
    """Documents of one id that follow one another as one Document, their pages in that order; yields Document."""
    last = None
    for document in documents:
        if last is not None and last.id == document.id:
            last = Document(last.id, (*last.pages, *document.pages), {**last.extra, **document.extra})
            continue
        if last is not None:
            yield last
        last = document
    if last is not None:
        yield last
