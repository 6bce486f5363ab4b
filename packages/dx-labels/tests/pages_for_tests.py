"""Small pages for the tests."""
from dx_labels.below import Document, Page, Word


def page_of(*lines, id="p", extra=None, document=None, number=None):
    """A page with these lines of words, left to right, top to bottom."""
    words = []
    for y, line in enumerate(lines):
        x = 5
        for text in line.split(" "):
            words.append(Word(text, (x, 5 + 20 * y, x + 8 * len(text), 17 + 20 * y)))
            x += 8 * len(text) + 6
    return Page(id, 4000, 20 * len(lines) + 10, words, extra=extra or {}, document=document, number=number)


def document_of(*lines, id="p", extra=None):
    page = page_of(*lines, id=id, extra=extra)
    return Document(id, (page,), {})
