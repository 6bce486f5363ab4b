"""Patch embedding of a vision transformer: patches, class token and position table, forward and backward."""
from dx_kernels._core cimport (degree_current, fp_enter, fp_leave, flat, in1, in2, in3, out1, out2, out3, raise_status,
                               shape1, shape2, shape3, table)
from dx_kernels.linear cimport packed_weight
from dx_kernels.matmul cimport address_of

cdef extern from "table.h" nogil:
    ctypedef struct patch_table "dx_kernels_table":
        int (*patch_rows)(int degree, const dx_patch_grid *g, const float *image, float *rows) noexcept nogil
        int (*patch_embed_forward)(int degree, const dx_patch_grid *g, const float *image, const float *weight,
                                   const float *packed, const float *bias, const float *cls, const float *position,
                                   float *y) noexcept nogil
        int (*patch_embed_backward)(int degree, const dx_patch_grid *g, const float *dy, const float *image,
                                    const float *weight, float *dimage, float *dweight, float *dbias, float *dcls,
                                    float *dposition) noexcept nogil

cdef enum:
    MOST_PATCHES = 16777216  # row numbers and pixel offsets stay far from the largest integer


cdef int set_grid(dx_patch_grid *g, Py_ssize_t channels, Py_ssize_t height, Py_ssize_t width, Py_ssize_t patch,
                  Py_ssize_t patches, Py_ssize_t d) except -1:
    if patch < 1:
        raise ValueError(f"patch = {patch}: expected at least 1")
    if patch > width:
        raise ValueError(f"patch = {patch} with images {width} pixels wide: expected at most the width, the grid would "
                         "have no column")
    if patches > MOST_PATCHES:
        raise ValueError(f"there are {patches} patches: expected at most 2^24")
    g.channels, g.height, g.width, g.patch, g.patches, g.d = channels, height, width, patch, patches, d
    return 0


cdef int shape4(str name, const float[:, :, :, ::1] a, Py_ssize_t n0, Py_ssize_t n1, Py_ssize_t n2,
                Py_ssize_t n3) except -1:
    if a is not None and (a.shape[0] != n0 or a.shape[1] != n1 or a.shape[2] != n2 or a.shape[3] != n3):
        raise ValueError(f"{name} has shape ({a.shape[0]}, {a.shape[1]}, {a.shape[2]}, {a.shape[3]}): "
                         f"expected ({n0}, {n1}, {n2}, {n3})")
    return 0


cdef const float *weight_of(object weight, const dx_patch_grid *g) except? NULL:
    cdef const float[:, :, :, ::1] view = weight
    cdef const float[::1] line
    shape4("weight", view, g.d, g.channels, g.patch, g.patch)
    line = flat(weight)
    return NULL if line.shape[0] == 0 else &line[0]


def patch_rows(const float[:, :, ::1] image not None, float[:, ::1] rows not None, *, Py_ssize_t patch):
    """rows[p] := the pixels that patch p reads, in the order (channel, row, column).

    Shapes    image (channels, height, width) · rows (patches, channels * patch * patch)
    Grid      row-major, floor(width / patch) patches wide: patch p begins at pixel row p // across * patch and column
              p % across * patch. Below the image +0 is read; columns beyond the last whole patch are never read
    Edges     patches is free: fewer than the image has, or more, which read +0
    Raises    ValueError: patch < 1 or patch > width, more than 2^24 patches, a shape that does not fit
    Source    numerics.md "Patch embedding"; bit-equal to dx_kernels.ref.patch.patch_rows
    """
    cdef dx_patch_grid g
    cdef const patch_table *t = <const patch_table *>table()
    cdef int status
    set_grid(&g, image.shape[0], image.shape[1], image.shape[2], patch, rows.shape[0], 0)
    shape2("rows", rows, g.patches, g.channels * patch * patch)
    cdef const float *pi = in3(image)
    cdef float *pr = out2(rows)
    if pr == NULL:
        return
    with nogil:
        status = t.patch_rows(degree_current(), &g, pi, pr)
    raise_status(status)


def patch_embed_forward(const float[:, :, ::1] image not None, weight not None, const float[::1] bias not None,
                        const float[::1] cls not None, const float[:, ::1] position not None,
                        float[:, ::1] y not None, *, Py_ssize_t patch):
    """y[0] := cls + position[0]; y[p + 1] := (patch p * weight + bias) + position[p + 1].

    Shapes    image (channels, height, width) · weight (d, channels, patch, patch), or
              PackedMatrix(weight.reshape(d, -1), transpose_b=True) · bias, cls (d,) · position, y (patches + 1, d)
    Grid      as patch_rows
    Order     dot16 over (channel, row, column); + bias; + position: each rounded by itself
    Edges     patches beyond the image: bias + position · d == 0 → nothing
    Aliasing  y overlaps nothing
    Raises    ValueError: patch < 1 or patch > width, position without a row, a shape that does not fit
    Source    numerics.md "Patch embedding"; bit-equal to dx_kernels.ref.patch.patch_embed_forward
    """
    cdef dx_patch_grid g
    cdef const patch_table *t = <const patch_table *>table()
    cdef const float *pw = NULL
    cdef const float *pp = NULL
    cdef unsigned long long saved
    cdef int status
    check_rows("position", position.shape[0])
    set_grid(&g, image.shape[0], image.shape[1], image.shape[2], patch, position.shape[0] - 1, position.shape[1])
    packed = packed_weight(weight, g.channels * patch * patch, g.d, True)
    if packed is None:
        pw = weight_of(weight, &g)
    else:
        pp = address_of(packed)
    shape1("bias", bias, g.d)
    shape1("cls", cls, g.d)
    shape2("y", y, g.patches + 1, g.d)
    cdef const float *pi = in3(image)
    cdef const float *pb = in1(bias)
    cdef const float *pc = in1(cls)
    cdef const float *pt = in2(position)
    cdef float *py = out2(y)
    if py == NULL:
        return
    with nogil:
        saved = fp_enter()
        status = t.patch_embed_forward(degree_current(), &g, pi, pw, pp, pb, pc, pt, py)
        fp_leave(saved)
    raise_status(status)


def patch_embed_backward(const float[:, ::1] dy not None, const float[:, :, ::1] image, weight,
                         float[:, :, ::1] dimage=None, float[:, :, :, ::1] dweight=None, float[::1] dbias=None,
                         float[::1] dcls=None, float[:, ::1] dposition=None, *, Py_ssize_t patch):
    """Gradients of patch_embed_forward, of one image.

    dposition := dy · dcls := dy[0] · dbias := sum of dy[1:] · dweight := sum over patches of dy[p + 1] * read, the
    class row excluded from both · dimage := dy[p + 1] @ weight at the pixels of patch p, +0 at pixels in no patch

    Shapes    dy (patches + 1, d) · image (channels, height, width), needed for dweight · weight (d, channels, patch,
              patch), needed for dimage · dimage as image · dweight as weight · dbias, dcls (d,) · dposition as dy;
              outputs that are None are not computed
    Order     dweight: dot16 over patches · dbias: sum16 over patches · dimage: dot16 over d. So dcls is dposition[0] and
              dbias the sum16 of dposition[1:], bit for bit
    Edges     no patches → dweight and dbias +0
    Writes    outputs assigned            Aliasing  outputs overlap nothing
    Raises    ValueError: patch < 1 or patch > width, dy without a row, an input that is needed and missing, a shape
              that does not fit
    Source    backward-numerics.md "Patch embedding"; bit-equal to dx_kernels.ref.patch.patch_embed_backward
    """
    cdef dx_patch_grid g
    cdef const patch_table *t = <const patch_table *>table()
    cdef const float *pw = NULL
    cdef float *pdw = NULL
    cdef unsigned long long saved
    cdef int status
    cdef Py_ssize_t channels = 0, height = 0, width = patch
    check_rows("dy", dy.shape[0])
    if dweight is not None and image is None:
        raise ValueError("image is None: dweight needs it")
    if dimage is not None and weight is None:
        raise ValueError("weight is None: dimage needs it")
    if image is not None:
        channels, height, width = image.shape[0], image.shape[1], image.shape[2]
    elif dimage is not None:
        channels, height, width = dimage.shape[0], dimage.shape[1], dimage.shape[2]
    set_grid(&g, channels, height, width, patch, dy.shape[0] - 1, dy.shape[1])
    shape3("dimage", dimage, channels, height, width)
    shape4("dweight", dweight, g.d, channels, patch, patch)
    shape1("dbias", dbias, g.d)
    shape1("dcls", dcls, g.d)
    shape2("dposition", dposition, g.patches + 1, g.d)
    if dimage is not None:
        pw = weight_of(weight, &g)
    if dweight is not None and g.d and channels:
        pdw = &dweight[0, 0, 0, 0]
    cdef const float *pdy = in2(dy)
    cdef const float *pi = in3(image)
    cdef float *pdi = out3(dimage)
    cdef float *pdb = out1(dbias)
    cdef float *pdc = out1(dcls)
    cdef float *pdp = out2(dposition)
    with nogil:
        saved = fp_enter()
        status = t.patch_embed_backward(degree_current(), &g, pdy, pi, pw, pdi, pdw, pdb, pdc, pdp)
        fp_leave(saved)
    raise_status(status)


cdef int check_rows(str name, Py_ssize_t rows) except -1:
    if rows < 1:
        raise ValueError(f"{name} has no row: expected one for the class token and one for each patch")
    return 0
