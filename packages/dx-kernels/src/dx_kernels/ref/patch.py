"""Reference of dx_kernels.patch."""
import numpy as np

from .linear import linear_backward, linear_forward

f32 = np.float32


def patch_rows(image, patches, patch):
    """(patches, channels * patch * patch) pixels that each patch reads; float32 array."""
    channels, height, width = image.shape
    across = width // patch
    rows = np.zeros((patches, channels, patch, patch), f32)
    for p in range(patches):
        top, left = p // across * patch, p % across * patch
        inside = max(0, min(patch, height - top))
        rows[p, :, :inside] = image[:, top:top + inside, left:left + patch]
    return rows.reshape(patches, channels * patch * patch)


def patch_embed_forward(image, weight, bias, cls, position):
    """(patches + 1, d) embedding of image (channels, height, width), weight (d, channels, patch, patch)."""
    rows = patch_rows(image, len(position) - 1, weight.shape[2])
    y, _, _ = linear_forward(rows, weight.reshape(len(weight), -1), bias, residual=position[1:])
    with np.errstate(all="ignore"):
        return np.concatenate([(cls + position[0])[None], y])


def patch_embed_backward(dy, image, weight):
    """(dimage, dweight, dbias, dcls, dposition) of one image."""
    channels, height, width = image.shape
    patch, across, patches = weight.shape[2], width // weight.shape[2], len(dy) - 1
    drows, dweight, dbias = linear_backward(dy[1:], patch_rows(image, patches, patch), weight.reshape(len(weight), -1))
    dimage, drows = np.zeros(image.shape, f32), drows.reshape(patches, channels, patch, patch)
    for p in range(patches):
        top, left = p // across * patch, p % across * patch
        inside = max(0, min(patch, height - top))
        dimage[:, top:top + inside, left:left + patch] = drows[p, :, :inside]
    return dimage, dweight.reshape(weight.shape), dbias, dy[0].copy(), dy.copy()
