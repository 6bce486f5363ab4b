"""Reference of dx_kernels.layer_norm."""
import numpy as np

from ..below import ref as numerics

f32 = np.float32


def layer_norm_forward(x, weight, bias, eps=1e-5):
    """(y, xhat, inv) for x (rows, d), weight and bias (d,) or None; float32 arrays."""
    x = np.asarray(x, f32)
    d = f32(x.shape[1])
    with np.errstate(all="ignore"):
        mean = numerics.sum16(x) / d
        centred = x - mean[:, None]
        centred = centred - (numerics.sum16(centred) / d)[:, None]
        variance = numerics.dot16(centred, centred) / d
        inv = f32(1) / np.sqrt(variance + f32(eps))
        xhat = centred * inv[:, None]
        y = xhat if weight is None else xhat * weight
        y = y if bias is None else y + bias
    return y, xhat, inv


def layer_norm_backward(dy, xhat, inv, weight):
    """(dx, dweight, dbias) for dy, xhat (rows, d), inv (rows,), weight (d,) or None; float32 arrays."""
    d = f32(dy.shape[1])
    with np.errstate(all="ignore"):
        g = dy if weight is None else dy * weight
        mean_g = numerics.sum16(g) / d
        mean_gx = numerics.dot16(g, xhat) / d
        dx = inv[:, None] * ((g - mean_g[:, None]) - xhat * mean_gx[:, None])
        dweight = numerics.sum16((dy * xhat).T)
        dbias = numerics.sum16(dy.T)
    return dx, dweight, dbias
