/* Activations over n elements; y may be x, dx may be dy. relu_backward takes relu's input or output; tanh_backward and
 * sigmoid_backward take the output; t (the tanh terms) may be NULL in gelu_tanh_forward. */
#define DX_ACTIVATIONS(F) \
    F(int, relu_forward, (int degree, ptrdiff_t n, const float *x, float *y)) \
    F(int, relu_backward, (int degree, ptrdiff_t n, const float *dy, const float *x, float *dx)) \
    F(int, tanh_forward, (int degree, ptrdiff_t n, const float *x, float *y)) \
    F(int, tanh_backward, (int degree, ptrdiff_t n, const float *dy, const float *y, float *dx)) \
    F(int, sigmoid_forward, (int degree, ptrdiff_t n, const float *x, float *y)) \
    F(int, sigmoid_backward, (int degree, ptrdiff_t n, const float *dy, const float *y, float *dx)) \
    F(int, gelu_tanh_forward, (int degree, ptrdiff_t n, const float *x, float *y, float *t)) \
    F(int, gelu_tanh_backward, (int degree, ptrdiff_t n, const float *dy, const float *x, const float *t, float *dx)) \
    F(int, gelu_erf_forward, (int degree, ptrdiff_t n, const float *x, float *y)) \
    F(int, gelu_erf_backward, (int degree, ptrdiff_t n, const float *dy, const float *x, float *dx))
