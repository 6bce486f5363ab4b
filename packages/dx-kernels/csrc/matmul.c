/* Matrix products as tasks for the thread pool (gemm.h). */
#include "gemm_block.h"

/* Below this many multiply-adds a product is not worth a second thread. */
#define SMALL 1000000.0
/* Bytes of A that a task goes through for every panel of B: plain rows may stream from the third-level cache, packed
 * strips are better kept in the second. */
#define PLAIN_BYTES (2048 * 1024)
#define STRIP_BYTES (512 * 1024)

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }
static ptrdiff_t pieces(ptrdiff_t count, ptrdiff_t size) { return (count + size - 1) / size; }

ptrdiff_t DX_FN(gemm_packed_floats)(ptrdiff_t K, ptrdiff_t N)
{
    ptrdiff_t whole = N / DX_GEMM_NR * DX_GEMM_NR;
    return dx_rounded_k(K) * (whole + (N > whole ? dx_panel_width(N, whole) : 0));
}

ptrdiff_t DX_FN(gemm_work_floats)(int trans_a, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)
{
    (void)N;
    ptrdiff_t floats = dx_rounded_k(K) * (DX_GEMM_NR + (trans_a ? M : 0));
    return (floats + 15) / 16 * 16;
}

void DX_FN(gemm_serial)(int trans_a, int trans_b, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, ptrdiff_t lda,
                        const float *B, ptrdiff_t ldb, float *C, ptrdiff_t ldc, float *work)
{
    const dx_gemm_job g = {.M = M, .N = N, .K = K, .trans_a = trans_a, .trans_b = trans_b, .A = A, .lda = lda, .B = B,
                           .ldb = ldb, .C = C, .ldc = ldc};
    DX_FN(gemm_block)(&g, 0, M, 0, N, work);
}

typedef struct { int trans_b; ptrdiff_t K, N, ldb; const float *B; float *packed; } pack_job;

static void pack_panels(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const pack_job *p = context;
    const ptrdiff_t j = begin * DX_GEMM_NR, n = least(end * DX_GEMM_NR, p->N) - j;
    (void)worker;
    DX_FN(gemm_pack_part)(p->trans_b, p->K, n, n, p->trans_b ? p->B + j * p->ldb : p->B + j, p->ldb,
                          p->packed + j * dx_rounded_k(p->K));
}

int DX_FN(gemm_pack)(int degree, int trans_b, ptrdiff_t K, ptrdiff_t N, const float *B, ptrdiff_t ldb, float *packed)
{
    pack_job p = {trans_b, K, N, ldb, B, packed};
    const ptrdiff_t panels = pieces(N, DX_GEMM_NR);
    dx_rt.parallel(pack_panels, &p, panels, dx_grain(panels, (double)(K * DX_GEMM_NR), degree), degree);
    return DX_OK;
}

/* Tasks: blocks of rows (outer) by groups of panels (inner). */
typedef struct {
    dx_gemm_job g;
    ptrdiff_t rows, columns, across, work_floats;
    float *work;
} split_job;

static void blocks(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const split_job *s = context;
    for (ptrdiff_t t = begin; t < end; t++) {
        const ptrdiff_t i = t / s->across * s->rows, j = t % s->across * s->columns;
        DX_FN(gemm_block)(&s->g, i, least(i + s->rows, s->g.M), j, least(j + s->columns, s->g.N),
                          s->work + worker * s->work_floats);
    }
}

int DX_FN(gemm)(int degree, int trans_a, int trans_b, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A,
                ptrdiff_t lda, const float *B, ptrdiff_t ldb, const float *packed, float *C, ptrdiff_t ldc,
                dx_gemm_epilogue epilogue, void *context)
{
    if (M == 0 || N == 0) return DX_OK;
    split_job s = {.g = {M, N, K, trans_a, trans_b, A, B, packed, lda, ldb, ldc, C, epilogue, context}};
    const ptrdiff_t K16 = dx_rounded_k(K), strips = pieces(M, DX_GEMM_MR), panels = pieces(N, DX_GEMM_NR);
    int status;
    if ((double)M * (double)N * (double)K16 < SMALL) degree = 1;
    if (!trans_a && DX_FN(gemm_few)(degree, &s.g, &status)) return status;
    if (DX_FN(gemm_long)(degree, &s.g, &status)) return status;
    if (trans_a && DX_FN(gemm_few)(degree, &s.g, &status)) return status;
    /* As few blocks of rows as the cache allows; with several threads, about four tasks each. */
    ptrdiff_t down = pieces(strips, most(1, (trans_a ? STRIP_BYTES : PLAIN_BYTES) / (ptrdiff_t)sizeof(float) / most(1, K16) / DX_GEMM_MR));
    ptrdiff_t across = 1;
    if (degree > 1) {
        down = most(down, least(4 * degree, strips / 4));
        across = least(panels, pieces(4 * degree, most(1, down)));
    }
    s.rows = pieces(strips, most(1, down)) * DX_GEMM_MR;
    down = pieces(M, s.rows);
    s.columns = pieces(panels, across) * DX_GEMM_NR;
    s.across = pieces(N, s.columns);
    dx_mark mark = dx_scratch_mark();
    if (!packed && down > 1) { /* several tasks would pack the same panel */
        float *all = dx_scratch(sizeof(float) * (size_t)DX_FN(gemm_packed_floats)(K, N));
        if (!all) return DX_NO_MEMORY;
        DX_FN(gemm_pack)(degree, trans_b, K, N, B, ldb, all);
        s.g.packed = all;
    }
    s.work_floats = DX_FN(gemm_work_floats)(trans_a, s.rows, N, K);
    if ((trans_a || !s.g.packed) && !(s.work = dx_scratch(sizeof(float) * (size_t)(s.work_floats * degree)))) {
        dx_scratch_release(mark);
        return DX_NO_MEMORY;
    }
    dx_rt.parallel(blocks, &s, down * s.across, degree > 1 ? 1 : down * s.across, degree);
    dx_scratch_release(mark);
    return DX_OK;
}

typedef struct { dx_gemm_job g; ptrdiff_t a_step, b_step, c_step, work_floats; float *work; } batch_job;

static void products(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const batch_job *s = context;
    for (ptrdiff_t t = begin; t < end; t++) {
        dx_gemm_job g = s->g;
        g.A += t * s->a_step;
        g.B += t * s->b_step;
        g.C += t * s->c_step;
        DX_FN(gemm_block)(&g, 0, g.M, 0, g.N, s->work + worker * s->work_floats);
    }
}

int DX_FN(gemm_batched)(int degree, int trans_a, int trans_b, ptrdiff_t count, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                        const float *A, ptrdiff_t lda, ptrdiff_t a_step, const float *B, ptrdiff_t ldb,
                        ptrdiff_t b_step, float *C, ptrdiff_t ldc, ptrdiff_t c_step)
{
    const double each = (double)M * (double)N * (double)dx_rounded_k(K);
    if (M == 0 || N == 0) return DX_OK;
    if (degree > 1 && count < 2 * degree && each > SMALL) { /* too few to share out evenly: split every one */
        int status = DX_OK;
        for (ptrdiff_t t = 0; t < count && status == DX_OK; t++)
            status = DX_FN(gemm)(degree, trans_a, trans_b, M, N, K, A + t * a_step, lda, B + t * b_step, ldb, NULL,
                                 C + t * c_step, ldc, NULL, NULL);
        return status;
    }
    if (each * (double)count < SMALL) degree = 1;
    batch_job s = {.g = {M, N, K, trans_a, trans_b, A, B, NULL, lda, ldb, ldc, C, NULL, NULL},
                   .a_step = a_step, .b_step = b_step, .c_step = c_step};
    s.work_floats = DX_FN(gemm_work_floats)(trans_a, M, N, K);
    dx_mark mark = dx_scratch_mark();
    if (!(s.work = dx_scratch(sizeof(float) * (size_t)(s.work_floats * degree)))) return DX_NO_MEMORY;
    dx_rt.parallel(products, &s, count, degree > 1 ? 1 : count, degree);
    dx_scratch_release(mark);
    return DX_OK;
}
