# The arguments of the attention kernels (csrc/attention.h), and the checks that attention and pointer share.
cdef extern from "table.h" nogil:
    ctypedef struct dx_attention:
        Py_ssize_t heads, nq, nk, d
        Py_ssize_t q_stride, k_stride, v_stride, out_stride, mask_stride
        Py_ssize_t dq_stride, dk_stride, dv_stride
        const float *q
        const float *k
        const float *v
        const float *bias
        const float *probs_in
        const float *dout
        const float *dscores
        const unsigned char *mask
        int causal
        float *out
        float *probs
        float *scores
        float *dq
        float *dk
        float *dv
        float *dbias

# heads, d, from a width of parts * heads * d columns.
cdef int set_heads(dx_attention *a, str name, Py_ssize_t width, Py_ssize_t parts, Py_ssize_t heads) except -1
cdef int set_admitted(dx_attention *a, const unsigned char[:, ::1] mask, bint causal) except -1
