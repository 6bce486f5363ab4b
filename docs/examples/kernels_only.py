"""Fields of a page with dx_kernels, numpy and safetensors alone: words, boxes and a docextract model file.

    python kernels_only.py model.safetensors page.json

page.json: {"words": [{"text": "Total", "box": [x0, y0, x1, y1]}, …]}, upright, in one column of text, at most max_words
rows. Prints one line a field: its name, confidence, text. The bits are those of dx_model.extract_page, which also does
turned pages, two columns, windows, repairs, alternatives, relations (docs/docextract-v0.md).
"""
import json
import sys
import unicodedata

import dx_kernels as dx
import numpy as np
from safetensors import safe_open


def load(path):
    """(config, tensors) of a model file."""
    with safe_open(path, "np") as file:
        head = json.loads(file.metadata()["dx"])
        if (head["kind"], head["format"]) != ("docextract", 1):
            raise ValueError(f"{path}: not a docextract model of format 1")
        tensors = {name: file.get_tensor(name) for name in head["tensors"]}
    tensors["char_conv.weight"] = np.ascontiguousarray(tensors["char_conv.weight"].transpose(0, 2, 1))
    return head["config"], tensors


def code_points(texts):
    code = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    return np.cumsum([0, *map(len, texts)], dtype=np.int64), code


def rows_of(texts, box, cut):
    """Pieces of words in reading order: (word, start, end, box, row, offset, code) with an entry a piece."""
    offset, code = code_points(texts)
    n = len(texts)
    order, row = np.empty(n, np.int32), np.empty(n, np.int32)
    dx.reading_order(box, np.full(n, -1, np.int32), offset, code, order, row)
    texts, box = [texts[i] for i in order], box[order]
    offset, code = code_points(texts)
    kind, mark = np.empty(len(code), np.uint8), np.zeros(len(code), np.uint8)
    dx.text_kinds(code, kind)
    if cut:
        dx.text_cuts(offset, code, kind, mark)
    word, start, end = [], [], []
    for i, text in enumerate(texts):
        places = [0, *np.flatnonzero(mark[offset[i]:offset[i + 1]]).tolist(), len(text)]
        if len(text) == 0:
            places = [0, 0]
        for a, b in zip(places, places[1:]):
            word, start, end = [*word, i], [*start, a], [*end, b]
    word, start, end = (np.array(x, np.int64) for x in (word, start, end))
    length, piece = np.diff(offset)[word], box[word]
    whole, width = np.maximum(length, 1), piece[:, 2] - piece[:, 0]
    x0, x1, right = piece[:, 0] + width * start / whole, piece[:, 0] + width * end / whole, piece[:, 2].copy()
    piece[:, 0] = np.minimum(x0, right)
    piece[:, 2] = np.where(end == length, right, np.minimum(x1, right))
    raw = code_points([texts[w][a:b] for w, a, b in zip(word, start, end)])
    clean = np.empty_like(raw[1])
    dx.text_clean(raw[1], clean)
    cleaned = [clean[a:b].astype("<u4").tobytes().decode("utf-32-le") for a, b in zip(raw[0], raw[0][1:])]
    offset, code = code_points([unicodedata.normalize("NFKC", text) for text in cleaned])
    return order[word], start, end, piece, row[word], offset, code


def inputs(config, rows):
    """What the model takes: characters, ids of tables, word features, places of pairs."""
    _, start, _, box, row, offset, code = rows
    n, kind = len(row), np.empty(len(code), np.uint8)
    key, line = np.empty(n, np.int32), (-2 - row).astype(np.int32)
    dx.text_kinds(code, kind)
    dx.text_keys(offset, code, kind, key)
    relative, real, whole = np.empty((n, 4)), np.empty((dx.PAIR_REALS, n)), np.empty((dx.PAIR_WHOLES, n), np.int32)
    height = dx.page_geometry(box, row, line, key, relative, real, whole)
    features, ids = np.empty((n, dx.WORD_FEATURE_COUNT), np.float32), np.empty((5, n), np.int32)
    glue = (start > 0).astype(np.uint8)
    dx.word_features(offset, code, kind, box, row, line, key, glue, features, line_height=height)
    dx.positions(relative, ids[1:], size=config["position_buckets"])
    all_characters = np.empty((n, config["max_chars"]), np.int32)
    dx.character_ids(offset, code, kind, all_characters)
    characters = np.empty_like(all_characters)
    characters = characters[:dx.distinct_rows(all_characters, characters, ids[0])]
    return characters, ids, features, real, whole


def tag_logits(config, t, characters, ids, features, real, whole):
    """docs/docextract-v0.md, section 3."""
    n, d, eps = len(features), config["hidden_size"], config["layer_norm_eps"]

    def linear(x, name):
        y, weight = np.empty((len(x), len(t[f"{name}.weight"])), np.float32), t[f"{name}.weight"]
        dx.linear_forward(x, dx.PackedMatrix(weight, transpose_b=True), t[f"{name}.bias"], y)
        return y

    pooled = np.empty((len(characters), config["char_channels"]), np.float32)
    dx.char_conv_forward(t["char_emb.weight"], characters, t["char_conv.weight"], t["char_conv.bias"], pooled)
    tables = [linear(pooled, "char_proj")] + [t[f"pos_{edge}.weight"] for edge in ("x0", "y0", "x1", "y1")]
    x = linear(features, "feat_proj")
    dx.embedding_sum_forward(tables, ids, x, x)
    bias = np.empty((config["num_attention_heads"], n, n), np.float32)
    dx.pair_bias_forward(real, whole, t["pair1.weight"], t["pair1.bias"], t["pair2.weight"], t["pair2.bias"], bias)
    dx.layer_norm_forward(x, t["emb_ln.weight"], t["emb_ln.bias"], x, eps=eps)
    blocks = [[t[f"blocks.{i}.{part}.{kind}"] for part in ("ln1", "qkv", "proj", "ln2", "fc1", "fc2")
               for kind in ("weight", "bias")] for i in range(config["num_hidden_layers"])]
    dx.encoder_forward(dx.EncoderWeights(blocks, heads=config["num_attention_heads"], eps=eps), x, bias)
    dx.layer_norm_forward(x, t["final_ln.weight"], t["final_ln.bias"], x, eps=eps)
    assert x.shape == (n, d)
    return linear(x, "tag_head")


def fields(model_path, texts, boxes):
    """name → list of (text, confidence); a field without a value has the one entry (None, probability of none)."""
    config, tensors = load(model_path)
    rows = rows_of(texts, np.array(boxes, np.float64).reshape(-1, 4), config["cut"])
    if len(rows[0]) > config["max_words"]:
        raise ValueError(f"{len(rows[0])} rows: windows are dx_model's affair")
    logits = tag_logits(config, tensors, *inputs(config, rows))
    repeated = np.array([name in config["repeated"] for name in config["fields"]], np.uint8)
    tags, absent = np.empty(len(logits), np.int32), np.empty(len(repeated))
    dx.decode_tags(logits, repeated, tags)
    runs = dx.runs_of_tags(tags)
    p = np.empty(len(runs))
    dx.run_posteriors(logits, repeated, absent, runs, p)
    found = {name: [] for name in config["fields"]}
    for (k, first, last), confidence in zip(runs.tolist(), p.tolist()):
        pieces = [(int(rows[0][r]), int(rows[1][r]), int(rows[2][r])) for r in range(first, last + 1)]
        text = ""
        for i, (word, start, end) in enumerate(pieces):
            text += (" " if i and word != pieces[i - 1][0] else "") + texts[word][start:end]
        found[config["fields"][k]].append((text, confidence))
    return {name: values or [(None, float(absent[k]))] for k, (name, values) in enumerate(found.items())}


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as page_file:
        words = json.load(page_file)["words"]
    for field, values in fields(sys.argv[1], [w["text"] for w in words], [w["box"] for w in words]).items():
        for value, sure in values:
            print(f"{field}\t{sure:.4f}\t{value}")
