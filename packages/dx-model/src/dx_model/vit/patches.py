"""Which pixels a patch has: an image's patches as rows, and back."""
import numpy as np


def patches_of(image, patch_size, count):
    """Rows (count, channels P P) of image (channels, H, W): row p has the pixels (c, h P + kh, w P + kw) in the order
    (c, kh, kw), with h = p // (W // P), w = p mod (W // P), and 0 where that lies outside the image.

    ValueError when W < P: the patch grid has no columns then.
    """
    channels, height, width = image.shape
    rows, columns = grid(image.shape, patch_size, count)
    padded = np.zeros((channels, rows * patch_size, columns * patch_size), image.dtype)
    inside = min(height, rows * patch_size)
    padded[:, :inside] = image[:, :inside, :columns * patch_size]
    tiles = padded.reshape(channels, rows, patch_size, columns, patch_size).transpose(1, 3, 0, 2, 4)
    return np.ascontiguousarray(tiles.reshape(rows * columns, channels * patch_size * patch_size)[:count])


def unpatch(patches, patch_size, image_shape):
    """The adjoint of patches_of: image (channels, H, W) with every element where it was read, 0 where none was."""
    channels, height, width = image_shape
    rows, columns = grid(image_shape, patch_size, len(patches))
    whole = np.zeros((rows * columns, channels * patch_size * patch_size), patches.dtype)
    whole[:len(patches)] = patches
    tiles = whole.reshape(rows, columns, channels, patch_size, patch_size).transpose(2, 0, 3, 1, 4)
    tiles = tiles.reshape(channels, rows * patch_size, columns * patch_size)
    image = np.zeros(image_shape, patches.dtype)
    inside = min(height, rows * patch_size)
    image[:, :inside, :columns * patch_size] = tiles[:, :inside]
    return image


def grid(image_shape, patch_size, count):
    """(rows, columns) of the patch grid that holds `count` patches."""
    columns = image_shape[2] // patch_size
    if columns < 1:
        raise ValueError(f"the image is {image_shape[2]} pixels wide: expected at least patch_size = {patch_size}")
    return -(-count // columns), columns
