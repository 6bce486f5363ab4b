/* Matrix products whose every element is one dot16 over the contraction axis.
 *
 *     C[i][j] = dot16 over k of A(i, k) * B(k, j)          C is (M, N)
 *
 * A(i, k) is A[i * lda + k], or A[k * lda + i] with trans_a; B(k, j) is B[k * ldb + j], or B[j * ldb + k] with
 * trans_b (weights of a linear layer). Bits depend on the two vectors alone: not on tile, packing, path or degree.
 * K = 0 gives +0; M = 0 or N = 0 writes nothing. C overlaps neither A nor B.
 *
 * How it runs (gemm_kernel.h): vector lanes lie along j; all k of one dot lane (k mod 16) are consumed together, lanes
 * in the order 0, 8, 4, 12, 2, …, so that the dot's tree is the merging of neighbours.
 *
 * Packed B: panels of DX_GEMM_NR columns; when the last one holds at most DX_VL columns it is one vector wide. A panel
 * holds K rounded up to a multiple of 16 rows of its width, in the order in which the kernel reads them, missing rows
 * and columns zero. The layout belongs to the path and to (K, N) only, and is the same for N and for N rounded up to a
 * multiple of DX_VL: a caller whose C has room passes the rounded N and spares the copy of a ragged last panel.
 *
 *   function             for
 *   gemm                 whole products: any transposes, packs what it must, parallel, epilogue per finished tile
 *   gemm_batched         count products of one shape (heads), a_step, b_step, c_step floats apart
 *   gemm_pack            B → packed, parallel; gemm_packed_floats(K, N) floats, 64-byte aligned is best
 *   gemm_pack_part       the same, serial, no allocation: B has n <= N columns, the others become zeros
 *   gemm_rows            C = A * packed B, serial, no allocation: A has plain rows; for a few to some hundred rows of a
 *                        bigger job that keeps C in cache (attention)
 *   gemm_direct          the same with B as it is, plain rows; N a multiple of DX_VL: for B in cache and used by few
 *                        rows (pair MLP)
 *   gemm_serial          any transposes, serial, scratch memory given by the caller: gemm_work_floats(…) floats
 *
 *   gemm_probe           steps of independent fused multiply-adds in registers, for measuring their peak rate; returns
 *                        the number of floating-point operations
 *
 * Everything but gemm, gemm_batched and gemm_pack may be called inside a parallel task. */
#include <dx_numerics/vec.h>

/* Called once for every finished block of C, and has to put it there: rows row..row+m-1, columns col..col+n-1 of C,
 * whose first element is at c. The block is at tile, a scratch buffer in cache, m rows of width floats each (width >= n,
 * the floats beyond n are of no account), so that an epilogue may work on it as m * width floats in one loop. Blocks
 * come in no order and from several threads. */
typedef void (*dx_gemm_epilogue)(void *context, float *tile, ptrdiff_t width, float *c, ptrdiff_t ldc, ptrdiff_t row,
                                 ptrdiff_t col, ptrdiff_t m, ptrdiff_t n);

#define DX_GEMM(F) \
    F(ptrdiff_t, gemm_packed_floats, (ptrdiff_t K, ptrdiff_t N)) \
    F(int, gemm_pack, (int degree, int trans_b, ptrdiff_t K, ptrdiff_t N, const float *B, ptrdiff_t ldb, float *packed)) \
    F(void, gemm_pack_part, (int trans_b, ptrdiff_t K, ptrdiff_t n, ptrdiff_t N, const float *B, ptrdiff_t ldb, \
                             float *packed)) \
    F(int, gemm, (int degree, int trans_a, int trans_b, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, \
                  ptrdiff_t lda, const float *B, ptrdiff_t ldb, const float *packed, float *C, ptrdiff_t ldc, \
                  dx_gemm_epilogue epilogue, void *context)) \
    F(int, gemm_batched, (int degree, int trans_a, int trans_b, ptrdiff_t count, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, \
                          const float *A, ptrdiff_t lda, ptrdiff_t a_step, const float *B, ptrdiff_t ldb, \
                          ptrdiff_t b_step, float *C, ptrdiff_t ldc, ptrdiff_t c_step)) \
    F(void, gemm_rows, (ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, ptrdiff_t lda, const float *packed, \
                        float *C, ptrdiff_t ldc)) \
    F(void, gemm_direct, (ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, ptrdiff_t lda, const float *B, \
                          ptrdiff_t ldb, float *C, ptrdiff_t ldc)) \
    F(ptrdiff_t, gemm_work_floats, (int trans_a, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K)) \
    F(void, gemm_serial, (int trans_a, int trans_b, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, const float *A, \
                          ptrdiff_t lda, const float *B, ptrdiff_t ldb, float *C, ptrdiff_t ldc, float *work)) \
    F(double, gemm_probe, (ptrdiff_t steps))
