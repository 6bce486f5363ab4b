"""A stack of pre-norm transformer blocks, forward and backward, each in one call."""
from dx_kernels._core cimport (degree_current, flat, fp_enter, fp_leave, in3, out2, out3, raise_status, shape2, shape3,
                               table, to_float)
from dx_kernels.matmul cimport PackedMatrix, address_of

import numpy as np

cdef extern from "table.h" nogil:
    ctypedef struct dx_encoder:
        Py_ssize_t blocks, n, d, heads, inner
        float eps
        int activation, causal
        const float **weights
        const float **packed
        const float *bias
        const unsigned char *mask
    ctypedef struct encoder_table "dx_kernels_table":
        Py_ssize_t (*encoder_saved_floats)(const dx_encoder *e) noexcept nogil
        int (*encoder_forward)(int degree, const dx_encoder *e, float *x, float *saved) noexcept nogil
        int (*encoder_backward)(int degree, const dx_encoder *e, const float *saved, float *dx, int add, float **grads,
                                float *dbias) noexcept nogil

BLOCK_TENSORS = ("ln1.weight", "ln1.bias", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias", "ln2.weight",
                 "ln2.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
ACTIVATIONS = {"gelu_tanh": 2, "gelu_erf": 3}  # the order of csrc/linear.h

cdef enum:
    TENSORS = 12
    MATRICES = 4


cdef const float *address(object array) except *:
    cdef const float[::1] view = array.reshape(-1)
    return &view[0] if view.shape[0] else NULL


cdef float *address_to_write(object array) except *:
    cdef float[::1] view = array.reshape(-1)
    return &view[0] if view.shape[0] else NULL


cdef int check_array(str where, object array, tuple shape) except -1:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{where} is {type(array).__name__}: expected a float32 array")
    if array.shape != shape or array.dtype != np.float32 or not array.flags.c_contiguous:
        raise ValueError(f"{where} has shape {array.shape}, type {array.dtype}: expected {shape}, float32, C-contiguous")
    return 0


cdef list check_blocks(str where, object blocks):
    """The blocks as tuples of TENSORS entries."""
    made = [tuple(block) for block in blocks]
    for i, block in enumerate(made):
        if len(block) != TENSORS:
            raise ValueError(f"{where} {i} has {len(block)} arrays: expected {TENSORS}")
    return made


class EncoderWeights:
    """The weights of a stack of blocks, checked once and packed once.

    Parameters  blocks: for each block its 12 float32 arrays in the order of BLOCK_TENSORS: weights (out, in), layer norm
                and bias vectors, C-contiguous; they are kept and read, not copied · heads · eps · activation:
                "gelu_tanh" or "gelu_erf"
    Attributes  num_blocks, d, heads, inner, eps, activation
    Packing     at construction for forward, at the first backward for backward; after changing the arrays in place call
                repack()
    Threads     safe to use from several at once
    Raises      ValueError: shape, type or layout of an array, by block and name; d not a multiple of heads
    """

    def __init__(self, blocks, *, int heads, double eps=1e-5, activation="gelu_tanh"):
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            raise ValueError(f"activation = {activation!r}: expected one of {', '.join(map(repr, ACTIVATIONS))}")
        if not eps >= 0:
            raise ValueError(f"eps = {eps}: expected a number >= 0")
        self.blocks = check_blocks("block", blocks)
        self.num_blocks, self.heads, self.eps, self.activation = len(self.blocks), heads, to_float(eps), activation
        self.d, self.inner = (len(self.blocks[0][k]) if self.blocks else 0 for k in (0, 8))
        if heads < 1 or self.d % heads or (self.blocks and self.d < 1):
            raise ValueError(f"heads = {heads}: expected a divisor of d = {self.d}")
        d, m = self.d, self.inner
        self.shapes = ((d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,), (m, d), (m,), (d, m), (d,))
        for i, block in enumerate(self.blocks):
            for name, array, shape in zip(BLOCK_TENSORS, block, self.shapes):
                check_array(f"block {i} {name}", array, shape)
        self.forward_packs = [[PackedMatrix(block[k], transpose_b=True) for k in (2, 4, 8, 10)] for block in self.blocks]
        self.backward_packs = None
        self.version, self.prepared = 0, {}

    def repack(self):
        """Packs the arrays' present values."""
        for packs in self.forward_packs:
            for pack in packs:
                pack.repack()
        if self.backward_packs is not None:
            for packs in self.backward_packs:
                for pack in packs:
                    pack.repack()
        self.version += 1

    def packs(self, backward):
        if backward and self.backward_packs is None:
            self.backward_packs = [[PackedMatrix(block[k]) for k in (2, 4, 8, 10)] for block in self.blocks]
        return self.backward_packs if backward else self.forward_packs

    def addresses(self, backward, path):
        """(…, array of the addresses of all weights, then of all packed forms), made once for a path and direction and
        again after repack(); it keeps the packed forms alive."""
        found = self.prepared.get(backward)
        if found is None or found[0] != path or found[1] != self.version:
            version = self.version  # before looking: what a repack() meanwhile makes half new is not kept
            found = (path, version, *addresses_of(self.blocks, self.packs(backward)))
            self.prepared[backward] = found
        return found


cdef tuple addresses_of(list blocks, list packs):
    cdef Py_ssize_t i, k, count = len(blocks)
    cdef PackedMatrix pack
    pointers = np.empty(count * (TENSORS + MATRICES) + 1, np.uintp)
    cdef size_t[::1] table_of = pointers
    alive = []
    for i in range(count):
        for k in range(TENSORS):
            table_of[i * TENSORS + k] = <size_t>address(blocks[i][k])
        for k in range(MATRICES):
            pack = packs[i][k]
            packed = pack.packed()
            alive.append(packed)
            table_of[count * TENSORS + i * MATRICES + k] = <size_t>address_of(packed)
    return alive, pointers


class EncoderGradients:
    """Arrays for the gradients of a stack of blocks, checked once: for callers that use the same ones again and again.

    Parameters  weights: EncoderWeights · blocks: for each block 12 float32 arrays shaped as its weights, in the same
                order; they are kept and written by encoder_backward
    Raises      TypeError, ValueError: an array that is not one, its shape, type or layout, by block and name
    """

    def __init__(self, weights, blocks):
        cdef Py_ssize_t i, k
        check_weights(weights)
        self.shapes = weights.shapes
        self.blocks = tuple(check_blocks("grads", blocks))
        if len(self.blocks) != weights.num_blocks:
            raise ValueError(f"grads has {len(self.blocks)} blocks: expected {weights.num_blocks}")
        self.pointers = np.empty(weights.num_blocks * TENSORS + 1, np.uintp)
        cdef size_t[::1] table_of = self.pointers
        for i in range(weights.num_blocks):
            for k in range(TENSORS):
                check_array(f"grads {i} {BLOCK_TENSORS[k]}", self.blocks[i][k], self.shapes[k])
                table_of[i * TENSORS + k] = <size_t>address_to_write(self.blocks[i][k])

    def finish_empty(self, bint accumulate):
        """What a backward over no rows does: every gradient is +0, or has +0 added."""
        cdef float[::1] g
        cdef Py_ssize_t i, n
        cdef unsigned long long fp
        for block in self.blocks:
            for array in block:
                g = flat(array)
                n = g.shape[0]
                with nogil:
                    fp = fp_enter()
                    for i in range(n):
                        g[i] = g[i] + 0.0 if accumulate else 0.0
                    fp_leave(fp)


cdef int check_weights(object weights) except -1:
    if not isinstance(weights, EncoderWeights):
        raise TypeError(f"weights is {type(weights).__name__}: expected EncoderWeights")
    return 0


cdef object fill(dx_encoder *e, object weights, bint backward, const float[:, ::1] x, const float[:, :, ::1] bias,
                 const unsigned char[::1] mask, bint causal, str name):
    """Fills e's sizes and pointers; returns what must stay alive while it is used."""
    if not isinstance(weights, EncoderWeights):
        raise TypeError(f"weights is {type(weights).__name__}: expected EncoderWeights")
    e.blocks, e.heads, e.inner = weights.num_blocks, weights.heads, weights.inner
    e.n, e.d = x.shape[0], x.shape[1]
    e.eps, e.activation, e.causal = weights.eps, ACTIVATIONS[weights.activation], causal
    if e.blocks and e.d != weights.d:
        raise ValueError(f"{name} has shape ({e.n}, {e.d}): expected rows of {weights.d}")
    shape3("bias", bias, e.heads, e.n, e.n)
    if mask is not None and mask.shape[0] != e.n:
        raise ValueError(f"mask has shape ({mask.shape[0]},): expected ({e.n},)")
    e.bias = in3(bias)
    e.mask = NULL if mask is None or e.n == 0 else &mask[0]
    alive = weights.addresses(backward, <size_t>table())
    cdef const size_t[::1] table_of = alive[3]
    e.weights = <const float **>&table_of[0]
    e.packed = <const float **>&table_of[e.blocks * TENSORS]
    return alive


def encoder_saved_floats(weights, Py_ssize_t n):
    """Number of float32 values that encoder_forward saves for backward over n rows.

    Raises    TypeError: weights · ValueError: n outside 0..2^24
    """
    cdef dx_encoder e
    check_weights(weights)
    if not 0 <= n <= 16777216:
        raise ValueError(f"n = {n}: expected 0 to 2^24 rows")
    e.blocks, e.n, e.d, e.heads, e.inner = weights.num_blocks, n, weights.d, weights.heads, weights.inner
    e.activation = ACTIVATIONS[weights.activation]
    return (<const encoder_table *>table()).encoder_saved_floats(&e)


cdef int check_saved(const encoder_table *t, const dx_encoder *e, const float[::1] saved) except -1:
    cdef Py_ssize_t wanted = t.encoder_saved_floats(e)
    if saved.shape[0] != wanted:
        raise ValueError(f"saved has shape ({saved.shape[0]},): expected ({wanted},), see encoder_saved_floats")
    return 0


def encoder_forward(weights, float[:, ::1] x not None, const float[:, :, ::1] bias=None, float[::1] saved=None, *,
                    const unsigned char[::1] mask=None, bint causal=False):
    """x := blocks(x), each block x += proj(attention(qkv(ln1(x)))); x += fc2(activation(fc1(ln2(x)))).

    Shapes    x (n, d), replaced · bias (heads, n, n) added to the attention scores, or None · saved
              (encoder_saved_floats(weights, n),): filled for backward, or None; the bits of x are the same · mask (n,)
              bytes, nonzero admits the key, or None · causal: row i admits keys 0..i, so that its bits depend on no
              later row
    Order     csrc/encoder.h; each operation is the kernel of its family
    Edges     n == 0 or no blocks → nothing
    Raises    ValueError: shapes that do not fit
    Source    numerics.md; bit-equal to dx_kernels.ref.encoder.encoder_forward
    """
    cdef const encoder_table *t = <const encoder_table *>table()
    cdef dx_encoder e
    cdef int status
    cdef unsigned long long fp
    alive = fill(&e, weights, False, x, bias, mask, causal, "x")
    if saved is not None:
        check_saved(t, &e, saved)
    if e.n == 0 or e.blocks == 0:
        return
    cdef float *px = out2(x)
    cdef float *ps = NULL if saved is None else &saved[0]
    with nogil:
        fp = fp_enter()
        status = t.encoder_forward(degree_current(), &e, px, ps)
        fp_leave(fp)
    raise_status(status)


def encoder_backward(weights, const float[::1] saved not None, float[:, ::1] dx not None, grads,
                     const float[:, :, ::1] bias=None, float[:, :, ::1] dbias=None, *,
                     const unsigned char[::1] mask=None, bint accumulate=False):
    """dx := gradient of the stack's input from the gradient of its output; grads and dbias := weight and bias gradients.

    Shapes    saved from encoder_forward · dx (n, d), replaced · grads: for each block 12 float32 arrays shaped as the
              weights, or EncoderGradients of them; assigned, or with accumulate added to · bias, mask as in forward ·
              dbias (heads, n, n), assigned, or None
    Order     from the last block to the first; dbias is the last block's gradient, then each earlier block's is added ·
              accumulate: each gradient is finished, then added in one rounded addition, as by `g += gradient`
    Edges     n == 0 → all weight gradients +0 (accumulate: +0 is added)
    Raises    ValueError: shapes that do not fit
    Source    backward-numerics.md; bit-equal to dx_kernels.ref.encoder.encoder_backward
    """
    cdef const encoder_table *t = <const encoder_table *>table()
    cdef dx_encoder e
    cdef int status
    cdef unsigned long long fp
    alive = fill(&e, weights, True, dx, bias, mask, False, "dx")  # what was admitted stands in saved
    check_saved(t, &e, saved)
    shape3("dbias", dbias, e.heads, e.n, e.n)
    if not isinstance(grads, EncoderGradients):
        grads = EncoderGradients(weights, grads)
    elif len(grads.blocks) != e.blocks or grads.shapes != weights.shapes:
        raise ValueError(f"grads has {len(grads.blocks)} blocks, qkv.weight {grads.shapes[2]}, fc1.weight "
                         f"{grads.shapes[8]}: expected {e.blocks}, {weights.shapes[2]}, {weights.shapes[8]}")
    if e.n == 0:
        grads.finish_empty(accumulate)
        return
    cdef size_t[::1] table_of = grads.pointers
    cdef float *pdx = out2(dx)
    cdef float *pdb = out3(dbias)
    cdef const float *ps = &saved[0] if saved.shape[0] else NULL
    cdef float **pg = <float **>&table_of[0]
    with nogil:
        fp = fp_enter()
        status = t.encoder_backward(degree_current(), &e, ps, pdx, accumulate, pg, pdb)
        fp_leave(fp)
    raise_status(status)
