"""Reference of dx_kernels.bfloat16."""
import numpy as np

from .matmul import matmul
from .patch import patch_rows

f32 = np.float32


def round_bfloat16(x):
    """x to the nearest bfloat16 value, ties to even, as float32; NaN stays NaN."""
    x = np.asarray(x, f32)
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), x, rounded.view(f32))


def linear_weight_gradient_bfloat16(dy, x):
    """(out, in) for dy (batch, rows, out), x (batch, rows, in), batch >= 1."""
    total = None
    with np.errstate(all="ignore"):
        for one_dy, one_x in zip(dy, x, strict=True):
            part = matmul(round_bfloat16(one_dy), round_bfloat16(one_x), transpose_a=True)
            total = part if total is None else total + part
    return total


def patch_weight_gradient_bfloat16(dy, images, patch):
    """(d, channels, patch, patch) for dy (batch, patches + 1, d), images (batch, channels, height, width), not none."""
    rows = np.stack([patch_rows(image, dy.shape[1] - 1, patch) for image in images])
    total = round_bfloat16(linear_weight_gradient_bfloat16(dy[:, 1:], rows))
    return total.reshape(dy.shape[2], images.shape[1], patch, patch)
