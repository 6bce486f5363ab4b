/* Patch embedding of a vision transformer (docs/numerics.md "Patch embedding").
 *
 * image, dimage (channels, height, width) row-major; a patch is patch x patch pixels, patch <= width; the grid is
 * row-major and floor(width / patch) patches wide, so patch p begins at row p / across * patch and column
 * p % across * patch. What lies below the image reads as +0 (nothing lies right of it); patches may be more or fewer
 * than the image has. weight (d, channels * patch * patch), bias, cls, dcls (d), position, y, dy, dposition
 * (patches + 1, d); packed: the weight packed as B of x * weight^T, or NULL.
 *
 *   patch_rows             rows (patches, channels * patch * patch): the pixels that each patch reads
 *   patch_embed_forward    y
 *   patch_embed_backward   assigns its outputs, any of which may be NULL */
typedef struct { ptrdiff_t channels, height, width, patch, patches, d; } dx_patch_grid;

#define DX_PATCH_EMBED(F) \
    F(int, patch_rows, (int degree, const dx_patch_grid *g, const float *image, float *rows)) \
    F(int, patch_embed_forward, (int degree, const dx_patch_grid *g, const float *image, const float *weight, \
                                 const float *packed, const float *bias, const float *cls, const float *position, \
                                 float *y)) \
    F(int, patch_embed_backward, (int degree, const dx_patch_grid *g, const float *dy, const float *image, \
                                  const float *weight, float *dimage, float *dweight, float *dbias, float *dcls, \
                                  float *dposition))
