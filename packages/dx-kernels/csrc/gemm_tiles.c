/* The tiles of gemm_kernel.h as functions, and the serial products built from them (gemm.h). */
#include "gemm_pack.h"
#include "gemm_block.h"

typedef void (*tile_function)(ptrdiff_t chunks, ptrdiff_t tail, const float *a, ptrdiff_t lda, const float *a_tail,
                              const float *b, ptrdiff_t ldb, float *out, ptrdiff_t ldc);

#define TILE(name, MR, NV, a_kind, b_kind) \
    static void name##MR##x##NV(ptrdiff_t chunks, ptrdiff_t tail, const float *a, ptrdiff_t lda, const float *a_tail, \
                                const float *b, ptrdiff_t ldb, float *out, ptrdiff_t ldc) \
    { \
        dx_tile(MR, NV, a_kind, b_kind, chunks, tail, a, lda, a_tail, b, ldb, out, ldc); \
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
EACH_MR(DEFINE, strip, DX_A_PACKED, DX_B_PACKED)
EACH_MR(DEFINE, direct, DX_A_ROWS, DX_B_ROWS)

/* By rows and vectors of columns. */
static const tile_function plain[DX_GEMM_MR + 1][DX_GEMM_NV + 1] = {EACH_MR(ENTRY, plain)};
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

/* Rows i..i_end-1 of the job times one panel: b is its packed form, or (direct) its first element in plain rows;
 * strips are the packed rows of A from i on, or NULL for plain rows. */
static void panel_rows(const dx_gemm_job *g, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, const float *b, int is_direct,
                       const float *strips)
{
    const ptrdiff_t K = g->K, chunks = K / 16, tail = K % 16;
    const ptrdiff_t width = dx_panel_width(g->N, j), n = g->N - j < width ? g->N - j : width;
    const int NV = (int)(width / DX_VL);
    const int through = n < width || g->epilogue;
    _Alignas(64) float tile[DX_GEMM_MR * DX_GEMM_NR];
    float a_tail[DX_GEMM_MR * 16];
    for (; i < i_end; i += DX_GEMM_MR) {
        const ptrdiff_t m = i_end - i < DX_GEMM_MR ? i_end - i : DX_GEMM_MR;
        float *c = g->C + i * g->ldc + j, *out = through ? tile : c;
        const ptrdiff_t out_step = through ? width : g->ldc;
        if (strips) {
            strip[m][NV](dx_rounded_k(K) / 16, 0, strips, 0, NULL, b, 0, out, out_step);
            strips += m * dx_rounded_k(K);
        } else {
            const float *a = g->A + i * g->lda;
            if (tail)
                for (ptrdiff_t r = 0; r < m; r++)
                    for (ptrdiff_t l = 0; l < 16; l++) a_tail[r * 16 + l] = l < tail ? a[r * g->lda + 16 * chunks + l] : 0.0f;
            (is_direct ? direct : plain)[m][NV](chunks, tail, a, g->lda, a_tail, b, g->ldb, out, out_step);
        }
        if (g->epilogue) g->epilogue(g->context, tile, width, c, g->ldc, i, j, m, n);
        else if (through)
            for (ptrdiff_t r = 0; r < m; r++)
                for (ptrdiff_t q = 0; q < n; q++) c[r * g->ldc + q] = tile[r * width + q];
    }
}

void DX_FN(gemm_block)(const dx_gemm_job *g, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, ptrdiff_t j_end, float *work)
{
    const ptrdiff_t K16 = dx_rounded_k(g->K);
    float *panel = work, *strips = NULL;
    if (g->trans_a) {
        strips = work + (g->packed ? 0 : K16 * DX_GEMM_NR);
        for (ptrdiff_t r = i; r < i_end; r += DX_GEMM_MR) {
            float *out = strips + (r - i) * K16;
            if (i_end - r >= DX_GEMM_MR) dx_pack_strip(DX_GEMM_MR, g->K, g->A + r, g->lda, out);
            else dx_pack_strip((int)(i_end - r), g->K, g->A + r, g->lda, out);
        }
    }
    for (; j < j_end; j += DX_GEMM_NR) {
        const float *b = panel;
        if (g->packed) b = g->packed + j * K16;
        else {
            const ptrdiff_t width = dx_panel_width(g->N, j), n = g->N - j < width ? g->N - j : width;
            DX_FN(gemm_pack_part)(g->trans_b, g->K, n, width, g->trans_b ? g->B + j * g->ldb : g->B + j, g->ldb, panel);
        }
        panel_rows(g, i, i_end, j, b, 0, strips);
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
    for (ptrdiff_t j = 0; j < N; j += DX_GEMM_NR) panel_rows(&g, 0, M, j, B + j, 1, NULL);
}
