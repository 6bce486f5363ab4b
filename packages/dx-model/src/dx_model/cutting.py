"""Words cut into the pieces that become rows of the model, and pieces mapped back to words."""
from dataclasses import dataclass

import numpy as np

from .below import text_cuts, text_kinds

DIGIT, UPPER, LETTER = 2, 3, 5  # kinds of text_kinds; upper, lower and letter follow one another
CUTS = (True, False, "fine")
SIGNS = np.array([ord(c) for c in "/,;|=#&+_"], np.uint32)  # what parts two fields inside one word


@dataclass(frozen=True)
class Pieces:
    """Pieces of words in order. Piece p is texts[word[p]][start[p]:end[p]]; word, start, end: int64 (pieces,)."""
    word: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def text(self, texts, piece):
        """The source text of a piece; str."""
        return texts[self.word[piece]][self.start[piece]:self.end[piece]]


def cut_words(offset, code, cut=True):
    """Cuts words into pieces: around dates, after LABEL:, at brackets, after a currency code (dx_kernels.text_cuts).

    Parameters
    ----------
    offset : int64 (words + 1,)
    code : uint32, the code points of the words as the source gives them
    cut : True; False leaves every word whole; "fine" also cuts out each sign of / , ; | = # & + _ that stands between a
        digit and a letter, for readers that give several fields as one word

    Returns
    -------
    Pieces; every word has at least one, an empty word an empty one
    """
    words, cuts = len(offset) - 1, np.zeros(0, np.int64)
    if cut and len(code):
        kind, mark = np.empty(len(code), np.uint8), np.empty(len(code), np.uint8)
        text_kinds(code, kind)
        text_cuts(offset, code, kind, mark)
        if cut == "fine":
            mark |= _fine_cuts(offset, code, kind)
        cuts = np.flatnonzero(mark)
    if len(cuts) == 0:
        return Pieces(np.arange(words), np.zeros(words, np.int64), offset[1:] - offset[:-1])
    inside = cuts.searchsorted(offset)  # cuts before each word
    word = np.arange(words).repeat(1 + inside[1:] - inside[:-1])
    edges = np.sort(np.concatenate([offset, cuts]), kind="stable")
    of_word = offset[word]
    return Pieces(word, edges[:-1] - of_word, edges[1:] - of_word)


def _fine_cuts(offset, code, kind):
    """1 before and after each sign between a digit and a letter of its word, else 0; uint8 (n,)."""
    kind, n = kind & 15, len(code)  # without the digits' values
    digit, letter = kind == DIGIT, (kind >= UPPER) & (kind <= LETTER)
    inner = np.zeros(n, np.bool_)
    inner[1:-1] = np.isin(code[1:-1], SIGNS)
    filled = offset[1:] > offset[:-1]
    inner[offset[:-1][filled]] = inner[offset[1:][filled] - 1] = False  # a word's own ends
    at = np.flatnonzero(inner)
    at = at[digit[at - 1] & letter[at + 1] | letter[at - 1] & digit[at + 1]]
    mark = np.zeros(n, np.uint8)
    mark[at] = mark[at + 1] = 1
    return mark


def piece_boxes(box, offset, pieces):
    """Boxes of pieces: the word's box cut from left to right in proportion to the code points; float64 (pieces, 4)."""
    out = box[pieces.word]
    length = (offset[1:] - offset[:-1])[pieces.word]
    cut = np.flatnonzero(pieces.end - pieces.start != length)  # the pieces of words that are cut
    if len(cut):
        left, right, whole = out[cut, 0], out[cut, 2], length[cut]
        width, end = right - left, pieces.end[cut]
        out[cut, 0] = np.minimum(left + width * pieces.start[cut] / whole, right)
        out[cut, 2] = np.where(end == whole, right, np.minimum(left + width * end / whole, right))
    return out
