"""Matrix products whose every element is one dot16, and operands packed once for many products."""
from dx_kernels._core cimport degree_current, fp_enter, fp_leave, raise_status, table
from dx_numerics._core cimport path_current

import threading

import numpy as np

cdef extern from "table.h" nogil:
    ctypedef void (*dx_gemm_epilogue)(void *, float *, Py_ssize_t, float *, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                                      Py_ssize_t, Py_ssize_t) noexcept nogil
    ctypedef struct matmul_table "dx_kernels_table":
        Py_ssize_t (*gemm_packed_floats)(Py_ssize_t K, Py_ssize_t N) noexcept nogil
        int (*gemm_pack)(int degree, int trans_b, Py_ssize_t K, Py_ssize_t N, const float *B, Py_ssize_t ldb,
                         float *packed) noexcept nogil
        int (*gemm)(int degree, int trans_a, int trans_b, Py_ssize_t M, Py_ssize_t N, Py_ssize_t K, const float *A,
                    Py_ssize_t lda, const float *B, Py_ssize_t ldb, const float *packed, float *C, Py_ssize_t ldc,
                    dx_gemm_epilogue epilogue, void *context) noexcept nogil
        int (*gemm_batched)(int degree, int trans_a, int trans_b, Py_ssize_t count, Py_ssize_t M, Py_ssize_t N,
                            Py_ssize_t K, const float *A, Py_ssize_t lda, Py_ssize_t a_step, const float *B,
                            Py_ssize_t ldb, Py_ssize_t b_step, float *C, Py_ssize_t ldc,
                            Py_ssize_t c_step) noexcept nogil
        double (*gemm_probe)(Py_ssize_t steps) noexcept nogil


cdef int rows_of(str name, const float[:, :] a, const float **address, Py_ssize_t *stride) except -1:
    cdef Py_ssize_t item = sizeof(float)
    address[0] = NULL
    stride[0] = a.shape[1]
    if a.shape[0] == 0 or a.shape[1] == 0:
        return 0
    if (a.shape[1] > 1 and a.strides[1] != item) or a.strides[0] % item != 0 or (
            a.shape[0] > 1 and a.strides[0] < a.shape[1] * item):
        raise ValueError(f"{name} has strides ({a.strides[0]}, {a.strides[1]}) bytes for shape ({a.shape[0]}, "
                         f"{a.shape[1]}): expected contiguous rows that do not overlap")
    address[0] = &a[0, 0]
    if <size_t>address[0] % item != 0:
        raise ValueError(f"{name} begins at address {<size_t>address[0]:#x}: expected a multiple of {item}")
    if a.shape[0] > 1:
        stride[0] = a.strides[0] // item
    return 0


cdef int planes_of(str name, const float[:, :, :] a, const float **address, Py_ssize_t *stride,
                   Py_ssize_t *step) except -1:
    cdef Py_ssize_t item = sizeof(float)
    step[0] = 0
    if a.shape[0] == 0:
        address[0] = NULL
        stride[0] = a.shape[2]
        return 0
    if a.shape[1] == 0 or a.shape[2] == 0:
        address[0] = NULL
        stride[0] = a.shape[2]
        return 0
    if (a.shape[2] > 1 and a.strides[2] != item) or a.strides[1] % item != 0 or (
            a.shape[1] > 1 and a.strides[1] < a.shape[2] * item):
        raise ValueError(f"{name} has strides ({a.strides[0]}, {a.strides[1]}, {a.strides[2]}) bytes for shape "
                         f"({a.shape[0]}, {a.shape[1]}, {a.shape[2]}): expected contiguous rows that do not overlap")
    address[0] = &a[0, 0, 0]
    if <size_t>address[0] % item != 0:
        raise ValueError(f"{name} begins at address {<size_t>address[0]:#x}: expected a multiple of {item}")
    stride[0] = a.strides[1] // item if a.shape[1] > 1 else a.shape[2]
    if a.strides[0] % item != 0:
        raise ValueError(f"{name} has a first stride of {a.strides[0]} bytes: expected a multiple of {item}")
    if a.shape[0] > 1:
        step[0] = a.strides[0] // item
    return 0


cdef const float *address_of(object packed) except? NULL:
    cdef const float[::1] view = packed
    return NULL if view.shape[0] == 0 else &view[0]


cdef class PackedMatrix:
    """The right operand of a product, packed for the kernel: PackedMatrix(b) for a @ b, or PackedMatrix(weight,
    transpose_b=True) for a @ weight.T (a linear layer's weight as it is stored).

    Attributes  shape: (rows, columns) of the operand as multiplied · source, transpose_b · nbytes of the packed form
    Packing     happens at construction for the thread's kernel path, and again when used under another path (one form
                is kept). After changing the source in place call repack(); until then the old values are used
    Threads     safe to use from several at once
    Raises      ValueError: rows that are not contiguous
    """

    def __init__(self, const float[:, :] b not None, *, bint transpose_b=False):
        cdef const float *address
        cdef Py_ssize_t stride
        rows_of("b", b, &address, &stride)
        self.source = b.base if b.base is not None else b
        self.transpose_b = transpose_b
        self.rows, self.columns = (b.shape[1], b.shape[0]) if transpose_b else (b.shape[0], b.shape[1])
        self.lock = threading.Lock()
        self.state = None
        self.packed()

    @property
    def shape(self):
        return self.rows, self.columns

    @property
    def nbytes(self):
        return self.packed().nbytes

    def repack(self):
        """Packs the source's present values."""
        with self.lock:
            self.state = None
        self.packed()

    cdef object packed(self):
        cdef int path = path_current()
        state = self.state
        if state is not None and state[0] == path:
            return state[1]
        with self.lock:
            state = self.state
            if state is None or state[0] != path:
                state = (path, self.pack())
                self.state = state
        return state[1]

    def pack(self):
        cdef const float[:, :] b = self.source
        cdef const matmul_table *t = <const matmul_table *>table()
        cdef const float *address
        cdef Py_ssize_t stride, floats = t.gemm_packed_floats(self.rows, self.columns)
        cdef float[::1] view
        cdef float *out
        cdef int status
        cdef unsigned long long saved
        rows_of("b", b, &address, &stride)
        memory = np.empty(floats + 16, np.float32)
        start = -memory.ctypes.data % 64 // 4
        packed = memory[start:start + floats]
        if floats and address != NULL:
            view = packed
            out = &view[0]
            with nogil:
                saved = fp_enter()
                status = t.gemm_pack(degree_current(), self.transpose_b, self.rows, self.columns, address, stride, out)
                fp_leave(saved)
            raise_status(status)
        packed.flags.writeable = False
        return packed


def matmul(a, b, out, *, bint transpose_a=False, bint transpose_b=False):
    """out := a @ b, every element one dot16 over the contraction axis.

    Shapes    a (m, k), or (k, m) with transpose_a · b (k, n), or (n, k) with transpose_b, or a PackedMatrix of shape
              (k, n) · out (m, n); or all three with a leading axis of equal length (heads). float32, contiguous rows
              (a row stride beyond the columns is allowed)
    Order     out[i, j] = dot16 over k ascending: a row of out depends on that row of a and on b alone
    Edges     k == 0 → +0 everywhere · m == 0 or n == 0 → nothing
    Aliasing  out must overlap neither input
    Raises    ValueError: shapes that do not fit, rows that are not contiguous, transpose_b with a PackedMatrix
    Source    numerics.md; bit-equal to dx_kernels.ref.matmul.matmul
    """
    if a is None or b is None or out is None:
        name = "a" if a is None else "b" if b is None else "out"
        raise TypeError(f"{name} is None: expected a float32 array")
    if isinstance(b, PackedMatrix):
        if transpose_b:
            raise ValueError("transpose_b is set with a PackedMatrix, which carries its own")
        return matmul_packed(a, b, out, transpose_a)
    if getattr(a, "ndim", 2) == 3:
        return matmul_planes(a, b, out, transpose_a, transpose_b)
    return matmul_rows(a, b, out, transpose_a, transpose_b)


cdef str wrong(tuple a, tuple b, tuple out, bint transpose_a, bint transpose_b):
    return (f"a {a}{' transposed' if transpose_a else ''}, b {b}{' transposed' if transpose_b else ''} and out {out} do "
            "not fit: expected a (m, k), b (k, n), out (m, n)")


cdef matmul_rows(const float[:, :] a, const float[:, :] b, float[:, :] out, bint transpose_a, bint transpose_b):
    cdef const matmul_table *t = <const matmul_table *>table()
    cdef Py_ssize_t m = a.shape[1 if transpose_a else 0], k = a.shape[0 if transpose_a else 1]
    cdef Py_ssize_t n = b.shape[0 if transpose_b else 1], lda, ldb, ldc
    cdef const float *pa
    cdef const float *pb
    cdef const float *pc
    cdef int status
    cdef unsigned long long saved
    if b.shape[1 if transpose_b else 0] != k or out.shape[0] != m or out.shape[1] != n:
        raise ValueError(wrong((a.shape[0], a.shape[1]), (b.shape[0], b.shape[1]), (out.shape[0], out.shape[1]),
                               transpose_a, transpose_b))
    rows_of("a", a, &pa, &lda)
    rows_of("b", b, &pb, &ldb)
    rows_of("out", out, &pc, &ldc)
    with nogil:
        saved = fp_enter()
        status = t.gemm(degree_current(), transpose_a, transpose_b, m, n, k, pa, lda, pb, ldb, NULL, <float *>pc, ldc,
                        NULL, NULL)
        fp_leave(saved)
    raise_status(status)


cdef matmul_packed(const float[:, :] a, PackedMatrix b, float[:, :] out, bint transpose_a):
    cdef const matmul_table *t = <const matmul_table *>table()
    cdef Py_ssize_t m = a.shape[1 if transpose_a else 0], k = a.shape[0 if transpose_a else 1], lda, ldc
    cdef const float *pa
    cdef const float *pc
    cdef int status
    cdef unsigned long long saved
    if b.rows != k or out.shape[0] != m or out.shape[1] != b.columns:
        raise ValueError(wrong((a.shape[0], a.shape[1]), (b.rows, b.columns), (out.shape[0], out.shape[1]),
                               transpose_a, False))
    rows_of("a", a, &pa, &lda)
    rows_of("out", out, &pc, &ldc)
    packed = b.packed()
    cdef const float *pb = address_of(packed)
    with nogil:
        saved = fp_enter()
        status = t.gemm(degree_current(), transpose_a, 0, m, b.columns, k, pa, lda, NULL, 0, pb, <float *>pc, ldc,
                        NULL, NULL)
        fp_leave(saved)
    raise_status(status)


cdef matmul_planes(const float[:, :, :] a, const float[:, :, :] b, float[:, :, :] out, bint transpose_a,
                   bint transpose_b):
    cdef const matmul_table *t = <const matmul_table *>table()
    cdef Py_ssize_t count = a.shape[0], m = a.shape[2 if transpose_a else 1], k = a.shape[1 if transpose_a else 2]
    cdef Py_ssize_t n = b.shape[1 if transpose_b else 2], lda, ldb, ldc, a_step, b_step, c_step
    cdef const float *pa
    cdef const float *pb
    cdef const float *pc
    cdef int status
    cdef unsigned long long saved
    if (b.shape[0] != count or out.shape[0] != count or b.shape[2 if transpose_b else 1] != k or out.shape[1] != m
            or out.shape[2] != n):
        raise ValueError(wrong((count, a.shape[1], a.shape[2]), (b.shape[0], b.shape[1], b.shape[2]),
                               (out.shape[0], out.shape[1], out.shape[2]), transpose_a, transpose_b))
    planes_of("a", a, &pa, &lda, &a_step)
    planes_of("b", b, &pb, &ldb, &b_step)
    planes_of("out", out, &pc, &ldc, &c_step)
    with nogil:
        saved = fp_enter()
        status = t.gemm_batched(degree_current(), transpose_a, transpose_b, count, m, n, k, pa, lda, a_step, pb, ldb,
                                b_step, <float *>pc, ldc, c_step)
        fp_leave(saved)
    raise_status(status)


def fma_probe(Py_ssize_t steps):
    """Runs steps rounds of independent fused multiply-adds in registers and returns the number of floating-point
    operations: what a matrix product's speed is a share of (tools/bench/gemm.py)."""
    cdef const matmul_table *t = <const matmul_table *>table()
    cdef double operations
    if steps < 0:
        raise ValueError(f"steps = {steps}: expected a number >= 0")
    with nogil:
        operations = t.gemm_probe(steps)
    return operations
