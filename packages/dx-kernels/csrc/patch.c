/* Patch embedding: the patches gathered as rows, then a linear layer over them.
 *
 *   y[0] = cls + position[0]        y[p + 1][j] = (dot16 over (channel, row, column) of read * weight + bias) + position
 *
 *   dposition = dy   dcls = dy[0]   dbias = sum16 over patches of dy[p + 1]   dweight = dot16 over patches of dy * read
 *   dimage: dot16 over d of dy[p + 1] * weight where a patch reads the pixel (at most one does), +0 elsewhere */
#include "table.h"

typedef struct {
    const dx_patch_grid *g;
    const float *from;
    float *to;
    int back; /* rows to image instead of image to rows */
} move_job;

static ptrdiff_t taps(const dx_patch_grid *g) { return g->channels * g->patch * g->patch; }

/* Patches begin..end-1. No pixel belongs to two patches, so the way back writes each at most once. */
static void move_patches(void *context, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const move_job *m = context;
    const dx_patch_grid *g = m->g;
    const ptrdiff_t across = g->width / g->patch, size = taps(g);
    const size_t line = sizeof(float) * (size_t)g->patch;
    (void)worker;
    for (ptrdiff_t p = begin; p < end; p++) {
        const ptrdiff_t top = p / across * g->patch, left = p % across * g->patch;
        for (ptrdiff_t c = 0; c < g->channels; c++)
            for (ptrdiff_t kh = 0; kh < g->patch; kh++) {
                const ptrdiff_t row = p * size + (c * g->patch + kh) * g->patch;
                const ptrdiff_t pixel = (c * g->height + top + kh) * g->width + left;
                if (top + kh >= g->height) {
                    if (!m->back) memset(m->to + row, 0, line);
                } else if (m->back)
                    memcpy(m->to + pixel, m->from + row, line);
                else
                    memcpy(m->to + row, m->from + pixel, line);
            }
    }
}

static void move(int degree, const dx_patch_grid *g, const float *from, float *to, int back)
{
    move_job m = {g, from, to, back};
    dx_rt.parallel(move_patches, &m, g->patches, dx_grain(g->patches, 0.25 * (double)taps(g), degree), degree);
}

int DX_FN(patch_rows)(int degree, const dx_patch_grid *g, const float *image, float *rows)
{
    move(degree, g, image, rows, 0);
    return DX_OK;
}

int DX_FN(patch_embed_forward)(int degree, const dx_patch_grid *g, const float *image, const float *weight,
                               const float *packed, const float *bias, const float *cls, const float *position,
                               float *y)
{
    const ptrdiff_t d = g->d, size = taps(g);
    dx_mark mark = dx_scratch_mark();
    float *rows = dx_scratch(sizeof(float) * (size_t)(g->patches * size));
    if (!rows) return DX_NO_MEMORY;
    move(degree, g, image, rows, 0);
    for (ptrdiff_t j = 0; j < d; j++) y[j] = cls[j] + position[j];
    int status = DX_FN(linear_forward)(degree, g->patches, size, d, rows, size, weight, packed, bias, DX_LINEAR_PLAIN,
                                       position + d, NULL, NULL, y + d, d);
    dx_scratch_release(mark);
    return status;
}

int DX_FN(patch_embed_backward)(int degree, const dx_patch_grid *g, const float *dy, const float *image,
                                const float *weight, float *dimage, float *dweight, float *dbias, float *dcls,
                                float *dposition)
{
    const ptrdiff_t d = g->d, size = taps(g);
    dx_mark mark = dx_scratch_mark();
    float *rows = NULL, *drows = NULL;
    if (dweight && !(rows = dx_scratch(sizeof(float) * (size_t)(g->patches * size)))) return DX_NO_MEMORY;
    if (dimage && !(drows = dx_scratch(sizeof(float) * (size_t)(g->patches * size)))) {
        dx_scratch_release(mark);
        return DX_NO_MEMORY;
    }
    if (rows) move(degree, g, image, rows, 0);
    int status = DX_FN(linear_backward)(degree, g->patches, size, d, dy + d, d, rows, size, weight, NULL, drows, size,
                                        0, dweight, dbias);
    if (drows) {
        memset(dimage, 0, sizeof(float) * (size_t)(g->channels * g->height * g->width));
        move(degree, g, drows, dimage, 1);
    }
    if (dcls) memcpy(dcls, dy, sizeof(float) * (size_t)d);
    if (dposition) memcpy(dposition, dy, sizeof(float) * (size_t)((g->patches + 1) * d));
    dx_scratch_release(mark);
    return status;
}
