"""Reference of dx_kernels.char_conv."""
import numpy as np

from ..below import ref as numerics
from .activations import relu_backward, relu_forward
from .embedding import embedding_backward, embedding_forward

f32 = np.float32


def _windows(rows, taps, before):
    """(positions, taps * width): for every position the rows position - before … position - before + taps - 1."""
    n, width = rows.shape
    padded = np.concatenate([np.zeros((before, width), f32), rows, np.zeros((taps - 1 - before, width), f32)])
    return np.stack([padded[p:p + taps].reshape(-1) for p in range(n)]) if n else np.zeros((0, taps * width), f32)


def _first_maximum(values):
    """(value, index): the first of equal maxima, the first NaN if there is one."""
    best = 0
    for i, v in enumerate(values):
        if v > values[best] or (np.isnan(v) and not np.isnan(values[best])):
            best = i
    return values[best], best


def char_conv_forward(table, ids, weight, bias=None):
    """(y, argmax): float32 (words, out) and int32 (words, out)."""
    out, taps, channels = weight.shape
    y, argmax = np.zeros((len(ids), out), f32), np.full((len(ids), out), -1, np.int32)
    for w, word in enumerate(ids):
        valid = np.flatnonzero(word)
        windows = _windows(embedding_forward(table, word, 0), taps, (taps - 1) // 2)[valid]
        for o in range(out if len(valid) else 0):
            z = numerics.dot16(windows, weight[o].reshape(-1))
            with np.errstate(all="ignore"):
                y[w, o], best = _first_maximum(relu_forward(z if bias is None else z + bias[o]))
            argmax[w, o] = valid[best]
    return y, argmax


def char_conv_backward(dy, y, argmax, table, ids, weight):
    """(dtable, dweight, dbias)."""
    words, length = ids.shape
    out, taps, channels = weight.shape
    left = (taps - 1) // 2
    dz = np.where(argmax < 0, f32(0), relu_backward(dy, y))
    windows = np.zeros((words, out, taps * channels), f32)
    drows = np.zeros((words, length, channels), f32)
    flipped = weight[:, ::-1].transpose(2, 1, 0).reshape(channels, taps * out)
    for w, word in enumerate(ids):
        at = _windows(embedding_forward(table, word, 0), taps, left)
        z = np.zeros((length, out), f32)
        for o in np.flatnonzero(argmax[w] >= 0):
            windows[w, o] = at[argmax[w, o]]
            z[argmax[w, o], o] = dz[w, o]
        around = _windows(z, taps, taps - 1 - left)
        drows[w] = numerics.dot16(around[:, None], flipped[None])
    dweight = numerics.dot16(dz.T[:, None], windows.transpose(1, 2, 0)).reshape(weight.shape)
    dtable = embedding_backward(drows.reshape(-1, channels), ids.reshape(-1), len(table), 0)
    return dtable, dweight, numerics.sum16(dz.T)
