/* The tiles of gemm_kernel.h as functions, and the serial products built from them (gemm.h). */
#include "gemm_pack.h"
#include "gemm_block.h"

typedef void (*tile_function)(ptrdiff_t chunks, ptrdiff_t tail, const float *a, ptrdiff_t lda, const float *b,
                              ptrdiff_t ldb, float *out, ptrdiff_t ldc);

#define TILE(name, MR, NV, a_kind, b_kind) \
    static void name##MR##x##NV(ptrdiff_t chunks, ptrdiff_t tail, const float *a, ptrdiff_t lda, const float *b, \
                                ptrdiff_t ldb, float *out, ptrdiff_t ldc) \
    { \
        dx_tile(MR, NV, a_kind, b_kind, chunks, tail, a, lda, b, ldb, out, ldc); \
    }
#if DX_GEMM_MR == 7
#define EACH_MR(F, ...) F(1, __VA_ARGS__) F(2, __VA_ARGS__) F(3, __VA_ARGS__) F(4, __VA_ARGS__) F(5, __VA_ARGS__) \
    F(6, __VA_ARGS__) F(7, __VA_ARGS__)
#elif DX_GEMM_MR == 4
#define EACH_MR(F, ...) F(1, __VA_ARGS__) F(2, __VA_ARGS__) F(3, __VA_ARGS__) F(4, __VA_ARGS__)
#else
#define EACH_MR(F, ...) F(1, __VA_ARGS__) F(2, __VA_ARGS__) F(3, __VA_ARGS__)
#endif
#define DEFINE(MR, name, a_kind, b_kind) TILE(name, MR, 1, a_kind, b_kind) TILE(name, MR, 2, a_kind, b_kind)
#define ENTRY(MR, name) [MR] = {0, name##MR##x1, name##MR##x2},

EACH_MR(DEFINE, plain, DX_A_ROWS, DX_B_PACKED)
EACH_MR(DEFINE, turned, DX_A_COLUMNS, DX_B_PACKED)
EACH_MR(DEFINE, strip, DX_A_PACKED, DX_B_PACKED)
EACH_MR(DEFINE, direct, DX_A_ROWS, DX_B_ROWS)

/* By rows and vectors of columns. */
static const tile_function plain[DX_GEMM_MR + 1][DX_GEMM_NV + 1] = {EACH_MR(ENTRY, plain)};
static const tile_function turned[DX_GEMM_MR + 1][DX_GEMM_NV + 1] = {EACH_MR(ENTRY, turned)};
static const tile_function strip[DX_GEMM_MR + 1][DX_GEMM_NV + 1] = {EACH_MR(ENTRY, strip)};
static const tile_function direct[DX_GEMM_MR + 1][DX_GEMM_NV + 1] = {EACH_MR(ENTRY, direct)};

void DX_FN(gemm_pack_part)(int trans_b, ptrdiff_t K, ptrdiff_t n, ptrdiff_t N, const float *B, ptrdiff_t ldb,
                           float *packed)
{
    for (ptrdiff_t j = 0; j < N; j += DX_GEMM_NR) {
        const ptrdiff_t width = dx_panel_width(N, j), present = n - j < 0 ? 0 : n - j < width ? n - j : width;
        if (trans_b) dx_pack_columns(K, present, width, B + j * ldb, ldb, packed + j * dx_rounded_k(K));
        else dx_pack_rows(K, present, width, B + j, ldb, packed + j * dx_rounded_k(K));
    }
}

/* Strips of transposed A, up to four at a time, so that a row of k is read over most of a cache line. The k come in the
 * order of the strips' rows: a row but the last may be written as DX_STRIP_COPY floats, the next covers what is too much. */
static void pack_strips(ptrdiff_t K, ptrdiff_t M, const float *a, ptrdiff_t lda, float *out)
{
    const ptrdiff_t chunks = dx_rounded_k(K) / 16, last = chunks * 16 - 1;
    for (ptrdiff_t i = 0; i < M;) {
        ptrdiff_t rows[4] = {0}, at[4] = {0};
        float *to[4] = {0};
        int count = 0;
        for (; count < 4 && i < M; count++) {
            at[count] = i;
            to[count] = out + i * 16 * chunks;
            rows[count] = dx_next_rows(M - i);
            i += rows[count];
        }
        const int roomy = count == 4 && at[3] + DX_STRIP_COPY <= M;
        for (int group = 0; group < 16; group += DX_GEMM_G)
            for (ptrdiff_t step = 0; step < chunks * DX_GEMM_G; step++) {
                const ptrdiff_t k = step / DX_GEMM_G * 16 + dx_lane_order[group + step % DX_GEMM_G];
                const float *from = a + k * lda;
                if (roomy && k < K && k != last) {
                    DX_UNROLL(4)
                    for (int q = 0; q < 4; q++) {
                        memcpy(to[q], from + at[q], sizeof(float) * DX_STRIP_COPY);
                        to[q] += rows[q];
                    }
                } else
                    for (int q = 0; q < count; to[q] += rows[q], q++)
                        for (ptrdiff_t r = 0; r < rows[q]; r++) to[q][r] = k < K ? from[at[q] + r] : 0.0f;
            }
    }
}

/* m rows from row i on times the panel at column j. b: the packed panel, or with is_direct the first element of the
 * panel's plain rows (then A is not transposed); rows: the packed strip of A, or NULL for A as it is. */
static void one_tile(const dx_gemm_job *g, ptrdiff_t i, ptrdiff_t m, ptrdiff_t j, const float *b, int is_direct,
                     const float *rows)
{
    const ptrdiff_t K = g->K, width = dx_panel_width(g->N, j), n = g->N - j < width ? g->N - j : width;
    const int NV = (int)(width / DX_VL), through = n < width || g->epilogue;
    _Alignas(64) float tile[DX_GEMM_MR * DX_GEMM_NR];
    float *c = g->C + i * g->ldc + j, *out = through ? tile : c;
    const ptrdiff_t out_step = through ? width : g->ldc;
    if (rows) strip[m][NV](K / 16, K % 16, rows, 0, b, 0, out, out_step);
    else if (g->trans_a) turned[m][NV](K / 16, K % 16, g->A + i, g->lda, b, 0, out, out_step);
    else (is_direct ? direct : plain)[m][NV](K / 16, K % 16, g->A + i * g->lda, g->lda, b, g->ldb, out, out_step);
    if (g->epilogue) g->epilogue(g->context, tile, width, c, g->ldc, i, j, m, n);
    else if (through)
        for (ptrdiff_t r = 0; r < m; r++)
            for (ptrdiff_t q = 0; q < n; q++) c[r * g->ldc + q] = tile[r * width + q];
}

/* All rows of one panel before the next panel: the panel stays in the first-level cache. */
void DX_FN(gemm_block)(const dx_gemm_job *g, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, ptrdiff_t j_end, float *work)
{
    const ptrdiff_t K16 = dx_rounded_k(g->K);
    float *panel = work, *strips = NULL;
    if (g->trans_a && j_end - j > DX_GEMM_NR) { /* for a single panel, packing would cost more than it gains */
        strips = work + (g->packed ? 0 : K16 * DX_GEMM_NR);
        pack_strips(g->K, i_end - i, g->A + i, g->lda, strips);
    }
    for (; j < j_end; j += DX_GEMM_NR) {
        const ptrdiff_t width = dx_panel_width(g->N, j), n = g->N - j < width ? g->N - j : width;
        const float *b = panel;
        if (g->packed) b = g->packed + j * K16;
        else {
            DX_FN(gemm_pack_part)(g->trans_b, g->K, n, width, g->trans_b ? g->B + j * g->ldb : g->B + j, g->ldb, panel);
        }
        for (ptrdiff_t r = i, m; r < i_end; r += m) {
            m = dx_next_rows(i_end - r);
            one_tile(g, r, m, j, b, 0, strips ? strips + (r - i) * K16 : NULL);
        }
    }
}

void DX_FN(gemm_rows)(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, ptrdiff_t lda, const float *packed,
                      float *C, ptrdiff_t ldc)
{
    const dx_gemm_job g = {.M = M, .N = N, .K = K, .A = A, .lda = lda, .packed = packed, .C = C, .ldc = ldc};
    DX_FN(gemm_block)(&g, 0, M, 0, N, NULL);
}

void DX_FN(gemm_direct)(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, ptrdiff_t lda, const float *B,
                        ptrdiff_t ldb, float *C, ptrdiff_t ldc)
{
    const dx_gemm_job g = {.M = M, .N = N, .K = K, .A = A, .lda = lda, .ldb = ldb, .C = C, .ldc = ldc};
    for (ptrdiff_t r = 0, m; r < M; r += m) {
        m = dx_next_rows(M - r);
        for (ptrdiff_t j = 0; j < N; j += DX_GEMM_NR) one_tile(&g, r, m, j, B + j, 1, NULL);
    }
}

double DX_FN(gemm_probe)(ptrdiff_t steps)
{
    enum { CHAINS = DX_VL == 16 || DX_PATH == DX_PATH_NEON ? 24 : 12 };
    dx_vf c[CHAINS], x = dx_vset(1.0f), y = dx_vset(0x1p-30f);
    for (int i = 0; i < CHAINS; i++) c[i] = dx_vset((float)i);
    for (ptrdiff_t s = 0; s < steps; s++) {
        DX_UNROLL(32)
        for (int i = 0; i < CHAINS; i++) c[i] = dx_vfma(x, y, c[i]);
    }
    volatile float keep = 0.0f;
    for (int i = 0; i < CHAINS; i++) keep = keep + c[i][0];
    return 2.0 * CHAINS * DX_VL * (double)steps;
}
