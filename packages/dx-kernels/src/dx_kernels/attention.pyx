"""Multi-head attention of one page, forward and adjoint: scores, bias, softmax and weighted sum in one pass."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, in2, in3, out2, out3, raise_status, shape2, shape3,
                               table)

from libc.string cimport memset

cdef extern from "table.h" nogil:
    ctypedef struct attention_table "dx_kernels_table":
        int (*attention_forward)(int degree, const dx_attention *a) noexcept nogil
        int (*attention_backward)(int degree, const dx_attention *a) noexcept nogil


cdef int set_heads(dx_attention *a, str name, Py_ssize_t width, Py_ssize_t parts, Py_ssize_t heads) except -1:
    if heads < 1:
        raise ValueError(f"heads = {heads}: expected at least 1")
    if heads > width or width % (parts * heads):
        raise ValueError(f"{name} has {width} columns: expected a positive multiple of {parts * heads} "
                         f"({parts} x {heads} heads)")
    a.heads = heads
    a.d = width // (parts * heads)
    return 0


cdef int set_admitted(dx_attention *a, const unsigned char[:, ::1] mask, bint causal) except -1:
    if causal and a.nq != a.nk:
        raise ValueError(f"causal = True with {a.nq} queries and {a.nk} keys: expected as many keys as queries")
    a.causal = causal
    a.mask = NULL
    a.mask_stride = 0
    if mask is None:
        return 0
    if (mask.shape[0] != a.nq and mask.shape[0] != 1) or mask.shape[1] != a.nk:
        raise ValueError(f"mask has shape ({mask.shape[0]}, {mask.shape[1]}): "
                         f"expected ({a.nq}, {a.nk}) or (1, {a.nk})")
    if a.nq > 0 and a.nk > 0:
        a.mask = &mask[0, 0]
        a.mask_stride = a.nk if mask.shape[0] == a.nq else 0
    return 0


# The inputs of the packed form: q, k, v side by side in the rows of qkv.
cdef int set_qkv(dx_attention *a, const float[:, ::1] qkv, Py_ssize_t heads) except -1:
    set_heads(a, "qkv", qkv.shape[1], 3, heads)
    a.nq = a.nk = qkv.shape[0]
    a.q_stride = a.k_stride = a.v_stride = qkv.shape[1]
    a.out_stride = heads * a.d
    if a.nq > 0:
        a.q = &qkv[0, 0]
        a.k = a.q + heads * a.d
        a.v = a.k + heads * a.d
    return 0


cdef int set_q_k_v(dx_attention *a, const float[:, ::1] q, const float[:, ::1] k, const float[:, ::1] v,
                   Py_ssize_t heads) except -1:
    set_heads(a, "q", q.shape[1], 1, heads)
    a.nq = q.shape[0]
    a.nk = k.shape[0]
    shape2("k", k, a.nk, q.shape[1])
    shape2("v", v, a.nk, q.shape[1])
    a.q_stride = a.k_stride = a.v_stride = a.out_stride = heads * a.d
    a.q = in2(q)
    a.k = in2(k)
    a.v = in2(v)
    return 0


cdef forward(dx_attention *a, float[:, ::1] out, const float[:, :, ::1] bias, const unsigned char[:, ::1] mask,
             bint causal, float[:, :, ::1] probs):
    cdef const attention_table *t = <const attention_table *>table()
    cdef unsigned long long saved
    cdef int status
    shape2("out", out, a.nq, a.heads * a.d)
    shape3("bias", bias, a.heads, a.nq, a.nk)
    shape3("probs", probs, a.heads, a.nq, a.nk)
    set_admitted(a, mask, causal)
    if a.nq == 0 or a.nk == 0:
        out[:, :] = 0
        return
    a.bias = in3(bias)
    a.probs = out3(probs)
    a.out = out2(out)
    with nogil:
        saved = fp_enter()
        status = t.attention_forward(degree_current(), a)
        fp_leave(saved)
    raise_status(status)


cdef backward(dx_attention *a, const float[:, ::1] dout, const float[:, :, ::1] probs, float[:, :, ::1] dbias):
    cdef const attention_table *t = <const attention_table *>table()
    cdef unsigned long long saved
    cdef int status
    a.dout = in2(dout)
    a.probs_in = in3(probs)
    a.dbias = out3(dbias)
    with nogil:
        saved = fp_enter()
        status = t.attention_backward(degree_current(), a)
        fp_leave(saved)
    raise_status(status)


def attention_forward(const float[:, ::1] qkv not None, float[:, ::1] out not None, *, Py_ssize_t heads,
                      const float[:, :, ::1] bias=None, const unsigned char[:, ::1] mask=None, bint causal=False,
                      float[:, :, ::1] probs=None):
    """out := softmax(q k^T / sqrt(d) + bias) v for every head of one page.

    Shapes    qkv (n, 3 * heads * d): the q, k and v columns of one linear layer side by side, head h at columns
              h * d of each · out (n, heads * d) · bias (heads, n, n) or None · mask (n, n), or (1, n) for all
              queries: a nonzero byte admits the key · causal: query i admits keys 0..i · probs (heads, n, n): the
              probabilities, saved for backward when given
    Order     score = dot16(q_i, k_j) / sqrt(d), + bias; softmax as softmax_forward; out[i][c] = dot16 over all j
              ascending of p[i][j], v[j][c], keys that are not admitted taking part with p = +0
    Edges     a query with nothing admitted → zeros · NaN or inf: as softmax_forward, and 0 * inf is NaN in the
              weighted sum: rows that are not admitted must be finite · n == 0 → nothing
    Aliasing  out and probs overlap no input
    Raises    ValueError: heads < 1, columns of qkv not a multiple of 3 * heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.attention.attention_forward
    """
    cdef dx_attention a
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_qkv(&a, qkv, heads)
    forward(&a, out, bias, mask, causal, probs)


def attention_backward(const float[:, ::1] dout not None, const float[:, ::1] qkv not None,
                       const float[:, :, ::1] probs not None, float[:, ::1] dqkv not None,
                       float[:, :, ::1] dbias=None, *, Py_ssize_t heads):
    """The adjoint of attention_forward: dqkv and dbias := the gradients of qkv and bias.

    Shapes    dout (n, heads * d) · qkv, dqkv (n, 3 * heads * d) · probs (the forward's), dbias (heads, n, n); dbias
              None: not computed
    Order     dp = dot16(dout_i, v_j); ds = p * (dp - dot16(p, dp)); dbias = ds; with e = ds / sqrt(d):
              dq[i][c] = dot16 over j of e[i][j], k[j][c]; dk[j][c] = dot16 over i of e[i][j], q[i][c];
              dv[j][c] = dot16 over i of p[i][j], dout[i][c]; all over every i or j ascending
    Edges     a query with nothing admitted gives and gets zeros (for a finite dout) · n == 0 → nothing
    Writes    outputs assigned            Aliasing  dqkv and dbias overlap no input
    Raises    ValueError: heads < 1, columns of qkv not a multiple of 3 * heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.attention.attention_backward
    """
    cdef dx_attention a
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_qkv(&a, qkv, heads)
    shape2("dout", dout, a.nq, heads * a.d)
    shape3("probs", probs, heads, a.nq, a.nk)
    shape2("dqkv", dqkv, a.nq, 3 * heads * a.d)
    shape3("dbias", dbias, heads, a.nq, a.nk)
    if a.nq == 0:
        return
    a.dq_stride = a.dk_stride = a.dv_stride = dqkv.shape[1]
    a.dq = &dqkv[0, 0]
    a.dk = a.dq + heads * a.d
    a.dv = a.dk + heads * a.d
    backward(&a, dout, probs, dbias)


def cross_attention_forward(const float[:, ::1] q not None, const float[:, ::1] k not None,
                            const float[:, ::1] v not None, float[:, ::1] out not None, *, Py_ssize_t heads,
                            const float[:, :, ::1] bias=None, const unsigned char[:, ::1] mask=None,
                            float[:, :, ::1] probs=None):
    """attention_forward with queries apart from keys and values.

    Shapes    q, out (nq, heads * d) · k, v (nk, heads * d) · bias, probs (heads, nq, nk) · mask (nq, nk) or (1, nk)
    Order     as attention_forward
    Edges     as attention_forward · nk == 0 → zeros
    Aliasing  out and probs overlap no input
    Raises    ValueError: heads < 1, columns of q not a multiple of heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.attention.attention_forward
    """
    cdef dx_attention a
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_q_k_v(&a, q, k, v, heads)
    forward(&a, out, bias, mask, False, probs)


def cross_attention_backward(const float[:, ::1] dout not None, const float[:, ::1] q not None,
                             const float[:, ::1] k not None, const float[:, ::1] v not None,
                             const float[:, :, ::1] probs not None, float[:, ::1] dq not None,
                             float[:, ::1] dk not None, float[:, ::1] dv not None, float[:, :, ::1] dbias=None, *,
                             Py_ssize_t heads):
    """The adjoint of cross_attention_forward.

    Shapes    dout, q, dq (nq, heads * d) · k, v, dk, dv (nk, heads * d) · probs, dbias (heads, nq, nk)
    Order     as attention_backward
    Edges     nq == 0 or nk == 0 → zeros
    Writes    outputs assigned            Aliasing  outputs overlap no input
    Raises    ValueError: heads < 1, columns of q not a multiple of heads, a shape that does not fit
    Source    seed formulas; bit-equal to dx_kernels.ref.attention.attention_backward
    """
    cdef dx_attention a
    memset(&a, 0, sizeof(a))  # not a = {}, which sets nothing
    set_q_k_v(&a, q, k, v, heads)
    shape2("dout", dout, a.nq, heads * a.d)
    shape3("probs", probs, heads, a.nq, a.nk)
    shape2("dq", dq, a.nq, heads * a.d)
    shape2("dk", dk, a.nk, heads * a.d)
    shape2("dv", dv, a.nk, heads * a.d)
    shape3("dbias", dbias, heads, a.nq, a.nk)
    if a.nq == 0 or a.nk == 0:
        dq[:, :] = 0
        dk[:, :] = 0
        dv[:, :] = 0
        return
    a.dq_stride = a.dk_stride = a.dv_stride = heads * a.d
    a.dq = out2(dq)
    a.dk = out2(dk)
    a.dv = out2(dv)
    backward(&a, dout, probs, dbias)
