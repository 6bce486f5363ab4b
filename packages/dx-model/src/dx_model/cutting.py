"""Words cut into the pieces that become rows of the model, and pieces mapped back to words."""
from dataclasses import dataclass

import numpy as np

from .below import text_cuts, text_kinds


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
    cut : bool; False leaves every word whole

    Returns
    -------
    Pieces; every word has at least one, an empty word an empty one
    """
    words, cuts = len(offset) - 1, np.zeros(0, np.int64)
    if cut and len(code):
        kind, mark = np.empty(len(code), np.uint8), np.empty(len(code), np.uint8)
        text_kinds(code, kind)
        text_cuts(offset, code, kind, mark)
        cuts = np.flatnonzero(mark)
    if len(cuts) == 0:
        return Pieces(np.arange(words), np.zeros(words, np.int64), np.diff(offset))
    inside = np.searchsorted(cuts, offset, side="left")  # cuts before each word
    word = np.repeat(np.arange(words), 1 + np.diff(inside))
    begin = np.sort(np.concatenate([offset[:-1], cuts]), kind="stable")
    end = np.append(begin[1:], offset[-1])
    return Pieces(word, begin - offset[word], end - offset[word])


def piece_boxes(box, offset, pieces):
    """Boxes of pieces: the word's box cut from left to right in proportion to the code points; float64 (pieces, 4)."""
    length = np.diff(offset)[pieces.word]
    whole = np.maximum(length, 1)
    word = box[pieces.word]
    width = word[:, 2] - word[:, 0]
    out = word.copy()
    out[:, 0] = word[:, 0] + width * pieces.start / whole
    inner = np.minimum(word[:, 0] + width * pieces.end / whole, word[:, 2])
    out[:, 0] = np.minimum(out[:, 0], word[:, 2])
    out[:, 2] = np.where(pieces.end == length, word[:, 2], inner)
    return out
