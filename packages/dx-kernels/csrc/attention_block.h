/* What attention.c, attention_backward.c and pointer.c share: sizes of a block of score rows. */
#ifndef DX_ATTENTION_BLOCK_H
#define DX_ATTENTION_BLOCK_H

#include "gemm_kernel.h"
#include "softmax_row.h"
#include "table.h"

/* Floats of a block of score rows that stays in the first-level cache. */
#ifndef DX_BLOCK_FLOATS
#define DX_BLOCK_FLOATS 8192
#endif
/* Keys whose gradients are computed at once: a multiple of the tile's rows. */
#define DX_KEY_SLICE (DX_GEMM_MR * 9)

static inline ptrdiff_t dx_up16(ptrdiff_t floats) { return (floats + 15) / 16 * 16; }

/* Columns of scores that are computed: whole vectors, so that no product has a ragged edge. */
static inline ptrdiff_t dx_score_columns(ptrdiff_t nk) { return (nk + DX_VL - 1) / DX_VL * DX_VL; }

/* Floats from one row of scores to the next; rows must not all fall on the same lines of the cache. */
static inline ptrdiff_t dx_score_stride(ptrdiff_t nk)
{
    const ptrdiff_t stride = dx_up16(nk);
    return stride % 64 ? stride : stride + 16;
}

/* Rows of a block: a multiple of the tile's, about DX_BLOCK_FLOATS of scores; at least 1. */
static inline ptrdiff_t dx_block_rows(ptrdiff_t rows, ptrdiff_t row_floats)
{
    ptrdiff_t block = DX_BLOCK_FLOATS / row_floats / DX_GEMM_MR * DX_GEMM_MR;
    if (block < DX_GEMM_MR) block = DX_GEMM_MR;
    if (block > rows) block = rows;
    return block > 0 ? block : 1;
}

#endif
