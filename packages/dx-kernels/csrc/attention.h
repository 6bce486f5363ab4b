/* Multi-head attention and pointer scores, forward and adjoint.
 *
 * q, out, dq, dout have nq rows, k, v, dk, dv nk rows; row i of head h starts at q + i * q_stride + h * d (strides
 * count floats; the packed qkv of one linear layer has q, k, v next to each other and one stride). bias, probs, dbias,
 * scores, dscores are (heads, nq, nk) row-major; bias may be NULL. mask is NULL or bytes, query i's row at
 * mask + i * mask_stride (0: one row for all), nonzero admits the key; with causal, query i admits keys 0..i.
 * The scale is the binary32 square root of d, by division.
 *
 *   attention_forward   out, and probs unless NULL
 *   attention_backward  dq, dk, dv, and dbias unless NULL, from dout and probs
 *   pointer_forward     scores (-inf where not admitted)        from q, k, bias, mask, causal
 *   pointer_backward    dq, dk                                  from dscores */
typedef struct {
    ptrdiff_t heads, nq, nk, d;
    ptrdiff_t q_stride, k_stride, v_stride, out_stride, mask_stride;
    ptrdiff_t dq_stride, dk_stride, dv_stride;
    const float *q, *k, *v, *bias, *probs_in, *dout, *dscores;
    const unsigned char *mask;
    int causal;
    float *out, *probs, *scores, *dq, *dk, *dv, *dbias;
} dx_attention;

#define DX_ATTENTION(F) \
    F(int, attention_forward, (int degree, const dx_attention *a)) \
    F(int, attention_backward, (int degree, const dx_attention *a)) \
    F(int, pointer_forward, (int degree, const dx_attention *a)) \
    F(int, pointer_backward, (int degree, const dx_attention *a))
