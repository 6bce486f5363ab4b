/* dx-kernels without Python: kernels of every path on fixed inputs, one digest an item (dx-numerics' driver/report.h).
 * tests/test_drivers.py computes the same items through the Python package. */
#include "report.h"
#include "table.h"

int dx_path_supported(int path);
uint64_t dx_fp_enter(void);

static void serial(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree)
{
    (void)degree;
    for (ptrdiff_t begin = 0; begin < count; begin += grain)
        task(context, begin, begin + grain < count ? begin + grain : count, 0);
}

static void require(int status)
{
    if (status != DX_OK) exit(2);
}

static const dx_kernels_table *t;
static int path;

static void activations(void)
{
    enum { N = 2000 };
    float *x = between(N, "act.x", -8, 8), *e = encodings(N / 2, "act.e"), *dy = between(N, "act.dy", -1, 1);
    float *h = between(N, "act.h", -1, 1), y[N], terms[N], dx[N];
    memcpy(x + N / 2, e, sizeof(float) * N / 2);
    require(t->relu_forward(1, N, x, y)), report(path, "relu_forward", 'f', y, N);
    require(t->relu_backward(1, N, dy, x, dx)), report(path, "relu_backward", 'f', dx, N);
    require(t->tanh_forward(1, N, x, y)), report(path, "tanh_forward", 'f', y, N);
    require(t->tanh_backward(1, N, dy, h, dx)), report(path, "tanh_backward", 'f', dx, N);
    require(t->sigmoid_forward(1, N, x, y)), report(path, "sigmoid_forward", 'f', y, N);
    require(t->sigmoid_backward(1, N, dy, h, dx)), report(path, "sigmoid_backward", 'f', dx, N);
    require(t->gelu_tanh_forward(1, N, x, y, terms)), report(path, "gelu_tanh_forward", 'f', y, N);
    require(t->gelu_tanh_backward(1, N, dy, x, terms, dx)), report(path, "gelu_tanh_backward", 'f', dx, N);
    require(t->gelu_erf_forward(1, N, x, y)), report(path, "gelu_erf_forward", 'f', y, N);
    require(t->gelu_erf_backward(1, N, dy, x, dx)), report(path, "gelu_erf_backward", 'f', dx, N);
    free(x), free(e), free(dy), free(h);
}

static void layer_norm(void)
{
    enum { ROWS = 21, D = 100 };
    float *x = between(ROWS * D, "norm.x", -3, 5), *w = between(D, "norm.w", -1, 1), *b = between(D, "norm.b", -1, 1);
    float *dy = between(ROWS * D, "norm.dy", -1, 1), y[ROWS * D], xhat[ROWS * D], inv[ROWS], dx[ROWS * D], dw[D], db[D];
    require(t->layer_norm_forward(1, ROWS, D, x, w, b, 1e-5f, y, xhat, inv));
    report(path, "layer_norm_forward", 'f', y, ROWS * D);
    require(t->layer_norm_backward(1, ROWS, D, dy, xhat, inv, w, dx, 0, dw, db));
    report(path, "layer_norm_dx", 'f', dx, ROWS * D);
    report(path, "layer_norm_dweight", 'f', dw, D);
    report(path, "layer_norm_dbias", 'f', db, D);
    free(x), free(w), free(b), free(dy);
}

static void softmax(void)
{
    enum { ROWS = 5, N = 37 };
    float *raw = between(ROWS * N, "softmax.raw", -40, 40), *bias = between(ROWS * N, "softmax.bias", -4, 4);
    float *dp = between(ROWS * N, "softmax.dp", -1, 1), p[ROWS * N], draw[ROWS * N], dbias[ROWS * N];
    int32_t limits[ROWS] = {0, 1, 16, 30, 37};
    require(t->softmax_forward(1, ROWS, N, raw, 3.0f, bias, NULL, 0, limits, p));
    report(path, "softmax_forward", 'f', p, ROWS * N);
    require(t->softmax_backward(1, ROWS, N, p, dp, 3.0f, draw, dbias));
    report(path, "softmax_draw", 'f', draw, ROWS * N);
    report(path, "softmax_dbias", 'f', dbias, ROWS * N);
    free(raw), free(bias), free(dp);
}

static void products(void)
{
    enum { M = 13, N = 45, K = 70 };
    float *a = between(M * K, "gemm.a", -1, 1), *b = between(K * N, "gemm.b", -1, 1), c[M * N];
    require(t->gemm(1, 0, 0, M, N, K, a, K, b, N, NULL, c, N, NULL, NULL)), report(path, "gemm_nn", 'f', c, M * N);
    require(t->gemm(1, 0, 1, M, N, K, a, K, b, K, NULL, c, N, NULL, NULL)), report(path, "gemm_nt", 'f', c, M * N);
    require(t->gemm(1, 1, 0, M, N, K, a, M, b, N, NULL, c, N, NULL, NULL)), report(path, "gemm_tn", 'f', c, M * N);
    free(a), free(b);
}

static void linear(void)
{
    enum { ROWS = 13, IN = 70, OUT = 45 };
    float *x = between(ROWS * IN, "linear.x", -1, 1), *w = between(OUT * IN, "linear.w", -1, 1);
    float *b = between(OUT, "linear.b", -1, 1), *r = between(ROWS * OUT, "linear.r", -1, 1);
    float *dy = between(ROWS * OUT, "linear.dy", -1, 1), y[ROWS * OUT], dx[ROWS * IN], dw[OUT * IN], db[OUT];
    static const int kinds[] = {DX_LINEAR_PLAIN, DX_LINEAR_RELU, DX_LINEAR_GELU_TANH, DX_LINEAR_GELU_ERF};
    static const char *const names[] = {"linear_plain", "linear_relu", "linear_gelu_tanh", "linear_gelu_erf"};
    for (int k = 0; k < 4; k++) {
        require(t->linear_forward(1, ROWS, IN, OUT, x, IN, w, NULL, b, kinds[k], r, NULL, NULL, y, OUT));
        report(path, names[k], 'f', y, ROWS * OUT);
    }
    require(t->linear_backward(1, ROWS, IN, OUT, dy, OUT, x, IN, w, NULL, dx, IN, 0, dw, db));
    report(path, "linear_dx", 'f', dx, ROWS * IN);
    report(path, "linear_dweight", 'f', dw, OUT * IN);
    report(path, "linear_dbias", 'f', db, OUT);
    double square = t->squared_norm(OUT * IN, w);
    report(path, "squared_norm", 'd', &square, 1);
    free(x), free(w), free(b), free(r), free(dy);
}

int main(void)
{
    dx_rt.parallel = serial;
    dx_fp_enter();
    for (path = 0; path < DX_PATH_COUNT; path++) {
        t = dx_kernels_tables[path];
        if (!t || !dx_path_supported(path)) continue;
        activations();
        layer_norm();
        softmax();
        products();
        linear();
    }
    return 0;
}
