"""Reference of dx_kernels.post_encoder: BERT's blocks from the other families' references."""
import numpy as np

from .activations import gelu_erf_backward, gelu_tanh_backward
from .attention import attention_backward, attention_forward
from .layer_norm import layer_norm_backward, layer_norm_forward
from .linear import linear_backward, linear_forward


def _parts(x):
    """q, k, v of a packed (n, 3d) array."""
    d = x.shape[1] // 3
    return x[:, :d], x[:, d:2 * d], x[:, 2 * d:]


def block_forward(w, x, heads, eps=1e-12, activation="gelu_erf"):
    """(output, saved) of one block over one sequence; w: its 12 arrays; float32 arrays."""
    ln1_w, ln1_b, qkv_w, qkv_b, proj_w, proj_b, ln2_w, ln2_b, fc1_w, fc1_b, fc2_w, fc2_b = w
    qkv, _, _ = linear_forward(x, qkv_w, qkv_b)
    att, probs = attention_forward(*_parts(qkv), heads)
    total, _, _ = linear_forward(att, proj_w, proj_b, residual=x)
    a, xhat1, inv1 = layer_norm_forward(total, ln1_w, ln1_b, eps)
    hidden, pre, t = linear_forward(a, fc1_w, fc1_b, activation)
    total, _, _ = linear_forward(hidden, fc2_w, fc2_b, residual=a)
    y, xhat2, inv2 = layer_norm_forward(total, ln2_w, ln2_b, eps)
    return y, (x, qkv, probs, att, a, xhat1, inv1, hidden, pre, t, xhat2, inv2)


def post_encoder_forward(blocks, x, heads, starts=None, eps=1e-12, activation="gelu_erf"):
    """(output, saved for each block of the last sequence) of a stack over the sequences, one after the other."""
    out, saved = np.empty_like(x), []
    borders = [0, len(x)] if starts is None else list(starts)
    for first, end in zip(borders, borders[1:]):
        y, saved = x[first:end], []
        for w in blocks:
            y, kept = block_forward(w, y, heads, eps, activation)
            saved.append(kept)
        out[first:end] = y
    return out, saved


def block_backward(w, kept, dy, activation="gelu_erf"):
    """(dx of the input, the 12 weight gradients) of one block."""
    x, qkv, probs, att, a, xhat1, inv1, hidden, pre, t, xhat2, inv2 = kept
    dtotal, dln2_w, dln2_b = layer_norm_backward(dy, xhat2, inv2, w[6])
    dhidden, dfc2_w, dfc2_b = linear_backward(dtotal, hidden, w[10])
    dpre = gelu_tanh_backward(dhidden, pre, t) if activation == "gelu_tanh" else gelu_erf_backward(dhidden, pre)
    da, dfc1_w, dfc1_b = linear_backward(dpre, a, w[8])
    dtotal, dln1_w, dln1_b = layer_norm_backward(dtotal + da, xhat1, inv1, w[0])
    datt, dproj_w, dproj_b = linear_backward(dtotal, att, w[4])
    dq, dk, dv, _ = attention_backward(datt, *_parts(qkv), probs)
    dx, dqkv_w, dqkv_b = linear_backward(np.concatenate([dq, dk, dv], axis=1), x, w[2])
    grads = (dln1_w, dln1_b, dqkv_w, dqkv_b, dproj_w, dproj_b, dln2_w, dln2_b, dfc1_w, dfc1_b, dfc2_w, dfc2_b)
    return dtotal + dx, grads


def post_encoder_backward(blocks, saved, dx, activation="gelu_erf"):
    """(dx of the input, grads for each block) of a stack over one sequence."""
    grads = [None] * len(blocks)
    for i in reversed(range(len(blocks))):
        dx, grads[i] = block_backward(blocks[i], saved[i], dx, activation)
    return dx, grads
