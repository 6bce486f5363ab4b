/* Products of a few rows with B unpacked: B is read once, as it is, since packing it would cost more than the product.
 *
 *   B as rows of k     a stretch of columns at a time, all 16 lanes' partial results of it in cache, so that B's rows are
 *                      read along; the columns beyond the last whole vector come from a vector that ends with the last
 *   B as columns       the 16 lanes of an element lie in one register, some columns share each load of A
 *
 * Threads share out the columns. */
#include "gemm_block.h"
#include <dx_numerics/dot.h>

#define FEW_ROWS 4
#define FEW_STEPS 8    /* rows of k that a lane takes at a time */
#define FEW_STATE 8192 /* floats of partial results: half of the first-level cache */

#if DX_PATH == DX_PATH_AVX512
#define DOT_MR 4
#define DOT_NC 4
#else
#define DOT_MR 2
#define DOT_NC 3
#endif

/* MR rows times NC columns to a tile with rows of width. */
DX_INLINE void dots(const int MR, const int NC, ptrdiff_t K, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb,
                    float *tile, ptrdiff_t width)
{
    dx_lanes c[DOT_MR * DOT_NC];
    DX_UNROLL(16)
    for (int t = 0; t < MR * NC; t++) c[t] = dx_lanes_zero();
    ptrdiff_t k = 0;
    for (; k + 16 <= K; k += 16) {
        DX_UNROLL(16)
        for (int t = 0; t < MR * NC; t++) dx_lanes_fma(&c[t], a + t / NC * lda + k, b + t % NC * ldb + k);
    }
    if (k < K) {
        float ta[DOT_MR * 16], tb[DOT_NC * 16];
        for (int i = 0; i < MR; i++) dx_pad16(ta + 16 * i, a + i * lda + k, K - k, 1);
        for (int j = 0; j < NC; j++) dx_pad16(tb + 16 * j, b + j * ldb + k, K - k, 1);
        DX_UNROLL(16)
        for (int t = 0; t < MR * NC; t++) dx_lanes_fma(&c[t], ta + t / NC * 16, tb + t % NC * 16);
    }
    DX_UNROLL(16)
    for (int t = 0; t < MR * NC; t++) tile[t / NC * width + t % NC] = dx_lanes_tree(c[t]);
}

#define DOTS(MR) \
    static void dots##MR(int NC, ptrdiff_t K, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *tile, \
                         ptrdiff_t width) \
    { \
        if (NC == DOT_NC) dots(MR, DOT_NC, K, a, lda, b, ldb, tile, width); \
        else dots(MR, 1, K, a, lda, b, ldb, tile, width); \
    }
DOTS(1) DOTS(2)
#if DOT_MR == 4
DOTS(3) DOTS(4)
#endif
static void (*const dots_of[DOT_MR + 1])(int, ptrdiff_t, const float *, ptrdiff_t, const float *, ptrdiff_t, float *,
                                         ptrdiff_t) = {
    NULL, dots1, dots2,
#if DOT_MR == 4
    dots3, dots4,
#endif
};

static void few_by_columns(const dx_gemm_job *g, ptrdiff_t j, ptrdiff_t j_end)
{
    _Alignas(64) float tile[DOT_MR * DX_GEMM_NR] = {0};
    for (ptrdiff_t n; j < j_end; j += n) {
        n = j_end - j < DX_GEMM_NR ? j_end - j : DX_GEMM_NR;
        for (ptrdiff_t i = 0, m; i < g->M; i += m) {
            m = g->M - i < DOT_MR ? g->M - i : DOT_MR;
            float *c = g->C + i * g->ldc + j;
            for (ptrdiff_t q = 0, columns; q < n; q += columns) {
                columns = n - q < DOT_NC ? 1 : DOT_NC;
                dots_of[m]((int)columns, g->K, g->A + i * g->lda, g->lda, g->B + (j + q) * g->ldb, g->ldb, tile + q,
                           DX_GEMM_NR);
            }
            if (g->epilogue) g->epilogue(g->context, tile, DX_GEMM_NR, c, g->ldc, i, j, m, n);
            else
                for (ptrdiff_t r = 0; r < m; r++) memcpy(c + r * g->ldc, tile + r * DX_GEMM_NR, sizeof(float) * (size_t)n);
        }
    }
}

/* One lane, S of its rows of k, over columns: row s of A's S values for row i at a[i * lda + 16 * s], row s of B at
 * b + s * b_step; partial results in rows of columns. */
DX_INLINE void lane_rows(const int MR, const int S, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t b_step,
                         float *state, ptrdiff_t columns)
{
    dx_vf av[FEW_ROWS * FEW_STEPS];
    DX_UNROLL(16)
    for (int t = 0; t < MR * S; t++) av[t] = dx_vset(a[t / S * lda + t % S * 16]);
    for (ptrdiff_t j = 0; j < columns; j += DX_VL) {
        dx_vf bv[FEW_STEPS];
        DX_UNROLL(8)
        for (int s = 0; s < S; s++) bv[s] = dx_vload(b + s * b_step + j);
        DX_UNROLL(8)
        for (int i = 0; i < MR; i++) {
            dx_vf c = dx_vload(state + i * columns + j);
            DX_UNROLL(8)
            for (int s = 0; s < S; s++) c = dx_vfma(av[i * S + s], bv[s], c);
            dx_vstore(state + i * columns + j, c);
        }
    }
}

#define LANE_ROWS(MR, S) \
    static void lane_rows##MR(ptrdiff_t steps, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t b_step, \
                              float *state, ptrdiff_t columns) \
    { \
        for (; steps >= S; steps -= S, a += 16 * S, b += S * b_step) \
            lane_rows(MR, S, a, lda, b, b_step, state, columns); \
        for (; steps > 0; steps--, a += 16, b += b_step) lane_rows(MR, 1, a, lda, b, b_step, state, columns); \
    }
LANE_ROWS(1, 8) LANE_ROWS(2, 8) LANE_ROWS(3, 8) LANE_ROWS(4, 4)
static void (*const lane_rows_of[FEW_ROWS + 1])(ptrdiff_t, const float *, ptrdiff_t, const float *, ptrdiff_t, float *,
                                                ptrdiff_t) = {NULL, lane_rows1, lane_rows2, lane_rows3, lane_rows4};

/* columns: a multiple of DX_VL, at most FEW_STATE / (16 * M). The padding of a partial last chunk of 16 is +0 added to
 * its lanes. */
static void few_block(const dx_gemm_job *g, const float *b, ptrdiff_t columns, float *c, ptrdiff_t ldc)
{
    _Alignas(64) float state[FEW_STATE];
    const ptrdiff_t lane_floats = g->M * columns, tail = g->K % 16;
    memset(state, 0, sizeof(float) * (size_t)(16 * lane_floats));
    for (ptrdiff_t k = 0; k < g->K; k += 16 * FEW_STEPS)
        for (ptrdiff_t lane = 0; lane < 16 && k + lane < g->K; lane++) {
            const ptrdiff_t left = (g->K - k - lane + 15) / 16;
            lane_rows_of[g->M](left < FEW_STEPS ? left : FEW_STEPS, g->A + k + lane, g->lda, b + (k + lane) * g->ldb,
                               16 * g->ldb, state + lane * lane_floats, columns);
        }
    if (tail)
        for (ptrdiff_t q = tail * lane_floats; q < 16 * lane_floats; q++) state[q] = state[q] + 0.0f;
    for (int h = 8; h; h >>= 1)
        for (ptrdiff_t q = 0; q < h * lane_floats; q++) state[q] = state[q] + state[q + h * lane_floats];
    for (ptrdiff_t i = 0; i < g->M; i++) memcpy(c + i * ldc, state + i * columns, sizeof(float) * (size_t)columns);
}

static void few_by_rows(const dx_gemm_job *g, ptrdiff_t j, ptrdiff_t j_end)
{
    const ptrdiff_t most = FEW_STATE / 16 / DX_VL / g->M * DX_VL, ragged = (j_end - j) % DX_VL;
    for (ptrdiff_t n; j < j_end - ragged; j += n) {
        n = j_end - ragged - j < most ? j_end - ragged - j : most;
        few_block(g, g->B + j, n, g->C + j, g->ldc);
    }
    if (ragged) {
        float tile[FEW_ROWS * DX_VL];
        few_block(g, g->B + j_end - DX_VL, DX_VL, tile, DX_VL);
        for (ptrdiff_t i = 0; i < g->M; i++)
            memcpy(g->C + i * g->ldc + j, tile + (i + 1) * DX_VL - ragged, sizeof(float) * (size_t)ragged);
    }
}

static void few_panels(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const dx_gemm_job *g = context;
    const ptrdiff_t j = begin * DX_GEMM_NR, j_end = end * DX_GEMM_NR < g->N ? end * DX_GEMM_NR : g->N;
    (void)worker;
    if (g->trans_b) few_by_columns(g, j, j_end);
    else few_by_rows(g, j, j_end);
}

int DX_FN(gemm_few)(int degree, const dx_gemm_job *g, int *status)
{
    if (g->packed || g->K == 0 || g->M > FEW_ROWS || (g->trans_b ? g->N < DOT_NC : g->N < DX_VL || g->epilogue)) return 0;
    dx_gemm_job few = *g;
    dx_mark mark = dx_scratch_mark();
    *status = DX_OK;
    if (g->trans_a) {
        float *rows = dx_scratch(sizeof(float) * (size_t)(g->M * g->K));
        if (!rows) {
            *status = DX_NO_MEMORY;
            return 1;
        }
        for (ptrdiff_t i = 0; i < g->M; i++)
            for (ptrdiff_t k = 0; k < g->K; k++) rows[i * g->K + k] = g->A[k * g->lda + i];
        few.A = rows;
        few.lda = g->K;
    }
    const ptrdiff_t panels = (g->N + DX_GEMM_NR - 1) / DX_GEMM_NR;
    dx_rt.parallel(few_panels, &few, panels, degree > 1 ? (panels + 4 * degree - 1) / (4 * degree) : panels, degree);
    dx_scratch_release(mark);
    return 1;
}
