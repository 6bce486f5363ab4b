"""Reference of dx_kernels.words: the 56 features of every word, by Python's own integers and sets."""
import re
from collections import Counter

import numpy as np

from . import text

_DATE_LIKE = re.compile(r"[^0-9]?[0-9]{1,4}[/\-.][0-9]{1,2}[/\-.][0-9]{1,4}[^0-9]?", re.S)
_AMOUNT = re.compile(r"([^0-9]{0,3})([0-9](?:.*[0-9])?)([^0-9]{0,2})", re.S)
_CODE = re.compile(text.CODE, re.I | re.A)


def amount(word):
    """(hundredths, decimal sign or "", nothing follows the last digit), or None when the word is no amount."""
    s = text.shape(word)
    match = _AMOUNT.fullmatch(s)
    if not match or "%" in s:
        return None
    begin = match.start(2)
    groups, signs = [""], []
    for c, k in zip(match[2], range(begin, begin + len(match[2]))):
        if c in "0123456789":
            groups[-1] += c
        elif word[k] in (ord("."), ord(","), ord("'"), 0x2019) or c == " ":
            groups.append("")
            signs.append(word[k])
        else:
            return None
    if not signs or len("".join(groups)) > 13:
        return None
    decimals = len(groups[-1]) == 2 and signs[-1] in (ord("."), ord(","))
    whole, inner = (groups[:-1], signs[:-1]) if decimals else (groups, signs)
    if inner and (len(whole[0]) > 3 or any(len(g) != 3 for g in whole[1:]) or len(set(inner)) > 1):
        return None
    if not whole[0] or (decimals and signs[-1] in inner) or (not decimals and s[begin] == "0"):
        return None
    return int("".join(groups)) * (1 if decimals else 100), chr(signs[-1]) if decimals else "", not match[3]


def text_features(word):
    s, kinds = text.shape(word), [text.kind(c)[0] for c in word]
    n, count = len(word), Counter(kinds)
    digits, upper, lower = count[text.DIGIT], count[text.UPPER], count[text.LOWER]
    cased = [k if k in (text.UPPER, text.LOWER) else 0 for k in kinds]
    title = any(cased) and all((c != text.UPPER or not b) and (c != text.LOWER or b)
                               for b, c in zip([0] + cased, cased))
    value = amount(word)
    return [min(n, 20) / 20, digits / max(n, 1), upper / max(n, 1), (upper + lower + count[text.LETTER]) / max(n, 1),
            upper > 0 and lower == 0, title, n > 0 and digits == n, "." in s, "," in s, "/" in s, "-" in s, ":" in s,
            s.endswith(":"), count[text.CURRENCY] > 0 or bool(_CODE.search(s)), "%" in s, "#" in s, "(" in s,
            bool(value and value[1] and value[2]), bool(_DATE_LIKE.fullmatch(s)), bool(re.search("[0-9]{5}", s)),
            min(digits, 12) / 12, s.endswith(","), s.endswith("."), n == 1]


def place_features(box, row, line, key, glue, line_height):
    n, length, times = len(box), Counter(row), Counter(key)
    last = row[-1] if row else 0
    out = []
    for i in range(n):
        r, k = row[i], i - row.index(row[i])
        high = (box[i][3] - box[i][1]) / line_height
        out.append([min(k, 20) / 10, min(length[r], 20) / 10, k == 0, k == length[r] - 1, min(high, 3.0) / 3,
                    r / max(last, 1), i / max(n - 1, 1), min(i, 20) / 20, glue[i], i == 0 or line[i - 1] != line[i],
                    i == n - 1 or line[i + 1] != line[i], min(times[key[i]], 5) / 5 if key[i] >= 0 else 0,
                    min(r, 10) / 10, min(last - r, 10) / 10, key[i] < 0])
    return out


REACH = 256  # how far apart two amounts may stand that are compared one by one


def amount_features(v, right, line_height):
    """17 features for each of the amounts v > 0 (hundredths, reading order) with right edges."""
    n, f = len(v), np.zeros((len(v), 17))
    distinct = sorted(set(v))
    present, times = set(distinct), Counter(v)
    sums = {a + b for a in distinct for b in distinct}
    before = [0]  # running totals
    for j in range(n):
        before.append(before[-1] + v[j])
        rank = len(distinct) - 1 - distinct.index(v[j])
        part = any(v[j] + b in present for b in distinct if b != v[j])
        f[j, :9] = [1, v[j] / distinct[-1], rank == 0, min(rank, 5) / 5, min(times[v[j]], 5) / 5, v[j] in sums, part,
                    v[j] % 5 == 0, before[j] == v[j]]
        for k in range(j + 1, min(j + 5, n)):
            for h in range(max(0, j - REACH), j):
                if v[h] == v[j] - v[k]:
                    f[h, 9] = f[j, 10] = f[k, 11] = 1
        for k in range(j + 1, min(j + 8, n)):
            for h in range(k + 1, min(k + 1 + REACH, n)):
                if v[h] == v[j] + v[k]:
                    f[h, 12] = f[j, 13] = f[k, 13] = 1
        f[j, 14] = v[j] % 5 == 0 and any(abs(v[j] - u) in (1, 2) for u in v[max(0, j - 6):j])
        column = [v[h] for h in range(j - 1, max(-1, j - 1 - REACH), -1)
                  if abs(right[h] - right[j]) < 1.2 * line_height]
        above = 0
        for k, u in enumerate(column):
            above += u
            if k > 0 and above == v[j]:
                f[j, 15] = 1
        f[j, 16] = v[j] in v[:j]
    return f


def word_features(offset, code, box, row, line, key, glue, line_height):
    """(n, 56) float32"""
    words = text.words(offset, code)
    amounts = [amount(w) for w in words]
    signs = Counter(a[1] for a in amounts if a)
    sign = "," if signs[","] > signs["."] else "." if signs["."] else ""
    chosen = [i for i, a in enumerate(amounts) if a and a[0] > 0 and a[1] == sign]
    out = np.zeros((len(words), 56))
    for i, word in enumerate(words):
        out[i, :24] = text_features(word)
    if words:
        out[:, 24:39] = place_features(np.asarray(box, float).tolist(), [int(r) for r in row], [int(x) for x in line],
                                       [int(k) for k in key], [int(g) for g in glue], line_height)
        out[chosen, 39:] = amount_features([amounts[i][0] for i in chosen], [float(box[i][2]) for i in chosen],
                                           line_height)
    return out.astype(np.float32)
