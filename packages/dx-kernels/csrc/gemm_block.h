/* Internal to the matrix product: a whole product, and the serial piece of it that one task computes. */
#ifndef DX_GEMM_BLOCK_H
#define DX_GEMM_BLOCK_H

#include "gemm_kernel.h"
#include "table.h"

typedef struct {
    ptrdiff_t M, N, K;
    int trans_a, trans_b;
    const float *A, *B, *packed; /* packed: all of B, or NULL */
    ptrdiff_t lda, ldb, ldc;
    float *C;
    dx_gemm_epilogue epilogue;
    void *context;
} dx_gemm_job;

static inline ptrdiff_t dx_rounded_k(ptrdiff_t K) { return (K + 15) / 16 * 16; }

/* Width of the panel at column j: a last panel of at most one vector is one vector wide. */
static inline ptrdiff_t dx_panel_width(ptrdiff_t N, ptrdiff_t j) { return N - j <= DX_VL ? DX_VL : DX_GEMM_NR; }

/* Rows of the next tile when so many are left: tiles of nearly equal height, none of a single row beside full ones. */
static inline ptrdiff_t dx_next_rows(ptrdiff_t left)
{
    const ptrdiff_t tiles = (left + DX_GEMM_MR - 1) / DX_GEMM_MR;
    return (left + tiles - 1) / tiles;
}

/* C rows i..i_end-1, columns j..j_end-1 (j a multiple of the panel width). work: a packed panel unless B comes packed,
 * and the packed rows of A when it is transposed. */
void DX_FN(gemm_block)(const dx_gemm_job *g, ptrdiff_t i, ptrdiff_t i_end, ptrdiff_t j, ptrdiff_t j_end, float *work);

/* Products of a few rows with B unpacked (gemm_few.c), and those with a long contraction and a small result
 * (gemm_long.c): 1 when it is one of those and has been computed, with its status; 0 when it is not. */
int DX_FN(gemm_few)(int degree, const dx_gemm_job *g, int *status);
int DX_FN(gemm_long)(int degree, const dx_gemm_job *g, int *status);

#endif
