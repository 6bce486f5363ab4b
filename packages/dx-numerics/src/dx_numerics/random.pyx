"""Random numbers: SplitMix64 streams by counter, bounded integers, permutations, uniform and normal numbers, streams by
name (dx_numerics/random.h). Value k of a stream depends on (seed, k) alone: nothing here has a hidden state, so the
same numbers come out in any order, batch, process or language."""
import numpy as np

from dx_numerics._core cimport fp_enter, fp_leave, table_current

cdef extern from "dx_numerics/random.h" nogil:
    unsigned long long dx_random_at(unsigned long long seed, unsigned long long k)
    unsigned long long dx_random_next(unsigned long long *state)
    unsigned long long dx_random_below(unsigned long long *state, unsigned long long n)
    float dx_uniform24(unsigned long long x)
    double dx_uniform53(unsigned long long x)
    void dx_permutation(unsigned long long seed, Py_ssize_t n, long long *out)
    unsigned long long dx_substream(unsigned long long seed, const char *name, Py_ssize_t length)

cdef extern from "table.h" nogil:
    ctypedef unsigned long long uint64_t
    ctypedef struct random_table "dx_numerics_table":
        void (*random_u64)(Py_ssize_t n, uint64_t seed, uint64_t first, uint64_t *out) noexcept nogil
        void (*random_uniform24)(Py_ssize_t n, uint64_t seed, uint64_t first, float *out) noexcept nogil
        void (*random_uniform53)(Py_ssize_t n, uint64_t seed, uint64_t first, double *out) noexcept nogil
        void (*random_between)(Py_ssize_t n, uint64_t seed, uint64_t first, double low, double high,
                               float *out) noexcept nogil
        void (*random_normal)(Py_ssize_t n, uint64_t seed, uint64_t first, double mean, double deviation,
                              float *out) noexcept nogil


cdef const random_table *functions() noexcept nogil:
    return <const random_table *>table_current()


cdef unsigned long long u64(name, value, limit=18446744073709551616) except? 0:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < limit:
        raise ValueError(f"{name} = {value!r}: expected a whole number from 0 to {limit - 1}")
    return int(value)


def random_at(seed, k):
    """Value k (from 0) of the stream: mix(seed + (k + 1) * 0x9e3779b97f4a7c15); int below 2^64.

    Raises    ValueError: seed or k not in 0 .. 2^64-1
    Source    dx_numerics/random.h; equal to dx_numerics.ref.random_at
    """
    return dx_random_at(u64("seed", seed), u64("k", k))


def substream(seed, name):
    """Seed of the stream called `name` under `seed`, for an independent stream for each purpose; int below 2^64.

    FNV-1a of the name's UTF-8 bytes, mixed with the seed (dx_substream).
    Raises    TypeError: name is not a str · ValueError: seed, or a name with lone surrogates
    Source    dx_numerics/random.h; equal to dx_numerics.ref.substream
    """
    if not isinstance(name, str):
        raise TypeError(f"name = {name!r}: expected a str")
    cdef bytes data = name.encode("utf-8")
    return dx_substream(u64("seed", seed), data, len(data))


def permutation(seed, n):
    """A permutation of 0 .. n-1: Fisher-Yates, descending, bounded numbers by rejection; int64 array (n,).

    Raises    ValueError: seed not in 0 .. 2^64-1, n < 0
    Source    dx_numerics/random.h; equal to dx_numerics.ref.permutation
    """
    cdef unsigned long long key = u64("seed", seed)
    out = np.empty(u64("n", n, 1099511627776), np.int64)
    cdef long long[::1] view = out
    cdef Py_ssize_t count = view.shape[0]
    if count:
        with nogil:
            dx_permutation(key, count, &view[0])
    return out


def epoch_permutation(seed, epoch, n):
    """The order of n examples in an epoch: permutation((seed << 32) xor epoch, n); int64 array (n,).

    Raises    ValueError: seed or epoch not in 0 .. 2^32-1, n < 0
    Source    seed 000, "Batches"
    """
    return permutation(u64("seed", seed, 4294967296) << 32 ^ u64("epoch", epoch, 4294967296), n)


def _target(out, dtype):
    if not isinstance(out, np.ndarray) or out.dtype != dtype:
        raise TypeError(f"out is {getattr(out, 'dtype', type(out).__name__)}: expected an array of {np.dtype(dtype)}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise ValueError("out is read-only, unaligned or not C-contiguous: expected a writeable C-contiguous array")
    return out.reshape(-1)


def random_u64(seed, out, first=0):
    """out[i] := value first + i of the stream, in C order.

    Shapes    out uint64, any shape, C-contiguous
    Raises    TypeError: dtype of out · ValueError: seed, first, layout of out
    Source    dx_numerics/random.h; equal to dx_numerics.ref.random_u64
    """
    cdef unsigned long long key = u64("seed", seed), start = u64("first", first), saved
    cdef unsigned long long[::1] target = _target(out, np.uint64)
    cdef Py_ssize_t n = target.shape[0]
    cdef const random_table *t = functions()
    if n == 0:
        return
    with nogil:
        saved = fp_enter()
        t.random_u64(n, key, start, <uint64_t *>&target[0])
        fp_leave(saved)


def _finite(name, value):
    value = float(value)
    if not -1.7976931348623157e308 <= value <= 1.7976931348623157e308:
        raise ValueError(f"{name} = {value}: expected a finite number")
    return value


def uniform32(seed, out, low=None, high=None, first=0):
    """out[i] := a uniform number from value first + i of the stream.

    Without low and high: a multiple of 2^-24 in [0, 1), the top 24 bits. With both: low + (high - low) * u in
    binary64, u a multiple of 2^-53 (the top 53 bits), rounded once to binary32 (so that high itself can occur).

    Shapes    out float32, any shape, C-contiguous
    Raises    TypeError: dtype of out · ValueError: seed, first, layout of out, low or high not finite or missing
    Source    dx_numerics/random.h; bit-equal to dx_numerics.ref.uniform32
    """
    cdef unsigned long long key = u64("seed", seed), start = u64("first", first), saved
    cdef float[::1] target = _target(out, np.float32)
    cdef Py_ssize_t n = target.shape[0]
    cdef const random_table *t = functions()
    cdef bint scaled = low is not None
    cdef double base = 0.0, top = 1.0
    if (low is None) != (high is None):
        raise ValueError(f"low = {low}, high = {high}: expected both or neither")
    if scaled:
        base, top = _finite("low", low), _finite("high", high)
        _finite("high - low", top - base)
    if n == 0:
        return
    with nogil:
        saved = fp_enter()
        if scaled:
            t.random_between(n, key, start, base, top, &target[0])
        else:
            t.random_uniform24(n, key, start, &target[0])
        fp_leave(saved)


def uniform64(seed, out, first=0):
    """out[i] := a multiple of 2^-53 in [0, 1), the top 53 bits of value first + i of the stream.

    Shapes    out float64, any shape, C-contiguous
    Raises    TypeError: dtype of out · ValueError: seed, first, layout of out
    Source    dx_numerics/random.h; bit-equal to dx_numerics.ref.uniform64
    """
    cdef unsigned long long key = u64("seed", seed), start = u64("first", first), saved
    cdef double[::1] target = _target(out, np.float64)
    cdef Py_ssize_t n = target.shape[0]
    cdef const random_table *t = functions()
    if n == 0:
        return
    with nogil:
        saved = fp_enter()
        t.random_uniform53(n, key, start, &target[0])
        fp_leave(saved)


def normal32(seed, out, mean=0.0, deviation=1.0, first=0):
    """out[i] := mean + deviation * z in binary64, rounded once to binary32; z is normal number first + i of the stream.

    Normal number k comes from the walk whose seed is value k of the stream: Marsaglia's polar method, u before v,
    pairs outside the open unit disc (and its centre) drawn again, z = u * sqrt(-2 * log64(s) / s), v not used.

    Shapes    out float32, any shape, C-contiguous
    Raises    TypeError: dtype of out · ValueError: seed, first, layout of out, mean or deviation not finite
    Source    dx_numerics/random.h; bit-equal to dx_numerics.ref.normal32
    """
    cdef unsigned long long key = u64("seed", seed), start = u64("first", first), saved
    cdef float[::1] target = _target(out, np.float32)
    cdef Py_ssize_t n = target.shape[0]
    cdef const random_table *t = functions()
    cdef double m = _finite("mean", mean), d = _finite("deviation", deviation)
    if n == 0:
        return
    with nogil:
        saved = fp_enter()
        t.random_normal(n, key, start, m, d, &target[0])
        fp_leave(saved)


class SplitMix64:
    """A walk along a stream: the values in order, with bounded numbers by rejection. Not for sharing among threads.

    `state` starts as the seed and advances by 0x9e3779b97f4a7c15 (mod 2^64) with every value drawn; a walk can be
    saved and taken up again by its state.

    Raises    ValueError: seed not in 0 .. 2^64-1
    Source    dx_numerics/random.h; equal to dx_numerics.ref.SplitMix64
    """

    def __init__(self, seed):
        self.state = int(u64("seed", seed))

    def next_u64(self):
        """The next value; int below 2^64."""
        cdef unsigned long long state = u64("state", self.state)
        cdef unsigned long long value = dx_random_next(&state)
        self.state = state
        return value

    def below(self, n):
        """A whole number in 0 .. n-1 without bias: values below 2^64 mod n are drawn again, the result is mod n.

        Raises    ValueError: n not in 1 .. 2^64-1
        """
        cdef unsigned long long bound = u64("n", n), state = u64("state", self.state)
        if bound == 0:
            raise ValueError("n = 0: expected a whole number from 1 to 18446744073709551615")
        cdef unsigned long long value = dx_random_below(&state, bound)
        self.state = state
        return value

    def uniform32(self):
        """A multiple of 2^-24 in [0, 1), from the next value; float."""
        return dx_uniform24(self.next_u64())

    def uniform64(self):
        """A multiple of 2^-53 in [0, 1), from the next value; float."""
        return dx_uniform53(self.next_u64())
