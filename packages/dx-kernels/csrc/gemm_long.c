/* Products with a long contraction and a small result: weight gradients summed over the n^2 pairs of a page. Both
 * operands are read as they are, in one pass over the contraction.
 *
 *   long_columns   C = A^T B, rows of k: each dot lane has its own tile of partial results; a chunk of k at a time, all
 *                  lanes' tiles are taken up, carried on and put back. Threads share out the lanes.
 *   long_rows      C = A B^T, k contiguous: the 16 lanes of an element lie in registers, and are kept from chunk to chunk.
 *                  Threads share out the elements. */
#include "gemm_block.h"
#include <dx_numerics/dot.h>

/* k per chunk: what a chunk reads of both operands should stay in the first-level cache. */
#define CHUNK 256
/* From here on a contraction is long. */
#define LONG 2048

#if DX_PATH == DX_PATH_AVX512
#define DOT_MR 4
#define DOT_NC 4
#else
#define DOT_MR 2
#define DOT_NC 3
#endif

typedef struct {
    dx_gemm_job g;
    ptrdiff_t stride;  /* long_columns: floats of a row of partial results */
    ptrdiff_t columns; /* long_rows: columns of C a task */
    float *state;
    dx_lanes *lanes;
} long_job;

/* One lane's tile of MR rows by NV vectors over steps of k that are a_step and b_step floats apart. */
DX_INLINE void lane_tile(const int MR, const int NV, ptrdiff_t steps, const float *a, ptrdiff_t a_step, const float *b,
                         ptrdiff_t b_step, float *state, ptrdiff_t stride)
{
    dx_vf c[DX_GEMM_MR * DX_GEMM_NV];
    DX_UNROLL(16)
    for (int i = 0; i < MR; i++) {
        DX_UNROLL(4)
        for (int j = 0; j < NV; j++) c[i * NV + j] = dx_vload(state + i * stride + j * DX_VL);
    }
    for (; steps > 0; steps--, a += a_step, b += b_step) dx_tile_step(MR, NV, c, a, 1, b);
    DX_UNROLL(16)
    for (int i = 0; i < MR; i++) {
        DX_UNROLL(4)
        for (int j = 0; j < NV; j++) dx_vstore(state + i * stride + j * DX_VL, c[i * NV + j]);
    }
}

#define LANE_TILE(MR) \
    static void lane_tile##MR(int NV, ptrdiff_t steps, const float *a, ptrdiff_t a_step, const float *b, \
                              ptrdiff_t b_step, float *state, ptrdiff_t stride) \
    { \
        if (NV == 2) lane_tile(MR, 2, steps, a, a_step, b, b_step, state, stride); \
        else lane_tile(MR, 1, steps, a, a_step, b, b_step, state, stride); \
    }
LANE_TILE(1) LANE_TILE(2) LANE_TILE(3)
#if DX_GEMM_MR > 3
LANE_TILE(4)
#endif
#if DX_GEMM_MR > 4
LANE_TILE(5) LANE_TILE(6) LANE_TILE(7)
#endif
static void (*const lane_tiles[DX_GEMM_MR + 1])(int, ptrdiff_t, const float *, ptrdiff_t, const float *, ptrdiff_t, float *,
                                                ptrdiff_t) = {
    NULL, lane_tile1, lane_tile2, lane_tile3,
#if DX_GEMM_MR > 3
    lane_tile4,
#endif
#if DX_GEMM_MR > 4
    lane_tile5, lane_tile6, lane_tile7,
#endif
};

/* Lanes begin..end-1. N is a multiple of DX_VL. The padding of a partial last chunk of 16 is +0 added to its lanes. */
static void long_columns_lanes(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const long_job *s = context;
    const dx_gemm_job *g = &s->g;
    (void)worker;
    memset(s->state + begin * g->M * s->stride, 0, sizeof(float) * (size_t)((end - begin) * g->M * s->stride));
    for (ptrdiff_t k = 0; k < g->K; k += CHUNK) {
        const ptrdiff_t length = g->K - k < CHUNK ? g->K - k : CHUNK;
        for (ptrdiff_t i = 0, m; i < g->M; i += m) {
            m = dx_next_rows(g->M - i);
            for (ptrdiff_t j = 0; j < g->N; j += DX_GEMM_NR)
                for (ptrdiff_t lane = begin; lane < end; lane++) {
                    const float *a = g->A + (k + lane) * g->lda + i, *b = g->B + (k + lane) * g->ldb + j;
                    lane_tiles[m]((int)(dx_panel_width(g->N, j) / DX_VL), (length - lane + 15) / 16, a, 16 * g->lda, b,
                                  16 * g->ldb, s->state + (lane * g->M + i) * s->stride + j, s->stride);
                }
        }
    }
    for (ptrdiff_t lane = begin; lane < end; lane++)
        if (g->K % 16 && lane >= g->K % 16) {
            float *state = s->state + lane * g->M * s->stride;
            for (ptrdiff_t q = 0; q < g->M * s->stride; q++) state[q] = state[q] + 0.0f;
        }
}

/* The dot's tree over the lanes' partial results: element (i, j) to C[i * down + j * right]. */
static void long_columns_tree(const long_job *s, ptrdiff_t down, ptrdiff_t right)
{
    const ptrdiff_t size = s->g.M * s->stride;
    for (int h = 8; h; h >>= 1)
        for (ptrdiff_t q = 0; q < h * size; q++) s->state[q] = s->state[q] + s->state[q + h * size];
    for (ptrdiff_t i = 0; i < s->g.M; i++)
        for (ptrdiff_t j = 0; j < s->g.N; j++) s->g.C[i * down + j * right] = s->state[i * s->stride + j];
}

/* MR rows times NC columns over length floats, from zero when first, else from the kept lanes (one dx_lanes an element,
 * rows of lanes_step); then to the lanes again, or with out through the tree to C. */
DX_INLINE void dot_tile(const int MR, const int NC, ptrdiff_t length, const float *a, ptrdiff_t lda, const float *b,
                        ptrdiff_t ldb, int first, dx_lanes *lanes, ptrdiff_t lanes_step, float *out, ptrdiff_t ldc)
{
    dx_lanes c[DOT_MR * DOT_NC];
    DX_UNROLL(8)
    for (int t = 0; t < MR * NC; t++) c[t] = first ? dx_lanes_zero() : lanes[t / NC * lanes_step + t % NC];
    ptrdiff_t k = 0;
    for (; k + 16 <= length; k += 16) {
        DX_UNROLL(16)
        for (int t = 0; t < MR * NC; t++) dx_lanes_fma(&c[t], a + t / NC * lda + k, b + t % NC * ldb + k);
    }
    if (k < length) {
        float ta[DOT_MR * 16], tb[DOT_NC * 16];
        for (int i = 0; i < MR; i++) dx_pad16(ta + 16 * i, a + i * lda + k, length - k, 1);
        for (int j = 0; j < NC; j++) dx_pad16(tb + 16 * j, b + j * ldb + k, length - k, 1);
        DX_UNROLL(16)
        for (int t = 0; t < MR * NC; t++) dx_lanes_fma(&c[t], ta + t / NC * 16, tb + t % NC * 16);
    }
    DX_UNROLL(16)
    for (int t = 0; t < MR * NC; t++) {
        if (out) out[t / NC * ldc + t % NC] = dx_lanes_tree(c[t]);
        else lanes[t / NC * lanes_step + t % NC] = c[t];
    }
}

#define DOT_TILE(MR) \
    static void dot_tile##MR(int NC, ptrdiff_t length, const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, \
                             int first, dx_lanes *lanes, ptrdiff_t lanes_step, float *out, ptrdiff_t ldc) \
    { \
        if (NC == DOT_NC) dot_tile(MR, DOT_NC, length, a, lda, b, ldb, first, lanes, lanes_step, out, ldc); \
        else dot_tile(MR, 1, length, a, lda, b, ldb, first, lanes, lanes_step, out, ldc); \
    }
DOT_TILE(1) DOT_TILE(2)
#if DOT_MR == 4
DOT_TILE(3) DOT_TILE(4)
#endif
static void (*const dot_tiles[DOT_MR + 1])(int, ptrdiff_t, const float *, ptrdiff_t, const float *, ptrdiff_t, int,
                                           dx_lanes *, ptrdiff_t, float *, ptrdiff_t) = {
    NULL, dot_tile1, dot_tile2,
#if DOT_MR == 4
    dot_tile3, dot_tile4,
#endif
};

/* Groups begin..end-1 of columns. */
static void long_rows_columns(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const long_job *s = context;
    const dx_gemm_job *g = &s->g;
    const ptrdiff_t j_end = end * s->columns < g->N ? end * s->columns : g->N;
    (void)worker;
    for (ptrdiff_t k = 0; k < g->K; k += CHUNK) {
        const ptrdiff_t length = g->K - k < CHUNK ? g->K - k : CHUNK;
        const int last = k + CHUNK >= g->K;
        for (ptrdiff_t j = begin * s->columns, n; j < j_end; j += n) {
            n = j_end - j < DOT_NC ? 1 : DOT_NC;
            for (ptrdiff_t i = 0, m; i < g->M; i += m) {
                m = g->M - i < DOT_MR ? g->M - i : DOT_MR;
                dot_tiles[m]((int)n, length, g->A + i * g->lda + k, g->lda, g->B + j * g->ldb + k, g->ldb, k == 0,
                             s->lanes + i * g->N + j, g->N, last ? g->C + i * g->ldc + j : NULL, g->ldc);
            }
        }
    }
}

static int long_rows(int degree, const dx_gemm_job *g)
{
    long_job s = {.g = *g};
    const ptrdiff_t groups = (g->N + DOT_NC - 1) / DOT_NC;
    s.columns = (groups + degree - 1) / degree * DOT_NC;
    dx_mark mark = dx_scratch_mark();
    if (!(s.lanes = dx_scratch(sizeof(dx_lanes) * (size_t)(g->M * g->N)))) return DX_NO_MEMORY;
    const ptrdiff_t count = (g->N + s.columns - 1) / s.columns;
    dx_rt.parallel(long_rows_columns, &s, count, degree > 1 ? 1 : count, degree);
    dx_scratch_release(mark);
    return DX_OK;
}

/* Vectors lie along columns of C, or, when only M is a multiple of their length, along rows: a * b is b * a. */
static int long_columns(int degree, const dx_gemm_job *g, int swap)
{
    long_job s = {.g = *g};
    if (swap) { s.g.M = g->N; s.g.N = g->M; s.g.A = g->B; s.g.B = g->A; s.g.lda = g->ldb; s.g.ldb = g->lda; }
    s.stride = s.g.N;
    dx_mark mark = dx_scratch_mark();
    if (!(s.state = dx_scratch(sizeof(float) * (size_t)(16 * s.g.M * s.stride)))) return DX_NO_MEMORY;
    const ptrdiff_t grain = degree > 4 ? 1 : degree > 1 ? 16 / (2 * degree) : 16;
    dx_rt.parallel(long_columns_lanes, &s, 16, grain, degree);
    long_columns_tree(&s, swap ? 1 : g->ldc, swap ? g->ldc : 1);
    dx_scratch_release(mark);
    return DX_OK;
}

int DX_FN(gemm_long)(int degree, const dx_gemm_job *g, int *status)
{
    if (g->packed || g->epilogue || g->K < LONG || g->M * g->N > 4096) return 0;
    if (!g->trans_a && g->trans_b) {
        *status = long_rows(degree, g);
        return 1;
    }
    if (g->trans_a && !g->trans_b && (g->N % DX_VL == 0 || g->M % DX_VL == 0)) {
        *status = long_columns(degree, g, g->N % DX_VL != 0);
        return 1;
    }
    return 0;
}
