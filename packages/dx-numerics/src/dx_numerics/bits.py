"""Comparing results to the bit and against a reference: digests, distance in units in the last place, allowances.
The rules are written out in docs/numerics.md, "Digests, ulp distance and allowance"."""
import dataclasses
import math
from collections.abc import Mapping

import numpy as np

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64")
_BITS = {"float16": ("<u2", 0x7E00), "float32": ("<u4", 0x7FC00000), "float64": ("<u8", 0x7FF8000000000000)}


def canonical_bytes(array):
    """The numbers of an array in C order, little-endian, every NaN as the positive quiet NaN without payload; bytes.

    Raises    TypeError: a dtype other than bool, the integers, float16, float32, float64
    """
    array = np.asarray(array)
    name = array.dtype.name
    if name not in DTYPES:
        raise TypeError(f"array has dtype {array.dtype}: expected one of {', '.join(DTYPES)}")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    if name in _BITS:
        layout, nan = _BITS[name]
        is_nan = np.isnan(array)
        if is_nan.any():
            array = np.where(is_nan, np.array(nan, layout), array.view(layout))
    return array.tobytes()


def _sha256(data):
    import hashlib  # here: it takes longer to import than the rest of the package

    return hashlib.sha256(data)


def digest(array):
    """SHA-256 of "dx-array 1 <dtype> <shape>\\n" and the canonical bytes; 64 hexadecimal digits.

    The shape is its sizes separated by one space ("float32 2 3"; nothing for a scalar). Equal digests mean equal
    dtype, shape and bits, a NaN's sign and payload aside.
    Raises    TypeError: as canonical_bytes
    """
    array = np.asarray(array)
    data = canonical_bytes(array)
    header = " ".join(["dx-array 1", array.dtype.name, *map(str, array.shape)]) + "\n"
    return _sha256(header.encode("ascii") + data).hexdigest()


def digest_named(arrays):
    """SHA-256 of a collection of named arrays, whatever its order; 64 hexadecimal digits.

    "dx-collection 1\\n", then for each name in the order of its UTF-8 bytes: "<hex digest of the array> <length of
    the name in bytes> <name>\\n".
    Raises    TypeError: not a mapping, a name that is not a str, as digest
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(f"arrays is {type(arrays).__name__}: expected a mapping of names to arrays")
    for name in arrays:
        if not isinstance(name, str):
            raise TypeError(f"name {name!r} of arrays: expected a str")
    total = _sha256(b"dx-collection 1\n")
    for data, name in sorted((name.encode("utf-8"), name) for name in arrays):
        total.update(f"{digest(arrays[name])} {len(data)} ".encode("ascii") + data + b"\n")
    return total.hexdigest()


def _position(x):
    """Rank of each number among all of its type: neighbours differ by one, both zeros are 2^63; uint64."""
    layout = np.uint32 if x.dtype == np.float32 else np.uint64
    bits = x.view(layout).astype(np.uint64)
    sign = np.uint64(31 if layout is np.uint32 else 63)
    size = bits & ((np.uint64(1) << sign) - np.uint64(1))
    middle = np.uint64(2**63)
    return np.where(bits >> sign != 0, middle - size, middle + size)


def ulp_distance(a, b):
    """Steps from a to b through the numbers of their type, elementwise; uint64 array.

    Shapes    a, b float32, or both float64; they broadcast
    Edges     +0 and -0 → 0 · two NaN → 0 · one NaN → 2^64-1 · infinity lies one step beyond the largest number
    Raises    TypeError: dtypes differ or are others
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.dtype not in (np.float32, np.float64):
        raise TypeError(f"a and b have dtypes {a.dtype} and {b.dtype}: expected float32 twice or float64 twice")
    a, b = (np.array(x, order="C") for x in np.broadcast_arrays(a, b))
    p, q = _position(a), _position(b)
    steps = np.where(p > q, p - q, q - p)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    steps = np.where(nan_a | nan_b, np.uint64(2**64 - 1), steps)
    return np.where(nan_a & nan_b, np.uint64(0), steps)


@dataclasses.dataclass(frozen=True)
class AllowanceReport:
    """How much of the allowance atol + rtol * |reference| the errors use."""

    count: int  # elements compared
    over: int  # elements with a share above 1
    worst_share: float  # largest |actual - reference| / allowance; 0.0 when nothing was compared
    worst_index: tuple | None  # where: the first of equal ones, in C order
    actual: float
    reference: float
    error: float  # |actual - reference| there
    allowed: float  # the allowance there

    @property
    def ok(self):
        """Whether every element is within its allowance."""
        return self.over == 0

    def __str__(self):
        if self.worst_index is None:
            return "nothing compared"
        return (f"worst share {self.worst_share:.4g} at {self.worst_index}: {self.actual!r} against "
                f"{self.reference!r}, error {self.error:.4g} of {self.allowed:.4g} allowed; "
                f"{self.over} of {self.count} over")


def allowance(actual, reference, *, atol, rtol):
    """The report of `actual` against `reference` under atol + rtol * |reference|; AllowanceReport.

    Shapes    float16, float32 or float64, equal shapes; everything is computed in binary64
    Edges     equal values (infinities of one sign too), and two NaN, use nothing · a NaN or an infinity on one side
              only, and an error where nothing is allowed → share inf
    Raises    ValueError: shapes differ, atol or rtol negative or not finite · TypeError: dtype
    """
    actual, reference = np.asarray(actual), np.asarray(reference)
    for name, value in (("actual", actual), ("reference", reference)):
        if value.dtype not in (np.float16, np.float32, np.float64):
            raise TypeError(f"{name} has dtype {value.dtype}: expected float16, float32 or float64")
    if actual.shape != reference.shape:
        raise ValueError(f"actual has shape {actual.shape}: expected the shape of reference, {reference.shape}")
    atol, rtol = float(atol), float(rtol)
    for name, value in (("atol", atol), ("rtol", rtol)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} = {value}: expected a finite number >= 0")
    x, r = actual.astype(np.float64).reshape(-1), reference.astype(np.float64).reshape(-1)
    if x.size == 0:
        return AllowanceReport(0, 0, 0.0, None, math.nan, math.nan, 0.0, 0.0)
    with np.errstate(all="ignore"):
        error = np.abs(x - r)
        allowed = atol + rtol * np.abs(r)
        share = np.where(allowed > 0, error / allowed, np.inf)
    same = (x == r) | (np.isnan(x) & np.isnan(r))
    unlike = ~np.isfinite(x) | ~np.isfinite(r)
    error = np.where(same, 0.0, np.where(unlike, np.inf, error))
    share = np.where(same, 0.0, np.where(unlike, np.inf, share))
    worst = int(np.argmax(share))
    index = tuple(int(i) for i in np.unravel_index(worst, actual.shape))
    return AllowanceReport(x.size, int(np.count_nonzero(share > 1)), float(share[worst]), index, float(x[worst]),
                           float(r[worst]), float(error[worst]), float(allowed[worst]))
