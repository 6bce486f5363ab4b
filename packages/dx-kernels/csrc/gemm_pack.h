/* Packing of B of the matrix product into the order in which the tile reads them (gemm_kernel.h):
 * for each pair of lanes in tree order, for each chunk of 16 k, for each lane of the pair: one row. */
#ifndef DX_GEMM_PACK_H
#define DX_GEMM_PACK_H

#include "gemm_kernel.h"

#if defined(__clang__)
#define DX_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define DX_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (dx_vi){__VA_ARGS__})
#endif

/* Exchanges blocks of d elements between vectors i and i + d: d = VL/2, …, 1 together transpose VL x VL. */
#define DX_EXCHANGE(d, low, high) \
    for (int i = 0; i < DX_VL; i++) \
        if (!(i & d)) { \
            dx_vf a = r[i], b = r[i + d]; \
            r[i] = DX_SHUFFLE(a, b, low); \
            r[i + d] = DX_SHUFFLE(a, b, high); \
        }
#define DX_LIST(...) __VA_ARGS__

DX_INLINE void dx_transpose(dx_vf *r)
{
#if DX_VL == 16
    DX_UNROLL(16)
    DX_EXCHANGE(8, DX_LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                DX_LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    DX_UNROLL(16)
    DX_EXCHANGE(4, DX_LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                DX_LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    DX_UNROLL(16)
    DX_EXCHANGE(2, DX_LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                DX_LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    DX_UNROLL(16)
    DX_EXCHANGE(1, DX_LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                DX_LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif DX_VL == 8
    DX_UNROLL(16)
    DX_EXCHANGE(4, DX_LIST(0, 1, 2, 3, 8, 9, 10, 11), DX_LIST(4, 5, 6, 7, 12, 13, 14, 15))
    DX_UNROLL(16)
    DX_EXCHANGE(2, DX_LIST(0, 1, 8, 9, 4, 5, 12, 13), DX_LIST(2, 3, 10, 11, 6, 7, 14, 15))
    DX_UNROLL(16)
    DX_EXCHANGE(1, DX_LIST(0, 8, 2, 10, 4, 12, 6, 14), DX_LIST(1, 9, 3, 11, 5, 13, 7, 15))
#else
    DX_UNROLL(16)
    DX_EXCHANGE(2, DX_LIST(0, 1, 4, 5), DX_LIST(2, 3, 6, 7))
    DX_UNROLL(16)
    DX_EXCHANGE(1, DX_LIST(0, 4, 2, 6), DX_LIST(1, 5, 3, 7))
#endif
}

/* Where row k of a packed block of the given width and number of chunks starts. */
DX_INLINE ptrdiff_t dx_packed_row(ptrdiff_t k, ptrdiff_t chunks, ptrdiff_t width)
{
    ptrdiff_t place = dx_lane_order[k & 15];
    return ((place / DX_GEMM_G * chunks + (k >> 4)) * DX_GEMM_G + place % DX_GEMM_G) * width;
}

/* One panel of B (width columns, n of them present) from rows of k. */
DX_INLINE void dx_pack_rows(ptrdiff_t K, ptrdiff_t n, ptrdiff_t width, const float *b, ptrdiff_t ldb, float *out)
{
    const ptrdiff_t chunks = (K + 15) / 16;
    for (ptrdiff_t k = 0; k < 16 * chunks; k++) {
        float *o = out + dx_packed_row(k, chunks, width);
        const float *row = b + k * ldb;
        if (k < K && n == width)
            for (ptrdiff_t j = 0; j < width; j += DX_VL) dx_vstore(o + j, dx_vload(row + j));
        else
            for (ptrdiff_t j = 0; j < width; j++) o[j] = k < K && j < n ? row[j] : 0.0f;
    }
}

/* The same from columns: column j is the row j of b, k contiguous. */
DX_INLINE void dx_pack_columns(ptrdiff_t K, ptrdiff_t n, ptrdiff_t width, const float *b, ptrdiff_t ldb, float *out)
{
    const ptrdiff_t chunks = (K + 15) / 16;
    for (ptrdiff_t j0 = 0; j0 < width; j0 += DX_VL)
        for (ptrdiff_t k0 = 0; k0 < 16 * chunks; k0 += DX_VL) {
            const float *from = b + j0 * ldb + k0;
            dx_vf r[DX_VL];
            if (n - j0 >= DX_VL && K - k0 >= DX_VL) {
                DX_UNROLL(16)
                for (int i = 0; i < DX_VL; i++) r[i] = dx_vload(from + i * ldb);
            } else {
                float edge[DX_VL * DX_VL] = {0};
                for (ptrdiff_t i = 0; i < DX_VL && i < n - j0; i++)
                    for (ptrdiff_t l = 0; l < DX_VL && l < K - k0; l++) edge[i * DX_VL + l] = from[i * ldb + l];
                DX_UNROLL(16)
                for (int i = 0; i < DX_VL; i++) r[i] = dx_vload(edge + i * DX_VL);
            }
            dx_transpose(r);
            DX_UNROLL(16)
            for (int l = 0; l < DX_VL; l++) dx_vstore(out + dx_packed_row(k0 + l, chunks, width) + j0, r[l]);
        }
}

#endif
