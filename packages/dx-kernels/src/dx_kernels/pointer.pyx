"""Pointer scores (a word points at a word), forward and adjoint."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in2, in3, out2, out3, raise_status, shape2, shape3,
                               table)
from dx_kernels.attention cimport dx_attention, set_admitted, set_heads

from libc.string cimport memset

cdef extern from "table.h" nogil:
    ctypedef struct pointer_table "dx_kernels_table":
        int (*pointer_forward)(int degree, const dx_attention *a) noexcept nogil
        int (*pointer_backward)(int degree, const dx_attention *a) noexcept nogil


cdef int set_q_k(dx_attention *a, const float[:, ::1] q, const float[:, ::1] k, Py_ssize_t parts) except -1:
    if parts < 1:
        raise ValueError(f"parts = {parts}: expected at least 1")
    set_heads(a, "q", q.shape[1], 1, parts)
    a.nq = q.shape[0]
    a.nk = k.shape[0]
    shape2("k", k, a.nk, q.shape[1])
    a.q_stride = a.k_stride = q.shape[1]
    a.q = in2(q)
    a.k = in2(k)
    return 0


def pointer_forward(const float[:, ::1] q not None, const float[:, ::1] k not None,
                    float[:, :, ::1] scores not None, *, Py_ssize_t parts=1, const float[:, :, ::1] bias=None,
                    const unsigned char[:, ::1] mask=None, bint causal=False):
    """scores[p][i][j] := dot16(q_i, k_j) / sqrt(d) + bias for every part p of the columns (items, key-value, …).

    Shapes    q (nq, parts * d), k (nk, parts * d): part p at columns p * d · scores, bias (parts, nq, nk) · mask
              (nq, nk), or (1, nk) for all queries: a nonzero byte admits the column · causal: query i admits 0..i
    Order     dot16 over the d columns; division by the binary32 sqrt(d); + bias
    Edges     a column that is not admitted → -inf · nq == 0 or nk == 0 → nothing
    Aliasing  scores overlaps no input
    Raises    ValueError: parts < 1, columns of q not a multiple of parts, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.pointer.pointer_forward
    """
    cdef const pointer_table *t = <const pointer_table *>table()
    cdef dx_attention a
    cdef unsigned long long saved
    cdef int status
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_q_k(&a, q, k, parts)
    shape3("scores", scores, parts, a.nq, a.nk)
    shape3("bias", bias, parts, a.nq, a.nk)
    set_admitted(&a, mask, causal)
    if a.nq == 0 or a.nk == 0:
        return
    a.bias = in3(bias)
    a.scores = out3(scores)
    with nogil:
        saved = fp_enter()
        status = t.pointer_forward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)


def pointer_backward(const float[:, :, ::1] dscores not None, const float[:, ::1] q not None,
                     const float[:, ::1] k not None, float[:, ::1] dq not None, float[:, ::1] dk not None, *,
                     Py_ssize_t parts=1):
    """The adjoint of pointer_forward: dq, dk := the gradients of q, k (that of the bias is dscores itself).

    Shapes    dscores (parts, nq, nk) · q, dq (nq, parts * d) · k, dk (nk, parts * d)
    Order     e = dscores / sqrt(d); dq[i][c] = dot16 over j of e[i][j], k[j][c]; dk[j][c] = dot16 over i of
              e[i][j], q[i][c]; all i and j ascending
    Edges     columns that are not admitted take part with their dscores, which a loss makes 0 · nq == 0 or nk == 0
              → zeros
    Writes    outputs assigned            Aliasing  dq and dk overlap no input
    Raises    ValueError: parts < 1, columns of q not a multiple of parts, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.pointer.pointer_backward
    """
    cdef const pointer_table *t = <const pointer_table *>table()
    cdef dx_attention a
    cdef unsigned long long saved
    cdef int status
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_q_k(&a, q, k, parts)
    shape3("dscores", dscores, parts, a.nq, a.nk)
    shape2("dq", dq, a.nq, parts * a.d)
    shape2("dk", dk, a.nk, parts * a.d)
    if a.nq == 0 or a.nk == 0:
        dq[:, :] = 0
        dk[:, :] = 0
        return
    a.dq_stride = a.dk_stride = parts * a.d
    a.dscores = in3(dscores)
    a.dq = out2(dq)
    a.dk = out2(dk)
    with nogil:
        saved = fp_enter()
        status = t.pointer_backward(degree_current(), &a)
        fp_leave(saved)
    raise_status(status)
