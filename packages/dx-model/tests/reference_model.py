"""docextract as a page of numpy in binary64, written from docs/docextract-v0.md: the oracle for central differences.

weights: name → array (container layout). page: chars, inverse, features, positions, pairs. No bit of it is promised.
"""
import numpy as np

LOSSES = ("tag", "role", "doc", "item", "key_value")


def layer_norm(x, w, b, eps):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + eps) * w + b


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def forward(config, weights, page):
    """Logits by head: tag (n, 1+2C), role, doc (T,), item (n, n), key_value (n, n)."""
    w = {name: np.asarray(value, np.float64) for name, value in weights.items()}

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        return layer_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], config.layer_norm_eps)

    chars = page["chars"]
    emb = w["char_emb.weight"][chars]
    padded = np.pad(emb, ((0, 0), (1, 1), (0, 0)))
    conv = w["char_conv.bias"] + sum(padded[:, tap:tap + chars.shape[1]] @ w["char_conv.weight"][:, :, tap].T
                                     for tap in range(3))
    pooled = np.where((chars != 0)[:, :, None], np.maximum(conv, 0), 0).max(1)
    x = linear(pooled, "char_proj")[page["inverse"]] + linear(page["features"], "feat_proj")
    for column, name in enumerate(("pos_x0", "pos_y0", "pos_x1", "pos_y1")):
        x = x + w[f"{name}.weight"][page["positions"][:, column]]
    x = norm(x, "emb_ln")
    pairs = np.moveaxis(page["pairs"].astype(np.float64), 0, -1)
    bias = np.moveaxis(linear(np.maximum(linear(pairs, "pair1"), 0), "pair2"), -1, 0)
    n, heads, size = len(x), config.num_attention_heads, config.head_size
    for i in range(config.num_hidden_layers):
        qkv = linear(norm(x, f"blocks.{i}.ln1"), f"blocks.{i}.qkv")
        q, k, v = qkv.reshape(n, 3, heads, size).transpose(1, 2, 0, 3)
        p = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(size) + bias)
        x = x + linear((p @ v).transpose(1, 0, 2).reshape(n, -1), f"blocks.{i}.proj")
        x = x + linear(gelu(linear(norm(x, f"blocks.{i}.ln2"), f"blocks.{i}.fc1")), f"blocks.{i}.fc2")
    h = norm(x, "final_ln")
    q, k, r = linear(h, "rel_q"), linear(h, "rel_k"), config.relation_size
    return {"tag": linear(h, "tag_head"), "role": linear(h, "role_head"), "doc": linear(h.mean(0), "doc_head"),
            "item": q[:, :r] @ k[:, :r].T / np.sqrt(r), "key_value": q[:, r:] @ k[:, r:].T / np.sqrt(r)}


def cross_entropy(logits, targets, weight=None):
    logits, targets = np.atleast_2d(logits), np.atleast_1d(targets)
    kept = targets >= 0
    if not kept.any():
        return 0.0
    log_p = logits - logits.max(-1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    t = targets[kept]
    w = np.ones(len(t)) if weight is None else np.asarray(weight, np.float64)[t]
    return float((w * -log_p[kept, t]).sum() / w.sum())


def loss(config, weights, page, targets, loss_weights, field_weight=3.0):
    """Weighted sum of the loss terms."""
    out = forward(config, weights, page)
    tag_weight = np.full(config.num_tags, field_weight)
    tag_weight[0] = 1
    return sum(loss_weights[name] * cross_entropy(out[name], targets[name], tag_weight if name == "tag" else None)
               for name in LOSSES if loss_weights.get(name))
