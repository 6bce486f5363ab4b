"""Training examples of labelled pages: every window with its targets, and its page's variants."""
from .below import Example, encode_page, only_annotated, window_id
from .labels import usable_documents
from .grounding import Rows
from .targets import field_rows, window_targets
from .variants import page_variants


def labels_by_page(labels):
    """dict page id → list of its labels."""
    found = {}
    for label in labels:
        found.setdefault(label.page, []).append(label)
    return found


def page_windows_of(page, encoded, labels, schema, config, places="all"):
    """[(EncodedPage, Targets)] of a page's windows. Fields that are not annotated on the page are no O: nothing is
    known of them there."""
    found = field_rows(page, Rows(page, encoded), labels, schema)
    windows = window_targets(encoded, found, [f.repeated for f in schema.fields], config.max_words, places=places)
    unknown = {label.field for label in labels if label.state == "unknown"}
    if not unknown:
        return windows
    known = [name for name in schema.names if name not in unknown]
    return [(window, only_annotated(targets, config, known)) for window, targets in windows]


def training_examples(documents, labels, schema, config, *, variants=True, places="all", seed=0):
    """Examples of documents, in order; those with an excluded label are left out.

    Parameters
    ----------
    documents : iterable of Document
    labels : list of Label
    schema : Schema
    config : DocExtractConfig with the schema's fields
    variants : bool; give pages of one window their variants (a page of several windows has none)
    places : as targets.tag_targets
    seed : of the variants

    Returns
    -------
    list of Example, their ids `<page id>#<window>`; windows without rows are left out
    """
    own, usable = labels_by_page(labels), set(usable_documents(labels))
    encoding, out = config.encoding(), []
    for document in documents:
        if document.id not in usable:
            continue
        for page in document.pages:
            encoded, of_page = encode_page(page, encoding), own.get(page.id, [])
            windows = page_windows_of(page, encoded, of_page, schema, config, places)
            others = ()
            if variants and len(windows) == 1:
                made = page_variants(page, encoded, of_page, schema, encoding, seed)
                others = tuple(w[0] for w in (page_windows_of(*v, schema, config, places) for v in made)
                               if len(w) == 1)
            out += [Example(window_id(page.id, k), encoded, targets, others)
                    for k, (encoded, targets) in enumerate(windows) if len(encoded)]
    return out
