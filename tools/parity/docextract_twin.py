"""docextract in PyTorch, written from its formulas: the oracle for parity fixtures and the peer of the benchmarks.

Takes the same arrays as dx and the container's tensors by name; any dtype. One page a call.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d, heads, inner, eps):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d, eps=eps), nn.LayerNorm(d, eps=eps)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, inner), nn.Linear(inner, d)

    def forward(self, x, bias, keep):
        n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(n, 3, self.heads, d // self.heads).permute(1, 2, 0, 3)
        p = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d // self.heads) + bias, -1)
        x = x + self.proj((p @ v).permute(1, 0, 2).reshape(n, d))
        keep("attention", x)
        x = x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))
        keep("block", x)
        return x


class FastBlock(Block):
    """The same block through scaled_dot_product_attention: the faster form of the peer."""

    def forward(self, x, bias, keep):
        n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(n, 3, self.heads, d // self.heads).permute(1, 2, 0, 3)
        a = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias[None])[0]
        x = x + self.proj(a.permute(1, 0, 2).reshape(n, d))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class Twin(nn.Module):
    """config: a DocExtractConfig. forward(page) takes a dict of tensors:
    chars (U, L) int64, inverse (n,) int64, features (n, F), positions (n, 4) int64, pairs (P, n, n)."""

    def __init__(self, config, block=Block):
        super().__init__()
        c, d = config, config.hidden_size
        self.config = config
        self.char_emb = nn.Embedding(c.char_vocab, c.char_dim, padding_idx=0)
        self.char_conv = nn.Conv1d(c.char_dim, c.char_channels, 3, padding=1)
        self.char_proj = nn.Linear(c.char_channels, d)
        self.pos_x0, self.pos_y0, self.pos_x1, self.pos_y1 = (nn.Embedding(c.position_buckets, d) for _ in range(4))
        self.feat_proj = nn.Linear(c.word_features, d)
        self.emb_ln = nn.LayerNorm(d, eps=c.layer_norm_eps)
        self.blocks = nn.ModuleList(block(d, c.num_attention_heads, c.intermediate_size, c.layer_norm_eps)
                                    for _ in range(c.num_hidden_layers))
        self.pair1 = nn.Linear(c.pair_features, c.pair_hidden)
        self.pair2 = nn.Linear(c.pair_hidden, c.num_attention_heads)
        self.final_ln = nn.LayerNorm(d, eps=c.layer_norm_eps)
        self.tag_head, self.role_head = nn.Linear(d, c.num_tags), nn.Linear(d, c.num_role_tags)
        self.doc_head = nn.Linear(d, c.num_doc_types)
        self.rel_q, self.rel_k = nn.Linear(d, 2 * c.relation_size), nn.Linear(d, 2 * c.relation_size)

    def load(self, tensors):
        """tensors: name → numpy array in container layout."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(torch.from_numpy(tensors[name]).to(parameter.dtype))
        return self

    def forward(self, page, keep=lambda name, x: None):
        c = self.config
        chars = page["chars"]
        e = torch.relu(self.char_conv(self.char_emb(chars).transpose(1, 2)))
        e = (e * (chars != 0).unsqueeze(1)).amax(-1)
        keep("char_pool", e)
        x = self.char_proj(e)[page["inverse"]] + self.feat_proj(page["features"])
        for i, table in enumerate((self.pos_x0, self.pos_y0, self.pos_x1, self.pos_y1)):
            x = x + table(page["positions"][:, i])
        x = self.emb_ln(x)
        keep("emb_ln", x)
        pairs = page["pairs"]
        n = pairs.shape[-1]
        flat = pairs.reshape(c.pair_features, n * n)
        hidden = torch.relu(self.pair1.weight @ flat + self.pair1.bias[:, None])
        bias = (self.pair2.weight @ hidden + self.pair2.bias[:, None]).reshape(-1, n, n)
        keep("pair_bias", bias)
        for block in self.blocks:
            x = block(x, bias, keep)
        h = self.final_ln(x)
        keep("final_ln", h)
        q, k = self.rel_q(h), self.rel_k(h)
        r, scale = c.relation_size, math.sqrt(c.relation_size)
        return {"tag": self.tag_head(h), "role": self.role_head(h), "doc": self.doc_head(h.mean(0)),
                "item": q[:, :r] @ k[:, :r].T / scale, "key_value": q[:, r:] @ k[:, r:].T / scale}


def loss(out, targets, weights, tag_weights):
    """Weighted sum of the seed's five terms; targets: name → int64 (n,) or () for doc, −1 ignored."""
    total, terms = 0.0, {}
    for name, weight in weights.items():
        target = targets[name]
        logits = out[name]
        if name == "doc":
            logits, target = logits[None], target[None]
        if weight == 0 or not bool((target >= 0).any()):
            continue
        w = tag_weights.to(logits.dtype) if name == "tag" else None
        terms[name] = F.cross_entropy(logits, target, weight=w, ignore_index=-1)
        total = total + weight * terms[name]
    return total, terms
