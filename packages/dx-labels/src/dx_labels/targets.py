"""From labels to the targets of a page's windows."""
import numpy as np

from .below import Targets, page_windows, window_owners
from .labels import rows_of_spans

PLACES = ("all", "unsure")


def field_rows(page, rows, labels, schema):
    """What a page's labels say in rows: a list of (field number, state, runs), runs of (first, last) rows."""
    out = []
    for label in labels:
        runs = []
        for place in label.runs:
            inside, _ = rows_of_spans(page, rows, place)
            if inside:
                runs.append((inside[0], inside[-1]))
        out.append((schema.names.index(label.field), label.state, tuple(runs)))
    return out


def tag_targets(count, found, places="all"):
    """Tag of every row: O 0, B 1 + 2k, I 2 + 2k, -1 where it is not known; int32 (count,).

    Parameters
    ----------
    found : list of (field number, state, runs) as field_rows gives it
    places : "all": every place of a value is tagged; "unsure": the rows of a value with several places are -1, and the
        run loss alone decides among them
    """
    if places not in PLACES:
        raise ValueError(f"places = {places!r}: expected one of {', '.join(PLACES)}")
    tag = np.zeros(count, np.int32)
    for k, state, runs in found:
        unsure = places == "unsure" and len(runs) > 1
        for first, last in runs if state == "value" and not unsure else ():
            tag[first] = 1 + 2 * k
            tag[first + 1:last + 1] = 2 + 2 * k
    for _, state, runs in found:
        if state == "ignored" or places == "unsure" and len(runs) > 1:
            for first, last in runs:
                tag[first:last + 1] = -1
    return tag


def run_terms(found, repeated, begin=0, end=None):
    """Terms of the run loss in the window of rows begin..end-1.

    Parameters
    ----------
    found : as field_rows gives it
    repeated : list of bool for each field

    Returns
    -------
    (fields int32 (m,), places int32 (q, 3) of term, first, last, counted from begin)

    Rule
    ----
    A field that is ignored, or one of whose places the window's ends cut, is no term. A field that is not repeated is
    one term with all its places in the window (none: it has no value here). A repeated field has a term for every
    value with exactly one place.
    """
    fields, places = [], []
    for k, again in enumerate(repeated):
        own = [(state, runs) for number, state, runs in found if number == k]
        if not own or any(state in ("ignored", "excluded") for state, _ in own) and not again:
            continue
        inside = []
        for state, runs in own:
            touching = [r for r in runs if end is None or r[0] < end and begin <= r[1]] if state == "value" else []
            inside.append([(a - begin, b - begin) for a, b in touching])
            if any(a < 0 or end is not None and b >= end - begin for a, b in inside[-1]):
                inside[-1] = None
        if again:
            for runs in inside:
                if runs is not None and len(runs) == 1:
                    places.append((len(fields), *runs[0]))
                    fields.append(k)
        elif None not in inside:
            places += [(len(fields), a, b) for a, b in sorted({r for runs in inside for r in runs})]
            fields.append(k)
    return np.array(fields, np.int32), np.array(places, np.int32).reshape(-1, 3)


def relation_rows(page, rows, roles):
    """Role, item and key-value targets of a page's rows from its entities, links and groups.

    Parameters
    ----------
    page : Page whose extra holds `entities` ([{"id", "label", "words"}]) and, where it has them, `links` ([from, to] of
        entity ids: the second points at the first) and `groups` (a group's number or null for each word)
    rows : Rows
    roles : tuple of str; entities of other labels have no role

    Returns
    -------
    role, item, key_value : int32 (n,)
        role: B 1 + 2r on the first row of every run of an entity, I 2 + 2r on the others, O elsewhere. item: the first
        row of the word's group (of its entity, where the page has no groups); a row outside groups points at itself.
        key_value: the first row of the entity that the word's entity points at (of several the first in reading order),
        else itself.
    lost : dict of counts: entities that are not one run of rows, second and further partners of an entity
    """
    n = len(rows)
    members, anchor, lost = _entity_rows(page, rows), {}, {"entities not one run": 0, "further partners": 0}
    role, item, key_value = np.zeros(n, np.int32), np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    for name, (label, own) in members.items():
        if not own:
            continue
        anchor[name] = own[0]
        lost["entities not one run"] += len(own) != own[-1] - own[0] + 1
        if label in roles:
            r = roles.index(label)
            for i in own:
                role[i] = 2 + 2 * r if i - 1 in own and i > own[0] else 1 + 2 * r
    groups = page.extra.get("groups")
    if isinstance(groups, list) and len(groups) == len(page.words):
        first = {}
        for i, w in enumerate(rows.word):
            if groups[w] is not None:
                item[i] = first.setdefault(groups[w], i)
    else:
        for _, own in members.values():
            item[own] = own[0] if own else 0
    partners = {}
    for source, target in page.extra.get("links") or ():
        if source in anchor and target in anchor and source != target:
            partners.setdefault(target, []).append(anchor[source])
    for name, found in partners.items():
        lost["further partners"] += len(found) - 1
        key_value[members[name][1]] = min(found)
    return role, item, key_value, lost


def _entity_rows(page, rows):
    """Entity id → (label, its rows ascending); of words in two entities the first entity keeps them."""
    place, taken, members = {}, {}, {}
    for i, w in enumerate(rows.word):
        place.setdefault(w, []).append(i)
    for entity in page.extra.get("entities") or ():
        own = []
        for w in entity.get("words", ()):
            if w not in taken:
                taken[w] = True
                own += place.get(w, ())
        members[entity.get("id")] = (entity.get("label"), sorted(own))
    return members


def window_targets(encoded, found, repeated, max_rows, *, places="all", relations=None, doc=-1):
    """The windows of a page with their targets.

    Parameters
    ----------
    encoded : EncodedPage
    found : list of (field number, state, runs), or None: nothing is known of fields
    repeated : list of bool for each field
    max_rows : rows that the model takes at most
    places : as tag_targets
    relations : (role, item, key_value) of the page's rows, or None
    doc : document type of the page, -1 where it is not known; window 0 alone has it

    Returns
    -------
    list of (EncodedPage, Targets) in order. A row is supervised in the window that owns it alone, -1 elsewhere; a
    pointer whose target lies outside its window is -1.
    """
    n = len(encoded)
    windows = page_windows(n, max_rows)
    owner = window_owners(n, windows)
    tag = None if found is None else tag_targets(n, found, places)
    out = []
    for k, (begin, end) in enumerate(windows):
        mine = owner[begin:end] == k
        targets = Targets(doc=doc if k == 0 else -1)
        if tag is not None:
            targets.tag = np.where(mine, tag[begin:end], -1).astype(np.int32)
            targets.run_fields, targets.run_places = run_terms(found, repeated, begin, end)
        if relations is not None:
            role, item, key_value = relations
            targets.role = np.where(mine, role[begin:end], -1).astype(np.int32)
            for name, pointer in (("item", item), ("key_value", key_value)):
                own = pointer[begin:end]
                good = mine & (own >= begin) & (own < end)
                setattr(targets, name, np.where(good, own - begin, -1).astype(np.int32))
        out.append((encoded if len(windows) == 1 else encoded.window(begin, end), targets))
    return out
