"""A vision transformer in PyTorch, written from its formulas with timm's names: the oracle for parity and the peer of
the benchmarks. Any dtype; images come in batches."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class PatchEmbed(nn.Module):
    def __init__(self, channels, d, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, d, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, d, heads, fast):
        super().__init__()
        self.heads, self.fast = heads, fast
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if self.fast:
            a = F.scaled_dot_product_attention(q, k, v)
        else:
            a = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(d // self.heads), -1) @ v
        return self.proj(a.transpose(1, 2).reshape(b, n, d))


class Mlp(nn.Module):
    def __init__(self, d, inner, act):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d, inner), nn.Linear(inner, d)
        self.approximate = "tanh" if act == "gelu_tanh" else "none"

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.approximate))


class Block(nn.Module):
    def __init__(self, c, fast):
        super().__init__()
        d, eps = c.hidden_size, c.layer_norm_eps
        self.norm1, self.norm2 = nn.LayerNorm(d, eps=eps), nn.LayerNorm(d, eps=eps)
        self.attn, self.mlp = Attention(d, c.num_attention_heads, fast), Mlp(d, c.intermediate_size, c.hidden_act)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Twin(nn.Module):
    """config: a ViTConfig whose patches lie wholly in the image. fast: scaled_dot_product_attention."""

    def __init__(self, config, fast=False):
        super().__init__()
        c, d = config, config.hidden_size
        self.patch_embed = PatchEmbed(c.num_channels, d, c.patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d))
        self.pos_embed = nn.Parameter(torch.zeros(1, c.num_patches + 1, d))
        self.blocks = nn.Sequential(*(Block(c, fast) for _ in range(c.num_hidden_layers)))
        self.norm, self.head = nn.LayerNorm(d, eps=c.layer_norm_eps), nn.Linear(d, c.num_classes)

    def load(self, tensors):
        """Takes tensors by timm's names (dx_model.vit.to_checkpoint); returns itself."""
        self.load_state_dict({name: torch.from_numpy(array) for name, array in tensors.items()})
        return self

    def forward(self, images):
        x = self.patch_embed(images)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])
