"""Fields of a page with dx_kernels, numpy and safetensors alone: words, boxes and a docextract model file.

    python kernels_only.py model.safetensors page.json

page.json: {"words": [{"text": "Total", "box": [x0, y0, x1, y1]}, …]}, upright; a word's "line" may be there too.
Prints one line a field: its name, confidence, text. The bits are those of dx_model.extract_page, which also does turned
pages, the order of the file, checks and repairs, alternatives, relations (docs/docextract-v0.md).
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


def rows_of(texts, box, line, config):
    """Pieces of words in reading order: (word, start, end, box, row, line, offset, code) with an entry a piece."""
    order, row = dx.page_order(box, line, *code_points(texts), columns=config["columns"])
    texts, box = [texts[i] for i in order], box[order]
    offset, code = code_points(texts)
    kind, mark = np.empty(len(code), np.uint8), np.zeros(len(code), np.uint8)
    dx.text_kinds(code, kind)
    if config["cut"]:
        dx.text_cuts(offset, code, kind, mark)
    pieces = []
    for i, text in enumerate(texts):
        cuts = np.flatnonzero(mark[offset[i]:offset[i + 1]]).tolist()
        pieces += [(i, a, b) for a, b in zip([0, *cuts], [*cuts, len(text)])]
    word, start, end = np.array(pieces, np.int64).reshape(-1, 3).T
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
    line, row = line[order[word]], row[word]
    return order[word], start, end, piece, row, np.where(line < 0, -2 - row, line), offset, code


def inputs(config, rows):
    """What the model takes: characters, ids of tables, word features, places of pairs."""
    _, start, _, box, row, line, offset, code = rows
    n, kind, key = len(row), np.empty(len(code), np.uint8), np.empty(len(row), np.int32)
    dx.text_kinds(code, kind)
    dx.text_keys(offset, code, kind, key)
    relative, real, whole = np.empty((n, 4)), np.empty((dx.PAIR_REALS, n)), np.empty((dx.PAIR_WHOLES, n), np.int32)
    height = dx.page_geometry(box, row, line, key, relative, real, whole)
    features, ids = np.empty((n, dx.WORD_FEATURE_COUNT), np.float32), np.empty((5, n), np.int32)
    dx.word_features(offset, code, kind, box, row, line, key, (start > 0).view(np.uint8), features, line_height=height)
    dx.positions(relative, ids[1:], size=config["position_buckets"])
    all_characters = np.empty((n, config["max_chars"]), np.int32)
    dx.character_ids(offset, code, kind, all_characters)
    return all_characters, ids, features, real, whole


def page_logits(config, tensors, all_characters, ids, features, real, whole):
    """Tag logits, each row from the window in which it is farthest from a cut (docs/docextract-v0.md, section 5)."""
    n, most = len(features), config["max_words"]
    count = 1 if n <= most else -(-(n - most // 4) // (most - most // 4))
    best, logits = np.full(n, -1), np.empty((n, 1 + 2 * len(config["fields"])), np.float32)
    for begin in [k * (n - most) // max(count - 1, 1) for k in range(count)]:
        end = min(begin + most, n)
        own, at = slice(begin, end), np.arange(begin, end)
        characters, own_ids = np.empty_like(all_characters[own]), ids[:, own].copy()
        characters = characters[:dx.distinct_rows(all_characters[own], characters, own_ids[0])]
        z = tag_logits(config, tensors, characters, own_ids, features[own], real[:, own].copy(), whole[:, own].copy())
        far = np.minimum(np.where(begin > 0, at - begin, n), np.where(end < n, end - 1 - at, n))
        better = far > best[own]
        best[own][better], logits[own][better] = far[better], z[better]
    return logits


def tag_logits(config, t, characters, ids, features, real, whole):
    """docs/docextract-v0.md, section 3."""
    n, eps = len(features), config["layer_norm_eps"]

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
    return linear(x, "tag_head")


def fields(model_path, texts, boxes, lines=None):
    """name → list of (text, confidence); a field without a value has the one entry (None, probability of none)."""
    config, tensors = load(model_path)
    if config["keep_file_order"]:
        raise ValueError(f"{model_path}: reads words in the order of the file, which this example does not")
    line = np.full(len(texts), -1, np.int32) if lines is None else np.array(lines, np.int32)
    rows = rows_of(texts, np.array(boxes, np.float64).reshape(-1, 4), line, config)
    logits = page_logits(config, tensors, *inputs(config, rows))
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
        page = json.load(page_file)
    if page.get("rotation"):
        raise SystemExit("the page is turned, which this example does not read")
    own = [[word.get(key, -1) for word in page["words"]] for key in ("text", "box", "line")]
    for field, values in fields(sys.argv[1], *own).items():
        print(*(f"{field}\t{sure:.4f}\t{value}" for value, sure in values), sep="\n")
