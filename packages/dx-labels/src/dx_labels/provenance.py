"""Which program read the pages, and in which version: a model was taught what this one makes."""


def reader_of(page):
    """"name version" of what made the page's words, as its `reader` says; None where it does not."""
    reader = page.extra.get("reader")
    if not isinstance(reader, dict) or not isinstance(reader.get("name"), str):
        return None
    return " ".join([reader["name"], str(reader.get("version") or "")]).strip()


def readers_of(documents):
    """Pages by reader: dict "name version" → count, sorted by name; pages that name none do not count."""
    counts = {}
    for document in documents:
        for page in document.pages:
            name = reader_of(page)
            if name is not None:
                counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def reader_warnings(counts, before=()):
    """What training says of its pages' readers: several of them, or others than those of the model it goes on from.

    Parameters
    ----------
    counts : as readers_of gives it
    before : names of the readers that the model was trained on; (): nothing is known of them

    Returns
    -------
    list of str, empty where there is nothing to warn of
    """
    out = []
    if len(counts) > 1:
        told = ", ".join(f"{name} ({n} pages)" for name, n in counts.items())
        out.append(f"warning: the pages come from several readers or versions: {told}: words and boxes of one page "
                   "may differ between them")
    for name in counts:
        if before and name not in before:
            out.append(f"warning: pages read by {name}, but the model to go on from was trained on pages read by "
                       f"{', '.join(before)}")
    return out


class ReaderWatch:
    """Warns once of each reader whose pages a model was not trained on.

    known : names of the readers it was trained on; (): nothing is known of them, and nothing is said
    """

    def __init__(self, known):
        self.known, self._told = tuple(known), set()

    def warnings(self, document):
        """What to say of a document; list of str."""
        out = []
        for name in readers_of([document]) if self.known else ():
            if name not in self.known and name not in self._told:
                self._told.add(name)
                out.append(f"warning: document {document.id!r} was read by {name}, but the model was trained on pages "
                           f"read by {', '.join(self.known)}: words and boxes may differ")
        return out
