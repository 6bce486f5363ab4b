"""Digests of kernel results on seeded data: the same on every machine, path and degree. `contracts` pins them."""
import hashlib

import dx_kernels as k
import numpy as np


def numbers(shape, seed):
    """Numbers in [-1, 1) from whole-number arithmetic: SplitMix64's output function of a counter."""
    z = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)).reshape(shape)


def layer_norm():
    x, dy, w, b = numbers((37, 50), 1), numbers((37, 50), 2), numbers((50,), 3), numbers((50,), 4)
    y, xhat, inv, dx = np.empty_like(x), np.empty_like(x), np.empty(37, np.float32), np.empty_like(x)
    dw, db = np.empty_like(w), np.empty_like(b)
    k.layer_norm_forward(x, w, b, y, xhat, inv, eps=1e-5)
    k.layer_norm_backward(dy, xhat, inv, w, dx, dw, db)
    return {"layer_norm.y": y, "layer_norm.dx": dx, "layer_norm.dweight": dw, "layer_norm.dbias": db}


def features():
    """A page of 40 words: amounts, dates, labels, other scripts."""
    parts = ["TOTAL", "Date:", "12/03/2018", "RM5.00", "1,234.50", "(7)", "x", "Straße", "漢字", "\u0378"]
    pick = (numbers((40, 3), 5) * 5 + 5).astype(int)
    texts = ["".join(parts[i] for i in row[:1 + row[2] % 3]) for row in pick.tolist()]
    code = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4").astype(np.uint32)
    offset = np.array([len("".join(texts[:i])) for i in range(41)], np.int64)
    corner, size = np.floor(numbers((40, 2), 6) * 50 + 50) * 8.0, np.floor(numbers((40, 2), 7) * 10 + 11)
    box, line = np.concatenate([corner, corner + size], axis=1).astype(np.float64), np.arange(40, dtype=np.int32) // 3
    order, row = np.empty(40, np.int32), np.empty(40, np.int32)
    k.reading_order(box, line, offset, code, order, row)
    kind, cut, key = np.empty(len(code), np.uint8), np.empty(len(code), np.uint8), np.empty(40, np.int32)
    k.text_kinds(code, kind)
    k.text_cuts(offset, code, kind, cut)
    k.text_keys(offset, code, kind, key)
    ids, relative, real = np.empty((40, 12), np.int32), np.empty((40, 4)), np.empty((6, 40))
    whole, words = np.empty((3, 40), np.int32), np.empty((40, 56), np.float32)
    pairs = np.empty((20, 40, 40), np.float32)
    k.character_ids(offset, code, kind, ids)
    height = k.page_geometry(box, row, line, key, relative, real, whole)
    k.word_features(offset, code, kind, box, row, line, key, np.zeros(40, np.uint8), words, line_height=height)
    k.pair_features(real, whole, pairs)
    return {"features.order": order, "features.cut": cut, "features.ids": ids, "features.words": words,
            "features.real": real, "features.pairs": pairs}


CASES = [layer_norm, features]


def digests():
    """name → SHA-256 of the little-endian bytes."""
    return {name: hashlib.sha256(np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes()).hexdigest()
            for case in CASES for name, a in case().items()}
