"""Calls of the kernels that read and decode pages; importing this completes kernel_calls.REGISTRY."""
import importlib.util

import dx_kernels as k
import numpy as np
from dx_numerics.testing.calls import Draw, call, out
from kernel_calls import REGISTRY, kernel, pair_layers

LARGE = 250
ALPHABET = np.array([*map(ord, "0123456789.,-/:()%$€ RMTOALtotalß漢Ж"), 0xD800, 0x378, 0x1F600, 0x110000], np.uint32)


def texts(n, draw):
    """(offset, code, kind) of n words of 0 to 6 characters."""
    offset = np.zeros(n + 1, np.int64)
    for i, length in enumerate(draw.whole(0, 7, n).tolist()):
        offset[i + 1] = offset[i] + length
    code = ALPHABET[draw.whole(0, len(ALPHABET), int(offset[n]))]
    kind = np.empty(len(code), np.uint8)
    k.text_kinds(code, kind)
    return offset, code, kind


def page(n, draw):
    """A page's arrays in reading order; huge: coordinates up to 2^30."""
    scale = 2.0**18 if draw.kind == "huge" else 0.5
    x0, y0, w, h = (draw.whole(0, high, n).astype(np.float64) * scale for high in (1000, 400, 90, 25))
    box = np.ascontiguousarray(np.stack([x0, y0, x0 + w, y0 + h], 1))
    line = draw.whole(-1, max(n // 3, 1), n)
    offset, code, kind = texts(n, draw)
    order, row, key = (np.empty(n, np.int32) for _ in range(3))
    k.reading_order(box, line, offset, code, order, row)
    box, line = np.ascontiguousarray(box[order]), np.ascontiguousarray(line[order])
    k.text_keys(offset, code, kind, key)
    return {"box": box, "line": line, "offset": offset, "code": code, "kind": kind, "row": row, "key": key}


def geometry(n, draw):
    """(relative, real, whole) of a page."""
    p = page(n, draw)
    relative, real, whole = np.empty((n, 4)), np.empty((6, n)), np.empty((3, n), np.int32)
    k.page_geometry(p["box"], p["row"], p["line"], p["key"], relative, real, whole)
    return relative, real, whole


@kernel("text_clean", 50_000)
def text_clean(n, draw):
    return [call(k.text_clean, draw.whole(0, 0x120000, n, dtype=np.uint32), out(n, dtype=np.uint32))]


@kernel("text_kinds", 50_000)
def text_kinds(n, draw):
    return [call(k.text_kinds, draw.whole(0, 0x120000, n, dtype=np.uint32), out(n, dtype=np.uint8))]


@kernel("text_cuts", LARGE)
def text_cuts(n, draw):
    offset, code, kind = texts(n, draw)
    return [call(k.text_cuts, offset, code, kind, out(len(code), dtype=np.uint8))]


@kernel("text_keys", LARGE)
def text_keys(n, draw):
    return [call(k.text_keys, *texts(n, draw), out(n, dtype=np.int32))]


@kernel("character_ids", LARGE)
def character_ids(n, draw):
    words = texts(n, draw)
    return [call(k.character_ids, *words, out(n, width, dtype=np.int32)) for width in (1, 5, 16)]


@kernel("distinct_rows", 5000)
def distinct_rows(n, draw):
    return [call(k.distinct_rows, draw.whole(0, 3, n, width), out(n, width, dtype=np.int32), out(n, dtype=np.int32))
            for width in (1, 4)]


@kernel("reading_order", LARGE)
def reading_order(n, draw):
    p = page(n, draw)
    return [call(k.reading_order, p["box"], p["line"], p["offset"], p["code"], out(n, dtype=np.int32),
                 out(n, dtype=np.int32))]


@kernel("page_order", LARGE)
def page_order(n, draw):
    p, side = page(n, draw), np.arange(n) % 2
    place, row = np.arange(n) // 2 % 5, np.arange(n) // 10
    x0, y0 = 300.0 * side + 50.0 * place, 14.0 * row
    columns = np.ascontiguousarray(np.stack([x0, y0, x0 + 47.0, y0 + 10.0], 1))
    return [call(k.page_order, box, line, p["offset"], p["code"], columns=wanted)
            for box, line in ((p["box"], p["line"]), (columns, np.full(n, -1, np.int32))) for wanted in (True, False)]


@kernel("word_features", LARGE)
def word_features(n, draw):
    p = page(n, draw)
    glue = draw.whole(0, 2, n, dtype=np.uint8)
    return [call(k.word_features, p["offset"], p["code"], p["kind"], p["box"], p["row"], p["line"], p["key"], glue,
                 out(n, k.WORD_FEATURE_COUNT), line_height=height) for height in (7.5, 1e-3)]


@kernel("page_geometry", LARGE)
def page_geometry(n, draw):
    p = page(n, draw)
    return [call(k.page_geometry, p["box"], p["row"], p["line"], p["key"], out(n, 4, dtype=np.float64),
                 out(6, n, dtype=np.float64), out(3, n, dtype=np.int32))]


@kernel("positions", LARGE)
def positions(n, draw):
    wild = draw.real(n, 4, dtype=np.float64)
    return [call(k.positions, r, out(4, n, dtype=np.int32), size=size) for r, size in (
        (geometry(n, draw)[0], 100), (wild, 1), (wild, 2**31 - 1))]


@kernel("pair_features", LARGE)
def pair_features(n, draw):
    _, real, whole = geometry(n, draw)
    rows = n // 3
    return [call(k.pair_features, real, whole, out(k.PAIR_FEATURE_COUNT, n, n)),
            call(k.pair_features, real, whole, out(k.PAIR_FEATURE_COUNT, rows, n), i0=n - rows),
            call(k.pair_features, draw.real(6, n, dtype=np.float64), whole, out(k.PAIR_FEATURE_COUNT, n, n))]


@kernel("pair_bias_forward", 150)
def pair_bias_forward(n, draw):
    _, real, whole = geometry(n, draw)
    return [call(k.pair_bias_forward, real, whole, *pair_layers(draw), out(3, n, n))]


@kernel("pair_bias_backward", 150)
def pair_bias_backward(n, draw):
    _, real, whole = geometry(n, draw)
    weight1, bias1, weight2, bias2 = pair_layers(draw)
    return [call(k.pair_bias_backward, draw.real(3, n, n), real, whole, weight1, bias1, weight2,
                 *(out(*w.shape) for w in (weight1, bias1, weight2, bias2)))]


REPEATED = np.array([0, 0, 1], np.uint8)


def fields_of(n, draw):
    """(logits, runs): tag scores of three fields, and a few runs."""
    logits = draw.real(n, 7)
    first = draw.whole(0, n, min(n, 4))
    runs = np.stack([draw.whole(0, 3, len(first)), first, np.minimum(first + 2, max(n - 1, 0))], 1)
    return logits, np.ascontiguousarray(runs, np.int32)


@kernel("decode_tags", LARGE)
def decode_tags(n, draw):
    logits, _ = fields_of(n, draw)
    return [call(k.decode_tags, logits, REPEATED, out(n, dtype=np.int32)),
            call(k.decode_tags, logits[:, :1].copy(), REPEATED[:0], out(n, dtype=np.int32))]


@kernel("page_model", 12)
def page_model(n, draw):
    return [call(k.page_model, draw.whole(0, 2, n, dtype=np.uint8))]


@kernel("run_posteriors", 120)
def run_posteriors(n, draw):
    logits, runs = fields_of(n, draw)
    many = np.zeros(9, np.uint8)  # too many fields for the joint model
    return [call(k.run_posteriors, logits, REPEATED, out(3, dtype=np.float64), runs, out(len(runs), dtype=np.float64),
                 floor=0.05, capacity=4096),
            call(k.run_posteriors, draw.real(n, 19), many, out(9, dtype=np.float64), runs,
                 out(len(runs), dtype=np.float64))]


@kernel("run_loss", 120)
def run_loss(n, draw):
    logits, runs = fields_of(n, draw)
    places = [[0, 0, 0], [0, n // 2, n // 2]] if n > 1 else []
    places = np.array(places, np.int32).reshape(-1, 3)
    fields, weights = np.array([1, 0], np.int32), np.array([0.3, 1 / 7])
    return [call(k.run_loss, logits, REPEATED, fields, places, out(2, dtype=np.float64), out(n, 7), weights=weights,
                 scale=1 / 3),
            call(k.run_loss, logits, REPEATED, fields[:1], places, out(1, dtype=np.float64))]


@kernel("check_tags", 2000)
def check_tags(n, draw):
    return [call(k.check_tags, draw.whole(0, 7, n), REPEATED), call(k.check_tags, np.zeros(n, np.int32), REPEATED)]


def tagging(n, draw):
    """A legal tagging."""
    tags = np.empty(n, np.int32)
    k.decode_tags(Draw(f"tags {n}").real(n, 7), REPEATED, tags)
    return tags


@kernel("runs_of_tags", LARGE)
def runs_of_tags(n, draw):
    return [call(k.runs_of_tags, tagging(n, draw)), call(k.runs_of_tags, draw.whole(0, 2, n))]


@kernel("tags_of_runs", LARGE)
def tags_of_runs(n, draw):
    return [call(k.tags_of_runs, k.runs_of_tags(tagging(n, draw)), out(n, dtype=np.int32))]


@kernel("pointers_of_scores", LARGE)
def pointers_of_scores(n, draw):
    return [call(k.pointers_of_scores, draw.real(n, n), out(n, dtype=np.int32))]


@kernel("groups_of_pointers", 5000)
def groups_of_pointers(n, draw):
    return [call(k.groups_of_pointers, draw.whole(0, n, n), out(n, dtype=np.int32))]


@kernel("pairs_of_pointers", 5000)
def pairs_of_pointers(n, draw):
    return [call(k.pairs_of_pointers, draw.whole(0, n, n))]


if importlib.util.find_spec("dx_kernels.encoder"):
    import encoder_calls as encoder_calls
    import head_calls as head_calls
    import readout_calls as readout_calls
    import vision_calls as vision_calls
if importlib.util.find_spec("dx_kernels.maxsim"):
    import interaction_calls as interaction_calls

__all__ = ["REGISTRY"]
