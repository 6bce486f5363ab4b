/* Activations over arrays (activations_inline.h has the formulas). Elements are independent. */
#include "tanh_vectors.h"
#include "table.h"

typedef struct {
    const float *a, *b, *c;
    float *out, *saved;
} job;

#define DX_ELEMENTS(name, statement) \
    static void name(void *context, ptrdiff_t begin, ptrdiff_t end, int worker) \
    { \
        const job *j = context; \
        const float *a = j->a, *b = j->b, *c = j->c; \
        float *out = j->out, *saved = j->saved; \
        (void)worker; (void)b; (void)c; (void)saved; \
        DX_INDEPENDENT \
        for (ptrdiff_t i = begin; i < end; i++) { statement; } \
    }

/* An element is read before it is written and no other is touched, so out may be an input. */
#if defined(__clang__)
#define DX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define DX_INDEPENDENT _Pragma("GCC ivdep")
#endif

DX_ELEMENTS(relu, out[i] = dx_relu(a[i]))
DX_ELEMENTS(relu_back, out[i] = dx_relu_grad(a[i], b[i]))
DX_ELEMENTS(tanh_back, out[i] = dx_tanh_grad(a[i], b[i]))
DX_ELEMENTS(sigmoid, out[i] = dx_sigmoid32(a[i]))
DX_ELEMENTS(sigmoid_back, out[i] = dx_sigmoid_grad(a[i], b[i]))
DX_ELEMENTS(gelu_tanh_back, out[i] = dx_gelu_tanh_grad(a[i], b[i], c[i]))
DX_ELEMENTS(gelu_erf, out[i] = dx_gelu_erf(a[i]))
DX_ELEMENTS(gelu_erf_back, out[i] = dx_gelu_erf_grad(a[i], b[i]))

static void tanh_(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *j = context;
    (void)worker;
    dx_tanh_all(end - begin, j->a + begin, j->out + begin);
}

static void gelu_tanh(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const job *j = context;
    (void)worker;
    dx_gelu_tanh_all(end - begin, j->a + begin, j->out + begin, j->saved ? j->saved + begin : NULL);
}

static int run(dx_task task, job j, ptrdiff_t n, double work, int degree)
{
    dx_rt.parallel(task, &j, n, dx_grain(n, work, degree), degree);
    return DX_OK;
}

int DX_FN(relu_forward)(int degree, ptrdiff_t n, const float *x, float *y)
{
    return run(relu, (job){.a = x, .out = y}, n, 0.25, degree);
}

int DX_FN(relu_backward)(int degree, ptrdiff_t n, const float *dy, const float *x, float *dx)
{
    return run(relu_back, (job){.a = dy, .b = x, .out = dx}, n, 0.25, degree);
}

int DX_FN(tanh_forward)(int degree, ptrdiff_t n, const float *x, float *y)
{
    return run(tanh_, (job){.a = x, .out = y}, n, 2.0, degree);
}

int DX_FN(tanh_backward)(int degree, ptrdiff_t n, const float *dy, const float *y, float *dx)
{
    return run(tanh_back, (job){.a = dy, .b = y, .out = dx}, n, 0.5, degree);
}

int DX_FN(sigmoid_forward)(int degree, ptrdiff_t n, const float *x, float *y)
{
    return run(sigmoid, (job){.a = x, .out = y}, n, 2.0, degree);
}

int DX_FN(sigmoid_backward)(int degree, ptrdiff_t n, const float *dy, const float *y, float *dx)
{
    return run(sigmoid_back, (job){.a = dy, .b = y, .out = dx}, n, 0.5, degree);
}

int DX_FN(gelu_tanh_forward)(int degree, ptrdiff_t n, const float *x, float *y, float *t)
{
    return run(gelu_tanh, (job){.a = x, .out = y, .saved = t}, n, 2.0, degree);
}

int DX_FN(gelu_tanh_backward)(int degree, ptrdiff_t n, const float *dy, const float *x, const float *t, float *dx)
{
    return run(gelu_tanh_back, (job){.a = dy, .b = x, .c = t, .out = dx}, n, 1.0, degree);
}

int DX_FN(gelu_erf_forward)(int degree, ptrdiff_t n, const float *x, float *y)
{
    return run(gelu_erf, (job){.a = x, .out = y}, n, 4.0, degree);
}

int DX_FN(gelu_erf_backward)(int degree, ptrdiff_t n, const float *dy, const float *x, float *dx)
{
    return run(gelu_erf_back, (job){.a = dy, .b = x, .out = dx}, n, 4.0, degree);
}
