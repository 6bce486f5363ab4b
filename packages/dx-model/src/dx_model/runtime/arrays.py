"""Named arrays as bytes that depend on nothing but them: canonical JSON head, then the data, little-endian."""
import struct

import numpy as np

from .. import strict_json
from ..canonical_json import canonical
from ..readout.errors import require

MAGIC = b"dxarrays"
TYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")


def arrays_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Magic, the head's length (uint64), the head, the arrays one after the other by name. NaN is refused: its payload
    has no promised bits."""
    head, parts = [], []
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        require(array.dtype.name in TYPES, f"arrays.{name}.dtype", array.dtype.name, ", ".join(TYPES))
        require(array.dtype.kind != "f" or not np.isnan(array).any(), f"arrays.{name}", "NaN", "numbers")
        head.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape)})
        parts.append(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    text = canonical(head)
    return MAGIC + struct.pack("<Q", len(text)) + text + b"".join(parts)


def arrays_from_bytes(data: bytes) -> dict[str, np.ndarray]:
    """The arrays, read-only. ReadoutError for bytes that are something else."""
    require(data[:8] == MAGIC and len(data) >= 16, "arrays", data[:8], f"{MAGIC!r} first")
    at = 16 + struct.unpack("<Q", data[8:16])[0]
    require(at <= len(data), "arrays", len(data), "a whole head")
    found = {}
    for entry in strict_json.loads(data[16:at].decode("utf-8")):
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        count = 1
        for n in shape:
            count *= n
        require(at + count * dtype.itemsize <= len(data), f"arrays.{entry['name']}", len(data), "all of its bytes")
        found[entry["name"]] = np.frombuffer(data, dtype.newbyteorder("<"), count, at).reshape(shape).astype(
            dtype, copy=False)
        at += count * dtype.itemsize
    require(at == len(data), "arrays", len(data), f"{at} bytes")
    return found
