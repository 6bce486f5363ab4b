"""Reference of dx_kernels.text: words as lists of code points, patterns as regular expressions over a word's shape."""
import re
from bisect import bisect_right

import numpy as np

from .unicode14 import RUNS

UNASSIGNED, OTHER, DIGIT, UPPER, LOWER, LETTER, SPACE, PUNCTUATION, CURRENCY, UPPER_LOWER, LOWER_UPPER = range(11)
_STARTS = [run >> 4 for run in RUNS]


def kind(code):
    """(kind, digit value) of a code point."""
    if code > 0x10FFFF:
        return UNASSIGNED, 0
    run = bisect_right(_STARTS, code) - 1
    k, offset = RUNS[run] & 15, code - _STARTS[run]
    if k == UPPER_LOWER:
        return (UPPER, LOWER)[offset % 2], 0
    if k == LOWER_UPPER:
        return (LOWER, UPPER)[offset % 2], 0
    return k, offset % 10 if k == DIGIT else 0


def text_clean(code):
    return np.array([0xFFFD if kind(c)[0] == UNASSIGNED else c for c in code], np.uint32)


def text_kinds(code):
    return np.array([kind(c)[0] | kind(c)[1] << 4 for c in code], np.uint8)


def words(offset, code):
    """The words as lists of int."""
    return [[int(c) for c in code[a:b]] for a, b in zip(offset, offset[1:])]


# The shape of a word: a string of the same length with the word's ASCII characters, digits of any script as ASCII
# digits, letters and white space beyond ASCII by one character for each kind; what no pattern names is a NUL.
_SHAPE = {UPPER: "Ä", LOWER: "ä", LETTER: "ª", SPACE: " ", CURRENCY: "$"}
L, A = "[A-Za-zÄäª]", "[0-9A-Za-zÄäª]"
CODE = f"(?<!{L})(?:RM|RP|USD|EUR|GBP|CHF|MYR|SGD|IDR)(?!{L})"
SIGN, GAP = r"[/\-.]", r"[/\-. ]?"
DATE = re.compile(rf"[0-9]{{1,2}}{SIGN}[0-9]{{1,2}}{SIGN}[0-9]{{2,4}}|[0-9]{{4}}{SIGN}[0-9]{{1,2}}{SIGN}[0-9]{{1,2}}"
                  r"|(?<![0-9])20[12][0-9][01][0-9][0-3][0-9](?![0-9])"
                  rf"|[0-9]{{1,2}}{GAP}{L}{{3}}{GAP}[0-9]{{2,4}}(?![0-9])")
INNER = re.compile(rf"(?<=[{L[1:-1]}.)]):(?=[{A[1:-1]}$])|(?<=[{A[1:-1]}_.])(?=[(\[])|[)\]](?=[{A[1:-1]}_])")
CURRENCY_BEFORE_DIGIT = re.compile(rf"{CODE}(?=[0-9])", re.I | re.A)


def shape(word):
    out = ""
    for c in word:
        k, digit = kind(c)
        out += str(digit) if k == DIGIT else chr(c) if 32 < c < 127 else _SHAPE.get(k, "\0")
    return out


def cuts(word):
    """Places in 1..len-1 where the word is cut."""
    s = shape(word)
    found = set()
    date = DATE.search(s)
    if date:
        a, b = date.span()
        rest = s[:a] + s[b:]
        if re.search(A, rest) and not s[b:b + 1].isdigit() and not s[:a][-1:].isdigit():
            found |= {a, b}
    found |= {m.end() for m in INNER.finditer(s)}
    codes = [(m.start(), m.end()) for m in CURRENCY_BEFORE_DIGIT.finditer(s)]
    found |= {end for begin, end in codes if begin == 0 or begin in found}
    return [c for c in range(1, len(word)) if c in found]


def text_cuts(offset, code):
    marks = np.zeros(len(code), np.uint8)
    for word, begin in zip(words(offset, code), offset):
        for cut in cuts(word):
            marks[begin + cut] = 1
    return marks


def text_keys(offset, code):
    first, keys = {}, []
    for n, word in enumerate(words(offset, code)):
        letters = tuple(c - 32 if 97 <= c <= 122 else c for c in word if kind(c)[0] in (DIGIT, UPPER, LOWER, LETTER))
        keys.append(first.setdefault(letters, n) if letters else -1 - n)
    return np.array(keys, np.int32)


def character_id(code):
    return code - 31 if 32 <= code < 127 else 96 + code * 2654435761 % 2 ** 32 % 160


def character_ids(offset, code, max_chars):
    ids = np.zeros((len(offset) - 1, max_chars), np.int32)
    for row, word in zip(ids, words(offset, code)):
        while word and kind(word[0])[0] == SPACE:
            word = word[1:]
        while word and kind(word[-1])[0] == SPACE:
            word = word[:-1]
        word = word or [32]
        if len(word) > max_chars:
            tail = max_chars // 2
            word = word[:max_chars - tail] + word[len(word) - tail:]
        row[:len(word)] = [character_id(c) for c in word]
    return ids


def distinct_rows(ids):
    """(distinct rows in order of first occurrence, inverse)"""
    seen = {}
    inverse = [seen.setdefault(tuple(row), len(seen)) for row in ids.tolist()]
    return np.array(list(seen), np.int32).reshape(len(seen), ids.shape[1]), np.array(inverse, np.int32)
