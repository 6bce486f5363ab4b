"""Reference of dx_kernels.encoder: the blocks of docs/docextract-v0.md from the other families' references."""
import numpy as np

from .activations import gelu_erf_backward, gelu_tanh_backward
from .attention import attention_backward, attention_forward
from .layer_norm import layer_norm_backward, layer_norm_forward
from .linear import linear_backward, linear_forward


def _parts(x):
    """q, k, v of a packed (n, 3d) array."""
    d = x.shape[1] // 3
    return x[:, :d], x[:, d:2 * d], x[:, 2 * d:]


def block_forward(w, x, heads, bias=None, mask=None, eps=1e-5, activation="gelu_tanh", causal=False):
    """(output, saved) of one block; w: its 12 arrays, mask (n,) or None; float32 arrays."""
    ln1_w, ln1_b, qkv_w, qkv_b, proj_w, proj_b, ln2_w, ln2_b, fc1_w, fc1_b, fc2_w, fc2_b = w
    a, xhat1, inv1 = layer_norm_forward(x, ln1_w, ln1_b, eps)
    qkv, _, _ = linear_forward(a, qkv_w, qkv_b)
    att, probs = attention_forward(*_parts(qkv), heads, bias, None if mask is None else np.asarray(mask)[None],
                                   causal)
    x, _, _ = linear_forward(att, proj_w, proj_b, residual=x)
    b, xhat2, inv2 = layer_norm_forward(x, ln2_w, ln2_b, eps)
    hidden, pre, t = linear_forward(b, fc1_w, fc1_b, activation)
    x, _, _ = linear_forward(hidden, fc2_w, fc2_b, residual=x)
    return x, (a, xhat1, inv1, qkv, probs, att, b, xhat2, inv2, hidden, pre, t)


def encoder_forward(blocks, x, heads, bias=None, mask=None, eps=1e-5, activation="gelu_tanh", causal=False):
    """(output, saved for each block) of a stack."""
    saved = []
    for w in blocks:
        x, kept = block_forward(w, x, heads, bias, mask, eps, activation, causal)
        saved.append(kept)
    return x, saved


def block_backward(w, kept, dx, activation="gelu_tanh"):
    """(dx of the input, the 12 weight gradients, dbias) of one block."""
    a, xhat1, inv1, qkv, probs, att, b, xhat2, inv2, hidden, pre, t = kept
    dhidden, dfc2_w, dfc2_b = linear_backward(dx, hidden, w[10])
    dpre = gelu_tanh_backward(dhidden, pre, t) if activation == "gelu_tanh" else gelu_erf_backward(dhidden, pre)
    db, dfc1_w, dfc1_b = linear_backward(dpre, b, w[8])
    dnorm, dln2_w, dln2_b = layer_norm_backward(db, xhat2, inv2, w[6])
    dx = dx + dnorm
    datt, dproj_w, dproj_b = linear_backward(dx, att, w[4])
    dq, dk, dv, dbias = attention_backward(datt, *_parts(qkv), probs)
    da, dqkv_w, dqkv_b = linear_backward(np.concatenate([dq, dk, dv], axis=1), a, w[2])
    dnorm, dln1_w, dln1_b = layer_norm_backward(da, xhat1, inv1, w[0])
    grads = (dln1_w, dln1_b, dqkv_w, dqkv_b, dproj_w, dproj_b, dln2_w, dln2_b, dfc1_w, dfc1_b, dfc2_w, dfc2_b)
    return dx + dnorm, grads, dbias


def encoder_backward(blocks, saved, dx, activation="gelu_tanh"):
    """(dx of the input, grads for each block, dbias added from the last block to the first) of a stack."""
    grads, dbias = [None] * len(blocks), None
    for i in reversed(range(len(blocks))):
        dx, grads[i], here = block_backward(blocks[i], saved[i], dx, activation)
        dbias = here if dbias is None else dbias + here
    return dx, grads, dbias
