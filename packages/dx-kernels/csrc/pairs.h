/* Where words stand. n words in reading order; box (n, 4); row, line, key (n).
 *   page_geometry   relative (n, 4): box edges in the page's content extent, 0..1; real (6, n): middle x, middle y
 *                   (relative), x0, x1, middle y (in line heights), log of the height; whole (3, n): row, line, key;
 *                   *line_height
 *   positions       position (4, n): relative edges quantised to 0..size-1
 *   pair_features   out (20, i1 - i0, n): features of the pairs (i, j), i0 <= i < i1, all j, feature by feature
 *   pair_features_part   the same of count pairs from the first in row-major order, rows of features stride floats
 *                   apart, serial: for kernels that use them at once, so that n * n * 20 numbers never exist */
#define DX_PAIR_FEATURE_COUNT 20
#define DX_PAIR_REALS 6
#define DX_PAIR_WHOLES 3

#define DX_PAIR_FEATURES(F) \
    F(int, page_geometry, (ptrdiff_t n, const double *box, const int32_t *row, const int32_t *line, \
                           const int32_t *key, double *relative, double *real, int32_t *whole, double *line_height)) \
    F(int, positions, (ptrdiff_t n, const double *relative, int32_t size, int32_t *position)) \
    F(void, pair_features_part, (ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t first, \
                                 ptrdiff_t count, ptrdiff_t stride, float *out)) \
    F(int, pair_features, (int degree, ptrdiff_t n, const double *real, const int32_t *whole, ptrdiff_t i0, \
                           ptrdiff_t i1, float *out))
