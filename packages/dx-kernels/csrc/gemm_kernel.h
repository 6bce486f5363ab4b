/* The register tile of the matrix product: MR rows by NV vectors of columns, G of the 16 dot lanes at a time.
 *
 * A dot lane l takes k = l, l+16, l+32, … For a lane, the tile is an ordinary register tile: B vectors loaded, A
 * broadcast, accumulators updated by FMA. Lanes come in bit-reversed order (0, 8, 4, 12, 2, …): then the dot's tree,
 * (l, l+8), (l, l+4), (l, l+2), (l, l+1), adds neighbours in that order, and partial tiles need a stack of at most four,
 * as in a binary counter. With G = 2 the first level of the tree stays in registers.
 *
 * One tile serves all K and N of a path. Measured (Zen 5, GFLOP/s of 266; "K: value", both operands in cache):
 *   avx512  G=2 7x2   16: 125   32: 186   64: 228   192: 252   768: 249      (G=1 8x3   91, 151, 191, 233, 251;
 *           G=1 6x4   87, 147, 184, 230, 251;   G=4 3x2   110, 138, 151, 165, 166)
 *   avx2    G=2 3x2   16: 64    32: 94    64: 117   192: 132   768: 129      (G=1 6x2   51, 81, 109, 128, 126;
 *           G=1 4x3   53, 87, 118, 130, 128) of 133
 * and a panel of 32 (16) columns divides the usual layer widths. neon has the registers of avx512. */
#ifndef DX_GEMM_KERNEL_H
#define DX_GEMM_KERNEL_H

#include <dx_numerics/vec.h>

#if DX_PATH == DX_PATH_AVX512 || DX_PATH == DX_PATH_NEON
#define DX_GEMM_G 2
#define DX_GEMM_MR 7
#define DX_GEMM_NV 2
#elif DX_PATH == DX_PATH_AVX2
#define DX_GEMM_G 2
#define DX_GEMM_MR 3
#define DX_GEMM_NV 2
#else
#define DX_GEMM_G 1
#define DX_GEMM_MR 4
#define DX_GEMM_NV 2
#endif
#define DX_GEMM_NR (DX_GEMM_NV * DX_VL)
/* Floats that copy a tile's rows of one k with few instructions. */
#define DX_STRIP_COPY (DX_GEMM_MR > 4 ? 8 : 4)

/* How the tile finds A: rows with k contiguous; columns, the rows of one k contiguous (A transposed, as it is); or a
 * packed strip of those columns (MR floats a step, in the kernel's order). */
enum { DX_A_ROWS, DX_A_COLUMNS, DX_A_PACKED };
/* How it finds B: a packed panel, or plain rows of N floats. */
enum { DX_B_PACKED, DX_B_ROWS };

/* Bit reversal of four bits; its own inverse. */
static const unsigned char dx_lane_order[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};

/* One k of one lane: row i of A at a[i * a_step], the row of B at b. */
DX_INLINE void dx_tile_step(const int MR, const int NV, dx_vf *c, const float *a, const ptrdiff_t a_step, const float *b)
{
    dx_vf bv[DX_GEMM_NV];
    DX_UNROLL(4)
    for (int j = 0; j < NV; j++) bv[j] = dx_vload(b + j * DX_VL);
    DX_UNROLL(16)
    for (int i = 0; i < MR; i++) {
        dx_vf av = dx_vset(a[i * a_step]);
        DX_UNROLL(4)
        for (int j = 0; j < NV; j++) c[i * NV + j] = dx_vfma(av, bv[j], c[i * NV + j]);
    }
}

/* C tile := A (MR rows) * B (NV vectors of columns). chunks: full chunks of 16 in K; tail: K mod 16, the rows of the last
 * partial chunk. Operands are used for k < K only; what is packed has room for whole chunks.
 *
 * The padding of a partial chunk is not executed lane by lane: one addition of +0 to the finished dot has the same bits.
 * fma(+0, +0, s) is s, but +0 for s = -0. So the padded dot and the one without differ at most in the sign of zero
 * lanes; a sum differs only where both its terms are zeros, and then only in the sign of its own zero; so do their
 * sums, up to the root. The padded root is never -0: a sum is -0 only if both its terms are, so all 16 lanes would have
 * to be, and a padded lane is not. root + (+0) is the root, but +0 for -0: the same number in both. */
DX_INLINE void dx_tile(const int MR, const int NV, const int a_kind, const int b_kind, ptrdiff_t chunks, ptrdiff_t tail,
                       const float *a, ptrdiff_t lda, const float *b, ptrdiff_t ldb, float *out, ptrdiff_t ldc)
{
    const int G = DX_GEMM_G, T = MR * NV;
    const ptrdiff_t b_lane = b_kind == DX_B_PACKED ? NV * DX_VL : 8 * ldb; /* from a lane to its partner, lane + 8 */
    const ptrdiff_t a_next = a_kind == DX_A_COLUMNS ? lda : 1, a_step = a_kind == DX_A_ROWS ? lda : 1;
    const ptrdiff_t a_lane = a_kind == DX_A_PACKED ? MR : 8 * a_next;
    dx_vf stack[4][DX_GEMM_MR * DX_GEMM_NV], c[DX_GEMM_G * DX_GEMM_MR * DX_GEMM_NV];
    int depth = 0;
    for (int g = 0; g < 16 / G; g++) {
        const int lane = dx_lane_order[g * G];
        const float *ap = a_kind == DX_A_PACKED ? a : a + lane * a_next;
        const float *bp = b_kind == DX_B_PACKED ? b : b + lane * ldb;
        DX_UNROLL(32)
        for (int t = 0; t < G * T; t++) c[t] = (dx_vf){0};
        for (ptrdiff_t n = chunks; n > 0; n--) {
            DX_UNROLL(2)
            for (int h = 0; h < G; h++) dx_tile_step(MR, NV, c + h * T, ap + h * a_lane, a_step, bp + h * b_lane);
            ap += a_kind == DX_A_PACKED ? G * MR : 16 * a_next;
            bp += b_kind == DX_B_PACKED ? G * NV * DX_VL : 16 * ldb;
        }
        if (tail) {
            DX_UNROLL(2)
            for (int h = 0; h < G; h++)
                if (lane + 8 * h < tail) dx_tile_step(MR, NV, c + h * T, ap + h * a_lane, a_step, bp + h * b_lane);
            ap += G * MR;
            bp += G * NV * DX_VL;
        }
        if (a_kind == DX_A_PACKED) a = ap;
        if (b_kind == DX_B_PACKED) b = bp;
        if (G == 2) {
            DX_UNROLL(32)
            for (int t = 0; t < T; t++) c[t] = c[t] + c[T + t];
        }
        for (int m = g; m & 1; m >>= 1) {
            depth--;
            DX_UNROLL(32)
            for (int t = 0; t < T; t++) c[t] = stack[depth][t] + c[t];
        }
        if (g == 16 / G - 1) break;
        DX_UNROLL(32)
        for (int t = 0; t < T; t++) stack[depth][t] = c[t];
        depth++;
    }
    if (tail) {
        DX_UNROLL(32)
        for (int t = 0; t < T; t++) c[t] = c[t] + 0.0f;
    }
    DX_UNROLL(16)
    for (int i = 0; i < MR; i++) {
        DX_UNROLL(4)
        for (int j = 0; j < NV; j++) dx_vstore(out + i * ldc + j * DX_VL, c[i * NV + j]);
    }
}

#endif
