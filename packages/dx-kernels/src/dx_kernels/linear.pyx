"""Linear layers with bias, activation and residual in one pass, forward and backward."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, in1, in2, out1, out2, raise_status, shape1, shape2, table
from dx_kernels.matmul cimport PackedMatrix, address_of, rows_of

cdef extern from "table.h" nogil:
    ctypedef struct linear_table "dx_kernels_table":
        int (*linear_forward)(int degree, Py_ssize_t rows, Py_ssize_t n_in, Py_ssize_t n_out, const float *x,
                              Py_ssize_t ldx, const float *weight, const float *packed, const float *bias,
                              int activation, const float *residual, float *pre, float *saved, float *y,
                              Py_ssize_t ldy) noexcept nogil
        int (*linear_backward)(int degree, Py_ssize_t rows, Py_ssize_t n_in, Py_ssize_t n_out, const float *dy,
                               Py_ssize_t lddy, const float *x, Py_ssize_t ldx, const float *weight,
                               const float *packed, float *dx, Py_ssize_t lddx, int add, float *dweight,
                               float *dbias) noexcept nogil

ACTIVATIONS = {None: 0, "relu": 1, "gelu_tanh": 2, "gelu_erf": 3}  # the order of csrc/linear.h


cdef object packed_weight(object weight, Py_ssize_t K, Py_ssize_t N, bint transpose_b):
    """The packed form when weight is a PackedMatrix of shape (K, N), None when it is an array."""
    cdef PackedMatrix matrix
    if not isinstance(weight, PackedMatrix):
        return None
    matrix = weight
    if matrix.rows != K or matrix.columns != N:
        made = "PackedMatrix(weight, transpose_b=True)" if transpose_b else "PackedMatrix(weight)"
        raise ValueError(f"weight is a PackedMatrix of shape ({matrix.rows}, {matrix.columns}): expected ({K}, {N}), "
                         f"made by {made}")
    return matrix.packed()


def linear_forward(const float[:, :] x not None, weight not None, const float[::1] bias, float[:, :] y not None, *,
                   activation=None, const float[:, ::1] residual=None, float[:, ::1] pre=None,
                   float[:, ::1] saved=None):
    """y := activation(x @ weight.T + bias) + residual.

    Shapes    x (rows, in) · weight (out, in), or PackedMatrix(weight, transpose_b=True) · bias (out,) or None · y,
              residual, pre, saved (rows, out); rows of x and y contiguous, a larger row stride is allowed
    activation  None, "relu", "gelu_tanh" or "gelu_erf"; pre receives what it is applied to, saved (gelu_tanh only)
              the tanh term: what backward needs
    Order     dot16 over in; + bias; activation; + residual: each rounded by itself, what is absent is not done
    Edges     in == 0 → the products are +0 · rows == 0 → nothing
    Aliasing  residual may be y when y is contiguous; y overlaps nothing else
    Raises    ValueError: an unknown activation, saved without gelu_tanh, shapes that do not fit, rows not contiguous
    Source    numerics.md; bit-equal to dx_kernels.ref.linear.linear_forward
    """
    cdef Py_ssize_t rows = x.shape[0], n_in = x.shape[1], n_out = y.shape[1], ldx, ldy, ldw
    cdef const linear_table *t = <const linear_table *>table()
    cdef const float *px
    cdef const float *py
    cdef const float *pw = NULL
    cdef const float *pp = NULL
    cdef const float[:, ::1] plain
    cdef unsigned long long fp
    cdef int status, kind
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation = {activation!r}: expected one of {', '.join(map(repr, ACTIVATIONS))}")
    kind = ACTIVATIONS[activation]
    if saved is not None and kind != 2:
        raise ValueError(f"saved is given with activation = {activation!r}: only gelu_tanh saves its tanh term")
    packed = packed_weight(weight, n_in, n_out, True)
    if packed is None:
        plain = weight
        shape2("weight", plain, n_out, n_in)
        pw = in2(plain)
    else:
        pp = address_of(packed)
    shape1("bias", bias, n_out)
    shape2("residual", residual, rows, n_out)
    shape2("pre", pre, rows, n_out)
    shape2("saved", saved, rows, n_out)
    if y.shape[0] != rows:
        raise ValueError(f"y has shape ({y.shape[0]}, {y.shape[1]}): expected ({rows}, {n_out})")
    rows_of("x", x, &px, &ldx)
    rows_of("y", y, &py, &ldy)
    cdef const float *pb = in1(bias)
    cdef const float *pr = in2(residual)
    cdef float *ppre = out2(pre)
    cdef float *psaved = out2(saved)
    with nogil:
        fp = fp_enter()
        status = t.linear_forward(degree_current(), rows, n_in, n_out, px, ldx, pw, pp, pb, kind, pr, ppre, psaved,
                                  <float *>py, ldy)
        fp_leave(fp)
    raise_status(status)


def linear_backward(const float[:, :] dy not None, const float[:, :] x, weight, float[:, :] dx=None,
                    float[:, ::1] dweight=None, float[::1] dbias=None):
    """dx := dy @ weight, dweight := dy.T @ x, dbias := column sums of dy, for y = x @ weight.T + bias.

    Shapes    dy (rows, out) · x (rows, in), needed for dweight · weight (out, in) or PackedMatrix(weight), needed for
              dx · dx (rows, in) · dweight (out, in) · dbias (out,); outputs that are None are not computed
    Order     dx: dot16 over out · dweight: dot16 over rows · dbias: sum16 over rows
    Edges     rows == 0 → dweight and dbias are +0 · out == 0 → dx is +0
    Writes    outputs assigned            Aliasing  outputs overlap nothing
    Raises    ValueError: shapes that do not fit, rows not contiguous, dweight without x, dx without weight
    Source    backward-numerics.md; bit-equal to dx_kernels.ref.linear.linear_backward
    """
    cdef Py_ssize_t rows = dy.shape[0], n_out = dy.shape[1], n_in = 0, lddy, ldx = 0, lddx = 0
    cdef const linear_table *t = <const linear_table *>table()
    cdef const float *pdy
    cdef const float *px = NULL
    cdef const float *pw = NULL
    cdef const float *pp = NULL
    cdef const float *pdx = NULL
    cdef const float[:, ::1] plain
    cdef unsigned long long fp
    cdef int status
    rows_of("dy", dy, &pdy, &lddy)
    if dx is not None:
        if weight is None:
            raise ValueError("weight is None: dx needs it")
        n_in = dx.shape[1]
        if dx.shape[0] != rows:
            raise ValueError(f"dx has shape ({dx.shape[0]}, {dx.shape[1]}): expected ({rows}, {n_in})")
        rows_of("dx", dx, &pdx, &lddx)
        packed = packed_weight(weight, n_out, n_in, False)
        if packed is None:
            plain = weight
            shape2("weight", plain, n_out, n_in)
            pw = in2(plain)
        else:
            pp = address_of(packed)
    if dweight is not None:
        if x is None:
            raise ValueError("x is None: dweight needs it")
        if dx is not None and x.shape[1] != n_in:
            raise ValueError(f"x has shape ({x.shape[0]}, {x.shape[1]}): expected ({rows}, {n_in}), as dx")
        n_in = x.shape[1]
        if x.shape[0] != rows:
            raise ValueError(f"x has shape ({x.shape[0]}, {x.shape[1]}): expected ({rows}, {n_in})")
        rows_of("x", x, &px, &ldx)
        shape2("dweight", dweight, n_out, n_in)
    shape1("dbias", dbias, n_out)
    cdef float *pdw = out2(dweight)
    cdef float *pdb = out1(dbias)
    with nogil:
        fp = fp_enter()
        status = t.linear_backward(degree_current(), rows, n_in, n_out, pdy, lddy, px, ldx, pw, pp, <float *>pdx, lddx,
                                   0, pdw, pdb)
        fp_leave(fp)
    raise_status(status)
