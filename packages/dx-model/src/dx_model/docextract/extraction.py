"""From pages to fields: windows, the best legal tagging of the whole page, confidences, documents."""
from dataclasses import dataclass, replace

import numpy as np

from ..below import decode_tags, pointers_of_scores, run_posteriors, runs_of_tags, softmax_forward
from ..encode import EncodedPage, encode_page
from ..windows import page_windows, window_owners
from .places import Places
from .relations import entities_of_roles, groups_of_values, pairs_of_entities
from .results import Choice, DocumentResult, FieldResult, PageResult

FLOOR = 0.01  # least probability of an alternative


@dataclass
class PageLogits:
    """A page's logits, each row from the window that owns it.

    tag (n, tags), role (n, role tags), doc (doc types,): float32 · item, key_value: int32 (n,), the row each row points
    at · key_value_p: float32 (n,), that pointer's probability among the rows of its window · windows: how many. What
    was not asked for is None.
    """

    windows: int
    tag: np.ndarray | None = None
    role: np.ndarray | None = None
    doc: np.ndarray | None = None
    item: np.ndarray | None = None
    key_value: np.ndarray | None = None
    key_value_p: np.ndarray | None = None


def page_logits(model, encoded: EncodedPage, heads=("tag",)) -> PageLogits:
    """Runs the model over the windows of an encoded page and merges them by ownership (windows.py); the document type
    is window 0's."""
    n = len(encoded)
    windows = page_windows(n, model.config.max_words)
    if len(windows) == 1:
        return _window_logits(model, encoded, heads, 0)
    owner, merged = window_owners(n, windows), PageLogits(len(windows))
    for k, (begin, end) in enumerate(windows):
        own = _window_logits(model, encoded.window(begin, end), [h for h in heads if h != "doc" or k == 0], begin)
        mine = owner[begin:end] == k
        for name in ("tag", "role", "item", "key_value", "key_value_p"):
            part = getattr(own, name)
            if part is None:
                continue
            if getattr(merged, name) is None:
                setattr(merged, name, np.empty((n, *part.shape[1:]), part.dtype))
            getattr(merged, name)[begin:end][mine] = part[mine]
        merged.doc = own.doc if k == 0 else merged.doc
    return merged


def _window_logits(model, window, heads, begin):
    out = model.forward(window, heads)
    logits = PageLogits(1, out.tag, out.role, out.doc)
    if out.item is not None:
        n = len(window)
        for name, scores in (("item", out.item), ("key_value", out.key_value)):
            pointers = np.empty(n, np.int32)
            pointers_of_scores(scores, pointers)
            setattr(logits, name, pointers + np.int32(begin))
        p = np.empty((n, n), np.float32)
        softmax_forward(out.key_value, p)
        logits.key_value_p = p[np.arange(n), logits.key_value - begin]
    return logits


def extract_page(model, page, *, alternatives: int = 3, floor: float = FLOOR, votes: bool = False,
                 relations: bool = False) -> PageResult:
    """The fields of a page.

    Parameters
    ----------
    model : DocExtract
    page : Page
    alternatives : how many runs that were not chosen are listed for each field
    floor : least probability of such a run
    votes : runs of a field with the same text add up, and the text with the largest sum is the value, if the sum is
        above the probability of "no value". Fields are decided in falling order of their sums; a field keeps off words
        that another has taken. Repeated fields are decided as without votes.
    relations : also entities of roles, key-value pairs and line items

    Returns
    -------
    PageResult. A page without words has no values, with confidence 1, and no document type.
    """
    config = model.config
    encoded = encode_page(page, config.encoding())
    heads = ("tag",) + (("doc",) if config.doc_types else ()) + (("role", "pointer") if relations else ())
    logits = page_logits(model, encoded, heads)
    places = Places(page, encoded)
    fields, exact = _fields(config, logits.tag, places, alternatives, floor, votes)
    result = PageResult(page.id, fields, _doc_type(config, logits.doc) if len(encoded) else None, logits.windows, exact)
    if not relations:
        return result
    entities = entities_of_roles(config, logits.role, places)
    return replace(result, entities=entities, pairs=pairs_of_entities(entities, logits.key_value, logits.key_value_p),
                   groups=groups_of_values(fields, logits.item, places))


def _doc_type(config, logits):
    if logits is None:
        return None
    p = np.empty((1, len(logits)), np.float32)
    softmax_forward(logits.reshape(1, -1), p)
    best = int(np.argmax(p))
    return Choice(config.doc_types[best], float(p[0, best]))


def _fields(config, logits, places, most, floor, votes):
    """name → FieldResult; and whether the tagging is proved best."""
    n, repeated = len(logits), config.repeated_mask()
    tags, absent = np.empty(n, np.int32), np.empty(len(config.fields))
    _, _, exact = decode_tags(logits, repeated, tags)
    runs = runs_of_tags(tags)
    p = np.empty(len(runs))
    found, found_p = _posteriors(logits, repeated, absent, runs, p, floor if most or votes else np.inf)
    chosen = [(int(k), int(first), int(last), float(q)) for (k, first, last), q in zip(runs, p)]
    others = [(int(k), int(first), int(last), float(q)) for (k, first, last), q in zip(found, found_p)]
    if votes:
        chosen = [run for run in chosen if repeated[run[0]]] + _voted(others, absent, repeated, places)
    results = {}
    for k, name in enumerate(config.fields):
        own = sorted(run for run in chosen if run[0] == k)
        taken = {run[1:3] for run in own}
        left = sorted((run for run in others if run[0] == k and run[1:3] not in taken),
                      key=lambda run: (-run[3], run[1], run[2]))
        values, rest = (tuple(places.value(*run[1:]) for run in part) for part in (own, left[:most]))
        results[name] = FieldResult(name, bool(repeated[k]), values, float(absent[k]), rest)
    return results, exact


def _posteriors(logits, repeated, absent, runs, p, floor):
    capacity = 1024 if floor <= 1 else 0
    while True:
        try:
            return run_posteriors(logits, repeated, absent, runs, p, floor=floor, capacity=capacity)
        except OverflowError:
            capacity *= 4


def _voted(runs, absent, repeated, places):
    """(field, first, last, sum of its text's probabilities) of every field whose best text beats "no value"."""
    ballots = {}
    for k, first, last, q in runs:
        if not repeated[k]:
            text = places.text(first, last)
            ballots.setdefault(k, {}).setdefault(text, []).append((q, first, last))
    totals = []
    for k, texts in ballots.items():
        for text, places_of_it in texts.items():
            total = 0.0
            for q, _, _ in places_of_it:
                total += q
            if total > absent[k]:
                totals.append((total, k, text))
    chosen, decided, taken = [], set(), set()
    for total, k, text in sorted(totals, key=lambda t: (-t[0], t[1], t[2])):
        if k in decided:
            continue
        for _, first, last in sorted(ballots[k][text], key=lambda run: (-run[0], run[1], run[2])):
            if taken.isdisjoint(range(first, last + 1)):
                taken.update(range(first, last + 1))
                decided.add(k)
                chosen.append((k, first, last, min(total, 1.0)))
                break
    return chosen


def extract_document(model, document, **options) -> DocumentResult:
    """The fields of a document from those of its pages; options as extract_page.

    A field that is not repeated has the value of the page where its confidence is largest, the first of equal pages;
    where no page has a value, the confidence of "no value" is the product of the pages'. A repeated field has the
    values of all pages, in order, each with its page. The document type is that of the page most certain of it.
    """
    pages = tuple(extract_page(model, page, **options) for page in document.pages)
    fields = {}
    for name in model.config.fields:
        own = [(number, page.fields[name]) for number, page in enumerate(pages)]
        found = [replace(v, page=number) for number, f in own for v in f.values]
        others = [replace(v, page=number) for number, f in own for v in f.alternatives]
        repeated = name in model.config.repeated
        absent = 1.0
        for _, f in own:
            absent = absent * f.absent
        if not repeated and found:
            best = max(found, key=lambda v: v.confidence)
            others += [v for v in found if v is not best]
            found = [best]
        others = sorted(others, key=lambda v: -v.confidence)[:options.get("alternatives", 3)]
        fields[name] = FieldResult(name, repeated, tuple(found), absent, tuple(others))
    types = [page.doc_type for page in pages if page.doc_type is not None]
    doc_type = max(types, key=lambda choice: choice.confidence) if types else None
    return DocumentResult(document.id, fields, doc_type, pages)
