"""Reference of dx_kernels.matmul."""
import numpy as np

from ..below import ref as numerics


def matmul(a, b, transpose_a=False, transpose_b=False):
    """a @ b for (m, k) and (k, n), or both with a leading axis: element (i, j) is dot16(a[i], b[:, j]); float32."""
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = b if transpose_b else np.swapaxes(b, -1, -2)
    return numerics.dot16(a[..., :, None, :], b[..., None, :, :])
