"""What was read, told word by word."""


def word_labels(page, fields, number=None) -> list:
    """Every word of a page with the label it was given, in the file's order.

    Parameters
    ----------
    page : Page
    fields : dict name → FieldResult, of extract_page or extract_document
    number : the page's place in its document, for the fields of extract_document; None: of the page itself

    Returns
    -------
    list of dict. "word": its number in the page; "text"; "box": (x0, y0, x1, y1) in the page's units; "label": "O",
    or as IOB2 tags "B-field" on the first word of a value and "I-field" on the others; "score": the value's
    confidence, for O 1 less the probabilities of the listed alternatives that lie on the word, at least 0. A word of
    which values take parts has an entry for each such part alone, in order, with "start" and "end", its characters.
    A word that is turned, by what it says itself or by the page's rotation, has its "angle", degrees clockwise.
    """
    taken, doubt = {}, [0.0] * len(page.words)
    for name, found in fields.items():
        for value in found.values:
            if number is None or value.page == number:
                for i, part in enumerate(value.parts):
                    taken.setdefault(part.word, []).append((part, f"{'I' if i else 'B'}-{name}", value.confidence))
        for value in found.alternatives:
            if number is None or value.page == number:
                for part in value.parts:
                    doubt[part.word] += value.confidence
    out = []
    for index, word in enumerate(page.words):
        turn = word.extra.get("angle", page.rotation)
        more = {"angle": turn} if turn else {}
        own = sorted(taken.get(index, ()), key=lambda one: (one[0].start, one[0].end))
        if not own:
            out.append({"word": index, "text": word.text, "box": list(word.box), "label": "O",
                        "score": max(1.0 - doubt[index], 0.0), **more})
        for part, label, score in own:
            span = {} if (part.start, part.end) == (0, len(word.text)) else {"start": part.start, "end": part.end}
            out.append({"word": index, "text": word.text[part.start:part.end], **span, "box": list(part.box),
                        "label": label, "score": score, **more})
    return out
