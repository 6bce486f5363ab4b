"""A stack of post-norm transformer blocks (BERT's), forward over packed sequences and backward, each in one call."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, out2, raise_status, table

import numpy as np

from .encoder import ACTIVATIONS, BLOCK_TENSORS, EncoderGradients, EncoderWeights

cdef extern from "table.h" nogil:
    ctypedef struct dx_post_encoder:
        Py_ssize_t blocks, n, d, heads, inner, sequences
        float eps
        int activation
        const float **weights
        const float **packed
        const long long *starts
    ctypedef struct post_encoder_table "dx_kernels_table":
        Py_ssize_t (*post_encoder_saved_floats)(const dx_post_encoder *e) noexcept nogil
        int (*post_encoder_forward)(int degree, const dx_post_encoder *e, float *x, float *saved) noexcept nogil
        int (*post_encoder_backward)(int degree, const dx_post_encoder *e, const float *saved, float *dx, int add,
                                     float **grads) noexcept nogil


# Fills e's sizes and pointers for n rows; returns what must stay alive while it is used.
cdef object fill(dx_post_encoder *e, object weights, bint backward, Py_ssize_t n, const long long[::1] starts):
    cdef Py_ssize_t s, tensors = len(BLOCK_TENSORS)
    if not isinstance(weights, EncoderWeights):
        raise TypeError(f"weights is {type(weights).__name__}: expected EncoderWeights")
    e.blocks, e.n, e.d, e.heads, e.inner = weights.num_blocks, n, weights.d, weights.heads, weights.inner
    e.eps, e.activation = weights.eps, ACTIVATIONS[weights.activation]
    if starts is None:
        starts = np.array([0, n], np.int64)
    if starts.shape[0] < 1 or starts[0] != 0 or starts[starts.shape[0] - 1] != n:
        raise ValueError(f"starts does not run from 0 to {n}: expected the border of every sequence, (sequences + 1,)")
    for s in range(starts.shape[0] - 1):
        if starts[s + 1] <= starts[s]:
            if n == 0 and starts.shape[0] == 2:
                break  # no rows: one empty sequence
            raise ValueError(f"starts[{s + 1}] = {starts[s + 1]}: expected more than {starts[s]}, a sequence has at "
                             "least one row")
    e.sequences, e.starts = starts.shape[0] - 1, &starts[0]
    alive = weights.addresses(backward, <size_t>table())
    cdef const size_t[::1] pointers = alive[3]
    e.weights = <const float **>&pointers[0]
    e.packed = <const float **>&pointers[e.blocks * tensors]
    return alive, starts


def post_encoder_saved_floats(weights, Py_ssize_t n):
    """Number of float32 values that post_encoder_forward saves for backward over the n rows of one sequence.

    Raises    TypeError: weights · ValueError: n outside 0..2^24
    """
    cdef dx_post_encoder e
    if not 0 <= n <= 16777216:
        raise ValueError(f"n = {n}: expected 0 to 2^24 rows")
    alive = fill(&e, weights, False, n, None)
    return (<const post_encoder_table *>table()).post_encoder_saved_floats(&e)


cdef int check_saved(const dx_post_encoder *e, const float[::1] saved) except -1:
    cdef Py_ssize_t wanted = (<const post_encoder_table *>table()).post_encoder_saved_floats(e)
    if saved.shape[0] != wanted:
        raise ValueError(f"saved has shape ({saved.shape[0]},): expected ({wanted},), see post_encoder_saved_floats")
    return 0


cdef int check_width(const dx_post_encoder *e, str name, Py_ssize_t d) except -1:
    if e.blocks and d != e.d:
        raise ValueError(f"{name} has shape ({e.n}, {d}): expected rows of {e.d}")
    return 0


def post_encoder_forward(weights, float[:, ::1] x not None, const long long[::1] starts=None,
                         float[::1] saved=None):
    """x := blocks(x), each block a = ln1(x + proj(attention(qkv(x)))); x = ln2(a + fc2(activation(fc1(a)))).

    Shapes    x (n, d), replaced: the rows of the sequences, one after the other · starts (sequences + 1,) int64: sequence
              s is rows starts[s] .. starts[s + 1] - 1, at least one; None: all rows are one sequence · saved
              (post_encoder_saved_floats(weights, n),): filled for backward, of one sequence, or None
    Order     csrc/post_encoder.h; each operation is the kernel of its family. A row's bits depend on its sequence alone
    Edges     n == 0 or no blocks → nothing
    Raises    ValueError: shapes that do not fit, an empty sequence, saved with several sequences
    Source    Devlin et al. 2018; numerics.md; bit-equal to dx_kernels.ref.post_encoder.post_encoder_forward
    """
    cdef const post_encoder_table *t = <const post_encoder_table *>table()
    cdef dx_post_encoder e
    cdef int status
    cdef unsigned long long fp
    alive = fill(&e, weights, False, x.shape[0], starts)
    check_width(&e, "x", x.shape[1])
    if saved is not None:
        if e.sequences != 1:
            raise ValueError(f"saved with {e.sequences} sequences: expected one, gradients are made one by one")
        check_saved(&e, saved)
    if e.n == 0 or e.blocks == 0:
        return
    cdef float *px = out2(x)
    cdef float *ps = NULL if saved is None else &saved[0]
    with nogil:
        fp = fp_enter()
        status = t.post_encoder_forward(degree_current(), &e, px, ps)
        fp_leave(fp)
    raise_status(status)


def post_encoder_backward(weights, const float[::1] saved not None, float[:, ::1] dx not None, grads, *,
                          bint accumulate=False):
    """dx := gradient of the stack's input from the gradient of its output; grads := weight gradients; of one sequence.

    Shapes    saved from post_encoder_forward · dx (n, d), replaced · grads: for each block 12 float32 arrays shaped as
              the weights, or EncoderGradients of them; assigned, or with accumulate added to
    Order     from the last block to the first; a row's gradient is that past the layer norm plus that through the branch
    Edges     n == 0 → all weight gradients +0 (accumulate: +0 is added)
    Raises    ValueError: shapes that do not fit
    Source    the adjoint of post_encoder_forward; bit-equal to dx_kernels.ref.post_encoder.post_encoder_backward
    """
    cdef const post_encoder_table *t = <const post_encoder_table *>table()
    cdef dx_post_encoder e
    cdef int status
    cdef unsigned long long fp
    alive = fill(&e, weights, True, dx.shape[0], None)
    check_width(&e, "dx", dx.shape[1])
    check_saved(&e, saved)
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
    cdef const float *ps = &saved[0] if saved.shape[0] else NULL
    cdef float **pg = <float **>&table_of[0]
    with nogil:
        fp = fp_enter()
        status = t.post_encoder_backward(degree_current(), &e, ps, pdx, accumulate, pg)
        fp_leave(fp)
    raise_status(status)
