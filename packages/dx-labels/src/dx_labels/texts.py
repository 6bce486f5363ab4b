"""Text as values compare it: cleaned, with character classes from the committed table (numerics.md rule 18)."""
from functools import lru_cache

import numpy as np

from .below import clean_text, text_kinds

DIGIT, UPPER, LOWER, LETTER = 2, 3, 4, 5
_KINDS = {}


def kind(character):
    """(kind, digit value) of one cleaned character; kinds as dx_kernels.text_kinds numbers them."""
    found = _KINDS.get(character)
    if found is None:
        out = np.empty(1, np.uint8)
        text_kinds(np.array([ord(character)], np.uint32), out)
        found = _KINDS[character] = (int(out[0]) & 15, int(out[0]) >> 4)
    return found


def is_letter(character):
    return kind(character)[0] in (UPPER, LOWER, LETTER)


def is_digit(character):
    return kind(character)[0] == DIGIT


@lru_cache(maxsize=65536)
def plain(text):
    """The text cleaned (NFKC, unassigned code points as U+FFFD), its digits as 0-9, white space as single spaces."""
    text = clean_text(text)
    if not text.isascii():
        text = "".join(str(kind(c)[1]) if is_digit(c) else c for c in text)
    return " ".join(text.split())


@lru_cache(maxsize=65536)
def key(text):
    """Letters and digits of a text, upper-cased, nothing else: what `F1 by text` compares; str.

    Examples
    --------
    >>> key("No. 2 & 4, Straße")
    'NO24STRASSE'
    """
    text = plain(text).upper()
    if text.isascii():
        return "".join(filter(str.isalnum, text))
    return "".join(c for c in text if kind(c)[0] in (DIGIT, UPPER, LOWER, LETTER))


def _folded(text, unicode, case, spaces, punctuation):
    text = plain(text) if unicode else text.strip()
    if case:
        text = text.upper()
    if spaces:
        text = "".join(text.split())
    if punctuation:
        text = "".join(c for c in text if c.isspace() or kind(c)[0] in (DIGIT, UPPER, LOWER, LETTER))
        if not spaces:
            text = " ".join(text.split())
    return text


STEPS = ("unicode", "case", "spaces", "punctuation")


def differences(one, other):
    """Which of the steps unicode, case, spaces, punctuation two texts of the same key need to become equal: those
    without which, all others taken, they would differ; tuple of str, empty for equal texts."""
    if one == other:
        return ()
    needed = []
    for step in STEPS:
        chosen = {name: name != step for name in STEPS}
        if _folded(one, **chosen) != _folded(other, **chosen):
            needed.append(step)
    return tuple(needed)


def share(value):
    """A probability as text with four digits that never rounds up to 1."""
    return "1" if value == 1 else f"{min(value, 0.9999):.4f}"
