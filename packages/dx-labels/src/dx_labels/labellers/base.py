"""What a labelling model is: something asked for the schema's fields of a document."""
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

from ..below import page_to_json, reading_order


class LabellerError(RuntimeError):
    """A document could not be labelled; the message names it and says why. Nothing of it was kept."""


@runtime_checkable
class Labeller(Protocol):
    """A labelling model."""

    def identity(self) -> dict:
        """What besides document and schema decides its answers (model, prompt, command; never a key), as JSON."""
        ...

    def label(self, document, schema) -> dict:
        """Values of the schema's fields, as dx_labels.labels.label_document takes them; LabellerError."""
        ...


def page_content(page):
    """The page as JSON without its id and names: equal for equal pages; dict."""
    value = page_to_json(page)
    return {k: value[k] for k in ("width", "height", "words", "rotation") if k in value}


def page_lines(page):
    """The page's text, a line for each row of words, in reading order; list of str."""
    order, row = reading_order(page)
    lines, last = [], None
    for i, r in zip(order.tolist(), row.tolist()):
        text = page.words[i].text
        if r != last:
            lines.append(text)
            last = r
        else:
            lines[-1] += " " + text
    return lines


def ask_all(labeller, documents, schema, workers=1):
    """Asks for every document.

    Parameters
    ----------
    labeller : Labeller
    documents : list of Document
    schema : Schema
    workers : how many are asked at a time

    Yields
    ------
    (document, values or LabellerError), in the order of the documents. After an interruption what was not begun is not
    asked.
    """
    def one(document):
        try:
            return labeller.label(document, schema)
        except LabellerError as error:
            return error

    if workers <= 1:
        for document in documents:
            yield document, one(document)
        return
    pool = ThreadPoolExecutor(workers, "dx-label")
    try:
        yield from zip(documents, pool.map(one, documents))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
