"""From a page to the arrays that the model takes."""
import unicodedata
from dataclasses import dataclass

import numpy as np

from .below import (PAIR_REALS, PAIR_WHOLES, WORD_FEATURE_COUNT, character_ids, distinct_rows, ieee_mode,
                    page_geometry, positions, text_clean, text_keys, text_kinds, word_features)
from .cutting import CUTS, Pieces, cut_words, piece_boxes
from .reading import code_points, line_numbers, order_boxes, upright_boxes


@dataclass(frozen=True)
class Encoding:
    """How pages become arrays; part of a model's configuration.

    max_chars : characters kept of a row's text (head and tail)
    position_buckets : rows of a position table
    cut : cut words into pieces: True, False, or "fine", which also parts fields joined by a sign (cut_words)
    keep_file_order : words in the order of the file instead of by position
    columns : look for two columns of text
    """
    max_chars: int = 16
    position_buckets: int = 128
    cut: bool | str = True
    keep_file_order: bool = False
    columns: bool = True

    def __post_init__(self):
        for name, most in (("max_chars", 1024), ("position_buckets", 65536)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(f"{name} = {value!r}: expected a whole number from 1 to {most}")
        check_cut(self.cut)


def check_cut(cut):
    """ValueError unless cut is true, false or "fine"."""
    if type(cut) not in (bool, str) or cut not in CUTS:
        raise ValueError(f"cut = {cut!r}: expected true, false or 'fine'")


@dataclass(frozen=True)
class EncodedPage:
    """A page, or a window of it, as the model takes it: one row for each piece of a word, in reading order.

    id : str, the page's
    word, start, end : int64 (n,); row r is texts[word[r]][start[r]:end[r]] of the page's words in file order
    row : int32 (n,), the visual row
    box : float64 (n, 4), upright, in the page's units
    characters : int32 (distinct, max_chars), character ids of the distinct texts
    table_ids : int32 (5, n): inverse, row r has the character ids characters[inverse[r]]; then position, the rows of
        the position tables for x0, y0, x1, y1
    features : float32 (n, 56), word features
    relative : float64 (n, 4), box edges in the page's content extent
    real, whole : float64 (6, n), int32 (3, n): what pair features are made from (dx_kernels.page_geometry)
    """
    id: str
    word: np.ndarray
    start: np.ndarray
    end: np.ndarray
    row: np.ndarray
    box: np.ndarray
    characters: np.ndarray
    table_ids: np.ndarray
    features: np.ndarray
    relative: np.ndarray
    real: np.ndarray
    whole: np.ndarray

    def __len__(self):
        return len(self.word)

    @property
    def inverse(self):
        return self.table_ids[0]

    @property
    def position(self):
        return self.table_ids[1:]

    def window(self, begin, end, id=None):
        """Rows begin..end-1 as an EncodedPage of their own; places and features stay those of the whole page."""
        rows = slice(begin, end)
        table_ids, real, whole = (np.ascontiguousarray(a[:, rows]) for a in (self.table_ids, self.real, self.whole))
        characters, table_ids[0] = _distinct(self.characters[table_ids[0]])
        return EncodedPage(id or self.id, self.word[rows], self.start[rows], self.end[rows], self.row[rows],
                           self.box[rows], characters, table_ids, self.features[rows], self.relative[rows], real,
                           whole)


def clean_text(text):
    """The text as the model sees it: code points that Unicode 14.0 does not assign, and lone surrogates, become U+FFFD;
    then NFKC; str."""
    return _clean([text])[0]


def _clean(texts):
    """clean_text of every text. ASCII is as it is; each other text is normalised by itself."""
    _, code = code_points(texts)
    cleaned = np.empty_like(code)
    text_clean(code, cleaned)
    joined = cleaned.astype("<u4").tobytes().decode("utf-32-le")
    cleaned, begin = [], 0
    for text in texts:
        own = joined[begin:begin + len(text)]
        begin += len(text)
        cleaned.append(own if own.isascii() else unicodedata.normalize("NFKC", own))
    return cleaned


def _distinct(ids):
    distinct, inverse = np.empty_like(ids), np.empty(len(ids), np.int32)
    count = distinct_rows(ids, distinct, inverse)
    return distinct[:count], inverse


@ieee_mode()
def encode_page(page, encoding=Encoding()):
    """The arrays of a page.

    Parameters
    ----------
    page : Page
    encoding : Encoding

    Returns
    -------
    EncodedPage, the same whatever the order of the page's words, up to `word`

    Examples
    --------
    >>> from dx_model import Page, Word, encode_page
    >>> page = Page("a", 100, 50, [Word("12.00", (60, 5, 90, 15)), Word("Total:", (5, 5, 40, 15))])
    >>> encode_page(page).word.tolist()
    [1, 0]
    """
    texts, box, line = page.texts, upright_boxes(page), line_numbers(page)
    order, row = order_boxes(box, line, texts, encoding.keep_file_order, encoding.columns)
    texts, box, line = [texts[i] for i in order.tolist()], box[order], line[order]
    offset, code = code_points(texts)
    pieces = cut_words(offset, code, encoding.cut)
    source = Pieces(order[pieces.word].astype(np.int64), pieces.start, pieces.end)
    box, line, row = piece_boxes(box, offset, pieces), line[pieces.word], row[pieces.word]
    offset = np.concatenate([offset[pieces.word] + pieces.start, offset[-1:]])
    joined = "".join(texts)
    if not joined.isascii():
        ends = offset.tolist()
        offset, code = code_points(_clean([joined[a:b] for a, b in zip(ends, ends[1:])]))
    line = np.where(line < 0, -2 - row, line)
    return _arrays(page.id, source, box, row, line, (pieces.start > 0).view(np.uint8), offset, code, encoding)


def _arrays(id, pieces, box, row, line, glue, offset, code, encoding):
    n = len(row)
    kind, key = np.empty(len(code), np.uint8), np.empty(n, np.int32)
    text_kinds(code, kind)
    text_keys(offset, code, kind, key)
    relative, real, whole = np.empty((n, 4)), np.empty((PAIR_REALS, n)), np.empty((PAIR_WHOLES, n), np.int32)
    height = page_geometry(box, row, line, key, relative, real, whole)
    features, table_ids = np.empty((n, WORD_FEATURE_COUNT), np.float32), np.empty((5, n), np.int32)
    word_features(offset, code, kind, box, row, line, key, glue, features, line_height=height)
    positions(relative, table_ids[1:], size=encoding.position_buckets)
    ids = np.empty((n, encoding.max_chars), np.int32)
    character_ids(offset, code, kind, ids)
    characters, table_ids[0] = _distinct(ids)
    return EncodedPage(id, pieces.word, pieces.start, pieces.end, row, box, characters, table_ids, features, relative,
                       real, whole)
