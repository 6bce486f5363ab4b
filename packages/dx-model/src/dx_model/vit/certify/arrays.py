"""The primitives that numpy arrays have by themselves, for tables whose elements numpy can add and multiply exactly."""
import numpy as np

from ..ops import Operations
from ..patches import patches_of, unpatch


class Arrays(Operations):
    """Rearrangements and elementwise + - * on numpy arrays; the exact tables' identities for rounding's primitives."""

    def shape(self, x):
        return x.shape

    def rearrange(self, x, f):
        return f(x)

    def concatenate(self, parts):
        return np.concatenate(parts)

    def patches(self, image):
        count = self.shape(self.parameter("pos"))[0] - 1
        return self.rearrange(image, lambda a: patches_of(a, self.config.patch_size, count))

    def unpatch(self, patches, image_shape):
        return self.rearrange(patches, lambda a: unpatch(a, self.config.patch_size, image_shape))

    def below_zeros(self, row, rows):
        return self.rearrange(row, lambda a: np.concatenate([a, np.zeros((rows - 1, a.shape[1]), a.dtype)]))

    def add(self, a, b):
        return a + b

    def sub(self, a, b):
        return a - b

    def mul(self, a, b):
        return a * b

    def row_dot(self, a, b):
        return self.row_sum(self.mul(a, b))

    def column_sum(self, x):
        return self.row_sum(self.rearrange(x, lambda a: np.ascontiguousarray(a.T)))

    def shifted(self, x):
        return x

    def normal(self, x):
        return x

    def where_not_zero(self, s, x):
        return x
