"""Memory that a forward or backward pass uses again and again."""
import threading

import numpy as np


class Workspace:
    """Named buffers that grow to the largest size asked for and are handed out again at the next call.

    One workspace serves one pass at a time. `nbytes` is what it holds.
    """

    def __init__(self):
        self._buffers: dict[str, np.ndarray] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype=np.float32) -> np.ndarray:
        """A C-contiguous array of the given shape; its contents are whatever was there."""
        size = 1
        for n in shape:
            size *= n
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(max(size, 1), dtype)
        return buffer[:size].reshape(shape)

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._buffers.values())  # exact: whole numbers


_local = threading.local()


def own_workspace() -> Workspace:
    """The calling thread's workspace for inference."""
    if not hasattr(_local, "workspace"):
        _local.workspace = Workspace()
    return _local.workspace
