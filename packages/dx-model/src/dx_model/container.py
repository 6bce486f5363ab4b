"""The model file: safetensors with exactly one metadata key, `dx`, whose value is canonical JSON.

    {"config": {...}, "format": 1, "kind": "docextract", "numerics_version": n, "tensors": [names in model order]}

One key makes the bytes independent of hash order. Nothing in the file tells a time, host, path, thread count or kernel
path: equal models give equal files. Reading never executes anything and trusts nothing: the header is checked against
the file's size before a byte of it is believed.
"""
import hashlib
import struct
from pathlib import Path

import numpy as np

from . import strict_json
from .canonical_json import canonical
from .below import NUMERICS_VERSION
from .files import write_atomic

FORMAT = 1
MAX_HEADER = 16 * 1024 * 1024
PARTS = {"format", "kind", "config", "tensors", "numerics_version"}


class ModelFileError(ValueError):
    """A model file that cannot be used; the message names the file and what is wrong with it."""


def write_container(path, kind: str, config: dict, tensors: dict[str, np.ndarray]) -> str:
    """Writes the tensors (in the given order) and the config; returns the file's SHA-256 (hex). Atomic."""
    from safetensors.numpy import save

    for name, array in tensors.items():
        if array.dtype != np.float32:
            raise ValueError(f"tensor {name} has type {array.dtype}: expected float32")
        if not np.isfinite(array).all():
            raise ValueError(f"tensor {name} holds a value that is not finite")
    head = {"config": config, "format": FORMAT, "kind": kind, "numerics_version": NUMERICS_VERSION,
            "tensors": list(tensors)}
    data = save({name: np.ascontiguousarray(array) for name, array in tensors.items()},
                metadata={"dx": canonical(head).decode()})
    write_atomic(path, data)
    return hashlib.sha256(data).hexdigest()


def file_digest(path) -> str:
    """SHA-256 (hex) of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_header(path: Path) -> tuple[dict, int, int]:
    """(header, offset of the data, file size), everything checked that does not need the data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        prefix = file.read(8)
        if len(prefix) < 8:
            raise ModelFileError(f"{path}: {size} bytes are too few for a model file")
        length = struct.unpack("<Q", prefix)[0]
        if length > MAX_HEADER or 8 + length > size:
            raise ModelFileError(f"{path}: the header claims {length} bytes of a file of {size}: cut short, or not a "
                                 "safetensors file")  # before anything of the claimed size is read
        try:
            header = strict_json.loads(file.read(length).decode("utf-8"))
        except ValueError as error:
            raise ModelFileError(f"{path}: bad header: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{path}: the header is not an object")
    return header, 8 + length, size


def _check_layout(path: Path, header: dict, start: int, size: int) -> dict[str, tuple[tuple[int, ...], int, int]]:
    """name → (shape, begin, end) with absolute offsets; the tensors must cover the data exactly, without overlap."""
    spans = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [begin, end, *shape]
            extra = set(entry) - {"dtype", "shape", "data_offsets"}
        except (TypeError, KeyError, ValueError):
            raise ModelFileError(f"{path}: tensor {name} has a malformed entry") from None
        if extra or len(shape) > 8 or any(type(v) is not int or not 0 <= v <= size for v in numbers):
            raise ModelFileError(f"{path}: tensor {name} has a malformed entry")
        if dtype != "F32":
            raise ModelFileError(f"{path}: tensor {name} has type {dtype}: expected F32")
        count = 1
        for n in shape:
            count *= n
        if end - begin != 4 * count or start + end > size:
            raise ModelFileError(f"{path}: tensor {name} of shape {tuple(shape)} at bytes {begin} to {end} does not "
                                 f"fit a file of {size} bytes: cut short?")
        spans[name] = (tuple(shape), start + begin, start + end)
    at = start
    for name, (_, begin, end) in sorted(spans.items(), key=lambda item: item[1][1:]):
        if begin != at:
            raise ModelFileError(f"{path}: tensor {name} begins at byte {begin}: expected {at} (no gap, no overlap)")
        at = end
    if at != size:
        raise ModelFileError(f"{path}: {size - at} bytes follow the last tensor")
    return spans


def read_container(path, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """(config, tensors in model order) of a model file of the given kind; tensors are read-only memory maps where the
    data is aligned, copies otherwise.

    Raises ModelFileError for a file that is truncated, foreign, newer, or whose tensors are extra, missing,
    misplaced or not finite; OSError when it cannot be read.
    """
    path = Path(path)
    header, start, size = _read_header(path)
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or set(metadata) != {"dx"} or not isinstance(metadata["dx"], str):
        raise ModelFileError(f"{path}: not a dx model file (its metadata must have the one key dx)")
    try:
        head = strict_json.loads(metadata["dx"])
    except ValueError as error:
        raise ModelFileError(f"{path}: bad dx metadata: {error}") from None
    if not isinstance(head, dict) or not PARTS <= set(head):
        raise ModelFileError(f"{path}: the dx metadata lacks a part of {', '.join(sorted(PARTS))}")
    if type(head["format"]) is not int or head["format"] != FORMAT:
        raise ModelFileError(f"{path}: format {head['format']!r}: this version reads {FORMAT}; update dx")
    if set(head) != PARTS:
        raise ModelFileError(f"{path}: the dx metadata has an unknown part {sorted(set(head) - PARTS)[0]!r}")
    version = head["numerics_version"]
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path}: numerics_version is {version!r}: expected a whole number above 0")
    if version > NUMERICS_VERSION:
        raise ModelFileError(f"{path}: numerics version {version}: this version computes {NUMERICS_VERSION}; update dx")
    if head["kind"] != kind:
        raise ModelFileError(f"{path}: holds a {head['kind']!r} model: expected {kind!r}")
    if not isinstance(head["config"], dict):
        raise ModelFileError(f"{path}: the config is not an object")
    spans = _check_layout(path, header, start, size)
    names = head["tensors"]
    if not isinstance(names, list) or any(not isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise ModelFileError(f"{path}: the list of tensors is malformed")
    for name in names:
        if name not in spans:
            raise ModelFileError(f"{path}: tensor {name} is missing")
    for name in sorted(spans.keys() - names):
        raise ModelFileError(f"{path}: tensor {name} is not in the file's list of tensors")
    data = np.memmap(path, np.uint8, "r")
    tensors = {}
    for name in names:
        shape, begin, end = spans[name]
        raw = data[begin:end]
        if begin % 4:  # no writer of ours does that, others did
            raw = raw.copy()
        array = raw.view("<f4").reshape(shape)
        if not np.isfinite(array).all():
            raise ModelFileError(f"{path}: tensor {name} holds a value that is not finite")
        tensors[name] = array
    return head["config"], tensors
