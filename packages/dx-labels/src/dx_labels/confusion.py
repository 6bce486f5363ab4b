"""What wrong values were taken for: which field's words a value of another one really was."""


def shared(run, other):
    """How many characters two places have in common; a place is a tuple of (word, first character, end)."""
    count = 0
    for word, start, end in run:
        for at, begin, stop in other:
            if word == at:
                count += max(min(end, stop) - max(start, begin), 0)
    return count


def confusion(rows, fields):
    """Counts of what was found against what is labelled there.

    Parameters
    ----------
    rows : list of Scored, their places tuples of (word, start, end); rows that words cannot judge do not count
    fields : names, in order

    Returns
    -------
    list of dict, in the fields' order: "found": the field that the model gave a value for, or None: a labelled value at
    which it gave none; "labelled": the field whose value stands there, or None: none does; "exact": the value is one of
    the labelled places; "count". A found value belongs to the field that shares most characters with it, of equal ones
    to its own, then to the first.
    """
    pages, counts = {}, {}
    for row in rows:
        if row.words:
            pages.setdefault(row.document, {})[row.field] = row

    def add(found, labelled, exact=False):
        counts[found, labelled, exact] = counts.get((found, labelled, exact), 0) + 1

    for page in pages.values():
        for name, row in page.items():
            for place in row.predicted_places:
                if any(place in runs for runs in row.gold_places):
                    add(name, name, True)
                else:
                    add(name, _owner(place, name, page, fields))
            for runs in row.gold_places:
                if not any(shared(place, run) for run in runs for place in row.predicted_places):
                    add(None, name)
    place = {name: i for i, name in enumerate(fields)} | {None: len(fields)}
    order = sorted(counts, key=lambda one: (place[one[0]], place[one[1]], not one[2]))
    return [{"found": one[0], "labelled": one[1], "exact": one[2], "count": counts[one]} for one in order]


def _owner(place, own, page, fields):
    """The field whose labelled places share most characters with a place; None where none does."""
    best, most = None, 0
    for name in (own, *(name for name in fields if name != own)):
        for run in (run for runs in page[name].gold_places for run in runs) if name in page else ():
            count = shared(place, run)
            if count > most:
                best, most = name, count
    return best
